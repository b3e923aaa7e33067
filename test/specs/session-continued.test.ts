// Sessions over several requests, restarts and crashes: what is remembered, what is
// fixed by the first request, and what never happens twice.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  assertCallsArePaired,
  calls,
  hangsAfter,
  type TestServer,
  type TestServerProcess,
  type Json,
  messagesOf,
  says,
  someone,
  startTestServerProcess,
  until,
} from '../support/test-server.ts'
import {
  agentIdOf,
  assertWholeStream,
  attach,
  confirmationIdOf,
  resultOf,
  say,
  sayToEnd,
  sharedSessionServer,
  textOf,
  typesOf,
} from '../support/session-api.ts'

const toolsOffered = (request: { body: Json } | undefined) =>
  ((request?.body.tools ?? []) as { function: { name: string } }[]).map((tool) => tool.function.name)

describe('a session', () => {
  const { server, workspace, script } = sharedSessionServer({})

  /** Says `marker` in a session of `user`, and gives what the model was asked for it. */
  async function asked(user: string, marker: string, body: Json = {}) {
    const messages = await sayToEnd(server, user, { message: marker, ...body })
    const [request] = await server.asked(marker)
    return { messages, agentId: agentIdOf(messages), request }
  }

  test('remembers what was said and what tools gave, and runs no tool again', async () => {
    const user = someone()
    await script(user, calls(['fs_write', { path: 'a.txt', content: 'tea' }, 'c1']), says('Written.'))
    const { agentId } = await asked(user, user)
    const next = someone('next')

    const { messages, request } = await asked(user, next, { agentId })

    assert.deepEqual(
      typesOf(messages).filter((type) => type.startsWith('tool')),
      [],
    )
    const told = messagesOf(request)
    assertCallsArePaired(told)
    assert.deepEqual(
      told.filter(({ role }) => role !== 'system').map(({ role }) => role),
      ['user', 'assistant', 'tool', 'assistant', 'user'],
    )
    assert.match(JSON.stringify(told), /Written\./)
  })

  test('an unknown or invalid id starts a new session under another id', async () => {
    const user = someone()
    for (const agentId of ['agt-01M7GQ5MN7VCXR0C8M1MD3ZN55', '../../etc', 'agt-../x', '', ' ', 'x'.repeat(5000)]) {
      const [start] = await sayToEnd(server, user, { message: 'hello', agentId })
      assert.equal(start?.isNewSession, true, agentId)
      assert.match(start?.agentId, /^agt-[0-9A-Z]{26}$/)
      assert.notEqual(start?.agentId, agentId)
    }
  })

  test('another user’s session is treated like an unknown one', async () => {
    const [user, stranger, secret] = [someone(), someone('stranger'), someone('secret')]
    const { agentId } = await asked(user, secret)
    const marker = someone('marker')

    const { messages, request, agentId: theirs } = await asked(stranger, marker, { agentId })

    assert.equal(messages[0]?.isNewSession, true)
    assert.notEqual(theirs, agentId)
    assert.equal(JSON.stringify(request?.body).includes(secret), false)
  })

  test('a conversation of another API is no session', async () => {
    const user = someone()
    await server.chatToEnd(user, { input: 'hello', conversationId: `conv-${user}` })

    const [start] = await sayToEnd(server, user, { message: 'hello', agentId: `conv-${user}` })

    assert.equal(start?.isNewSession, true)
  })

  test('two requests at once take turns, in the order in which they came', async () => {
    const user = someone()
    const { agentId } = await asked(user, user)
    const [first, second] = [someone('first'), someone('second')]
    await script(first, [...hangsAfter('One'), { finish: 'stop' }])
    await script(second, says('Two'))

    const one = await say(server, user, { message: first, agentId })
    await one.waitFor('text')
    const two = await say(server, user, { message: second, agentId })
    const start = await two.waitFor('start')
    assert.equal((await server.asked(second)).length, 0, 'the second waits')
    await server.provider.release()

    assert.equal(start.isNewSession, false)
    assert.deepEqual(typesOf(await one.toEnd()), ['start', 'text', 'done'])
    assert.equal(textOf(await two.toEnd()), 'Two')
    assert.match(JSON.stringify(messagesOf((await server.asked(second))[0])), new RegExp(first))
  })

  test('in mode ask has tools that read and no others, until a request says edit', async () => {
    const user = someone()
    const { agentId, request } = await asked(user, user, { mode: 'ask' })
    const silent = await asked(user, someone('silent'), { agentId })
    const edit = await asked(user, someone('edit'), { agentId, mode: 'edit' })
    const after = await asked(user, someone('after'), { agentId })
    const back = await asked(user, someone('back'), { agentId, mode: 'ask' })

    for (const offered of [request, silent.request, back.request].map(toolsOffered)) {
      assert.ok(offered.includes('fs_read') && offered.includes('fs_grep') && offered.includes('lookup'))
      for (const name of ['fs_write', 'fs_edit', 'bash_run', 'todo_write', 'charge', 'remember_note'])
        assert.equal(offered.includes(name), false, name)
    }
    for (const offered of [edit.request, after.request].map(toolsOffered)) assert.ok(offered.includes('fs_write'))
  })

  test('a tool that changes something is refused in mode ask, whatever the model says', async () => {
    const user = someone()
    await script(user, calls(['fs_write', { path: 'a.txt', content: 'x' }]), says('Sorry.'))

    const { messages, agentId } = await asked(user, user, { mode: 'ask' })

    assert.deepEqual([resultOf(messages).result.status, resultOf(messages).is_error], ['failed', false])
    assert.equal(existsSync(join(workspace, 'sessions', agentId, 'a.txt')), false)
  })

  test('in an unknown mode only reading is allowed', async () => {
    const user = someone()

    const { request } = await asked(user, user, { mode: 'destroy' })

    assert.equal(toolsOffered(request).includes('fs_write'), false)
  })

  test('in mode edit files and to-dos are changed without asking', async () => {
    const user = someone()
    const todos = [{ id: '1', title: 'Tea', status: 'pending' }]
    await script(user, calls(['fs_write', { path: 'a.txt', content: 'x' }], ['todo_write', { todos }]), says('Done.'))

    const { messages } = await asked(user, user)

    assertWholeStream(messages)
    for (const message of messages) {
      if (message.type === 'tool_result') assert.equal(message.result.status, 'success', message.result.message)
    }
  })

  test('works in a directory of its own, or in the one that its first request named', async () => {
    const [user, named] = [someone(), someone('named')]
    const write = (path: string) => calls(['fs_write', { path, content: 'x' }])
    await script(user, write('own.txt'), says('Done.'))
    await script(named, write('first.txt'), says('Done.'))

    const own = await asked(user, user)
    const first = await asked(named, named, {
      context: { workingDir: join(workspace, 'projects/tea'), files: ['data/leaf.csv'] },
    })
    const later = someone('later')
    await script(later, write('second.txt'), says('Done.'))
    const second = await asked(named, later, {
      agentId: first.agentId,
      context: { workingDir: 'projects/coffee', files: ['data/bean.csv'] },
    })

    assert.equal(readFileSync(join(workspace, 'sessions', own.agentId, 'own.txt'), 'utf8'), 'x')
    assert.equal(readFileSync(join(workspace, 'projects/tea/first.txt'), 'utf8'), 'x')
    assert.equal(readFileSync(join(workspace, 'projects/tea/second.txt'), 'utf8'), 'x')
    assert.equal(existsSync(join(workspace, 'projects/coffee')), false)
    const told = JSON.stringify(messagesOf(second.request).filter(({ role }) => role === 'system'))
    assert.match(told, /bean\.csv/, 'new files count from the request that brings them')
    assert.doesNotMatch(told, /leaf\.csv/)
    const silent = someone('silent')
    const third = await asked(named, silent, { agentId: first.agentId })
    assert.match(JSON.stringify(messagesOf(third.request)), /bean\.csv/)
  })

  test('can be read, listed and deleted as a conversation; its own directory goes with it', async () => {
    const user = someone()
    await script(user, calls(['fs_write', { path: 'mine.txt', content: 'x' }]), says('Done.'))
    const { agentId } = await asked(user, user)
    assert.ok(existsSync(join(workspace, 'sessions', agentId, 'mine.txt')))

    const messages = await server.call('GET', `/v1/conversations/${agentId}/messages`, { user })
    const gone = await server.call('DELETE', `/v1/conversations/${agentId}`, { user })
    assert.equal(existsSync(join(workspace, 'sessions', agentId)), false)
    const [start] = await sayToEnd(server, user, { message: 'hello', agentId })

    assert.deepEqual(
      (messages.body as unknown as Json[]).map(({ role }) => role),
      ['user', 'tool', 'assistant'],
    )
    assert.ok(gone.status < 300)
    assert.equal(start?.isNewSession, true)
  })

  test('a message that comes while a question is open waits for the decision', async () => {
    const user = someone()
    const later = someone('later')
    await script(user, calls(['charge', { amount: 3 }]), says('Paid.'))
    const one = await say(server, user, { message: user, consent: 'wait' })
    const { agentId } = await one.waitFor('start')
    const use = await one.waitFor('tool_use')
    await server.reaches(user, one.runId, 'awaiting_input')

    const two = await say(server, user, { message: later, agentId })
    await two.waitFor('start')
    assert.equal((await server.asked(later)).length, 0)
    const id = confirmationIdOf(use)
    const decided = await server.call('POST', `/v1/tool-confirmations/${id}/confirm`, { user })

    assert.equal(decided.status, 200)
    assert.equal(resultOf(await one.toEnd()).result.status, 'success')
    assertWholeStream(await two.toEnd())
  })
})

describe('a session whose server dies', () => {
  let folder: string
  let mortal: TestServerProcess
  /** The server at this moment: `mortal`, or the one after its death. */
  let server: TestServer

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'polylog-session-'))
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  /** A server of its own for a test that kills it. */
  async function withMortalServer(work: () => Promise<void>): Promise<void> {
    mortal = await startTestServerProcess({
      POLYLOG_WORKSPACE: join(folder, 'workspace'),
      POLYLOG_BASH: 'allow',
    })
    server = mortal
    try {
      await work()
    } finally {
      await server.close()
    }
  }

  async function killAndRestart(): Promise<void> {
    await mortal.polylog.kill()
    server = await mortal.restart()
  }

  test('goes on after a restart, with memory, mode and directory', () =>
    withMortalServer(async () => {
      const [user, later] = [someone(), someone('later')]
      await server.provider.script([calls(['fs_write', { path: 'a.txt', content: 'x' }]), says('Written.')], user)
      const agentId = agentIdOf(await sayToEnd(server, user, { message: user, context: { workingDir: 'restarted' } }))
      await server.provider.script([calls(['fs_read', { path: 'a.txt' }]), says('Read.')], later)

      await server.polylog.stop()
      server = await server.restart()
      const messages = await sayToEnd(server, user, { message: later, agentId })

      assert.equal(messages[0]?.isNewSession, false)
      assert.equal(resultOf(messages).result.status, 'success')
      const told = messagesOf((await server.asked(later))[0])
      assertCallsArePaired(told)
      assert.match(JSON.stringify(told), new RegExp(user))
    }))

  test('killed in the middle of a command: the answer goes on by itself, and the command is never run again', () =>
    withMortalServer(async () => {
      const [user, later] = [someone(), someone('later')]
      const directory = join(folder, 'workspace', 'killed')
      const cmd = 'echo once >> ran.txt; sleep 5'
      await server.provider.script([calls(['bash_run', { cmd }, 'c1']), says('Nobody knows.')], user)
      const stream = await say(server, user, { message: user, context: { workingDir: 'killed' } })
      const { agentId } = await stream.waitFor('start')
      await until('the command to run', () => (existsSync(join(directory, 'ran.txt')) ? true : undefined))

      await killAndRestart()
      const messages = await sayToEnd(server, user, { message: later, agentId })

      assert.equal(messages[0]?.isNewSession, false)
      assertWholeStream(messages)
      assert.equal(readFileSync(join(directory, 'ran.txt'), 'utf8'), 'once\n')
      const told = messagesOf((await server.asked(later))[0])
      assertCallsArePaired(told)
      assert.match(JSON.stringify(told.find(({ role }) => role === 'tool')), /unknown/)
      const before = await (await attach(server, user, stream.runId)).toEnd()
      assertWholeStream(before)
      assert.deepEqual([resultOf(before, 'c1').result.status, resultOf(before, 'c1').is_error], ['failed', false])
    }))

  test('killed in the middle of a command while a newer message waits: that one is answered after the restart', () =>
    withMortalServer(async () => {
      const [user, later] = [someone(), someone('later')]
      const directory = join(folder, 'workspace', 'followed')
      const cmd = 'echo once >> ran.txt; sleep 5'
      await server.provider.script([calls(['bash_run', { cmd }]), says('Nobody knows.')], user)
      const stream = await say(server, user, { message: user, context: { workingDir: 'followed' } })
      const { agentId } = await stream.waitFor('start')
      await until('the command to run', () => (existsSync(join(directory, 'ran.txt')) ? true : undefined))
      const next = await say(server, user, { message: later, agentId })
      await next.waitFor('start')

      await killAndRestart()
      const messages = await (await attach(server, user, next.runId)).toEnd()

      assertWholeStream(messages)
      assert.equal(textOf(messages), 'Hello from the fake provider.')
      assert.equal(readFileSync(join(directory, 'ran.txt'), 'utf8'), 'once\n')
    }))

  test('killed in the middle of a command: with consent wait a person may decide to run it again', () =>
    withMortalServer(async () => {
      const user = someone()
      const directory = join(folder, 'workspace', 'again')
      const cmd = 'echo once >> ran.txt; test $(wc -l < ran.txt) -gt 1 || sleep 5'
      await server.provider.script([calls(['bash_run', { cmd }, 'c1']), says('Done.')], user)
      const stream = await say(server, user, { message: user, consent: 'wait', context: { workingDir: 'again' } })
      await until('the command to run', () => (existsSync(join(directory, 'ran.txt')) ? true : undefined))

      await killAndRestart()
      await server.reaches(user, stream.runId, 'awaiting_input')
      const { body } = await server.call('GET', `/v1/tool-confirmations?runId=${stream.runId}&status=pending`, { user })
      const [question] = body as unknown as Json[]
      assert.equal(question?.outcome, 'unknown')
      await server.call('POST', `/v1/tool-confirmations/${question?.id}/confirm`, { user })
      const messages = await (await attach(server, user, stream.runId)).toEnd()

      assertWholeStream(messages)
      assert.equal(resultOf(messages, 'c1').result.status, 'success')
      assert.equal(readFileSync(join(directory, 'ran.txt'), 'utf8'), 'once\nonce\n')
    }))

  test('killed in mid-sentence: what the model says instead comes after a blank line, and only that is remembered', () =>
    withMortalServer(async () => {
      const [user, later] = [someone(), someone('later')]
      await server.provider.script([hangsAfter('Roses are'), says('Violets ', 'are blue.')], user)
      const stream = await say(server, user, user)
      const { agentId } = await stream.waitFor('start')
      await stream.waitFor('text')

      await killAndRestart()
      const messages = await (await attach(server, user, stream.runId)).toEnd()
      await sayToEnd(server, user, { message: later, agentId })

      assert.equal(textOf(messages), 'Roses are\n\nViolets are blue.')
      assertWholeStream(messages)
      const told = JSON.stringify(messagesOf((await server.asked(later))[0]))
      assert.match(told, /Violets are blue/)
      assert.doesNotMatch(told, /Roses/)
    }))
})
