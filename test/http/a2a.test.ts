// A2A over real sockets, with the real clients of protocol 1.0 and 0.3: send, stream, approve, cancel,
// subscribe again, lists and cards, and what is refused.

import { SignJWT } from 'jose'
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import {
  a2aClients,
  allOf,
  type PlainClient,
  type PlainPart,
  type PlainUpdate,
  statesOf,
  textShown,
} from '../support/a2a-client.ts'
import { pngOf } from '../support/sample-files.ts'
import { sharedMcpServerProcess } from '../support/shared-mcp-server.ts'
import {
  calls,
  hangsAfter,
  type Json,
  runIdOf,
  says,
  sharedTestServer,
  someone,
  toolState,
  until,
} from '../support/test-server.ts'

const secret = 'a secret that is long enough for a test'
const { server, effects } = sharedMcpServerProcess(() => ({ POLYLOG_JWT_SECRET: secret }))
const required = sharedTestServer({ POLYLOG_JWT_SECRET: secret, POLYLOG_AUTH: 'required' })

async function bearer(user: string): Promise<Record<string, string>> {
  const token = await new SignJWT({ sub: user })
    .setProtectedHeader({ alg: 'HS256' })
    .setExpirationTime(4_000_000_000)
    .sign(new TextEncoder().encode(secret))
  return { authorization: `Bearer ${token}` }
}

let amount = 5000

/** The client of 0.3 wraps the error of a stream. */
function isStreamError(name: string): (error: Error) => boolean {
  return (error) => (error.cause instanceof Error ? error.cause : error).name === name
}

/** The data parts of a message. */
const dataOf = (parts: PlainPart[]): Json[] => parts.flatMap((part) => ('data' in part ? [part.data as Json] : []))
const textOf = (parts: PlainPart[]) => parts.map((part) => ('text' in part ? part.text : '')).join('')

async function rpc(
  body: unknown,
  headers: Record<string, string> = {},
  path = '/a2a',
): Promise<{ status: number; body: Json }> {
  const { status, body: answer } = await server.call('POST', path, { body, headers })
  return { status, body: answer }
}

for (const { name, open } of a2aClients) {
  describe(`the client ${name}`, () => {
    async function start(user: string): Promise<PlainClient> {
      return await open({ baseUrl: server.polylog.baseUrl, headers: await bearer(user) })
    }

    test('sends a message, and gets the finished task; a second one in the context continues it', async () => {
      const user = someone()
      const client = await start(user)
      await server.provider.script([says('Hello ', 'Ann.'), says('Ann.')], user)

      const first = await client.send(`I am Ann. ${user}`)
      const second = await client.send(`Who am I? ${user}`, { contextId: first.contextId })

      assert.deepEqual([first.state, first.artifacts], ['COMPLETED', ['Hello Ann.']])
      assert.deepEqual(first.history[0], { role: 'user', parts: [{ text: `I am Ann. ${user}` }] })
      assert.deepEqual([second.state, second.contextId], ['COMPLETED', first.contextId])
      const [, asked] = await server.asked(user)
      assert.deepEqual(
        asked?.body.messages?.filter(({ role }) => role !== 'system').map(({ content }) => content),
        [`I am Ann. ${user}`, 'Hello Ann.', `Who am I? ${user}`],
      )
    })

    test('streams a task from its first state to its last, with the text as it comes', async () => {
      const user = someone()
      const client = await start(user)
      await server.provider.script([calls(['lookup', { word: 'x' }]), says('It ', 'is ', 'ten.')], user)

      const updates = await allOf(client.stream(user))

      const [first] = updates
      assert.ok(first !== undefined && 'task' in first)
      assert.deepEqual(textShown(updates), ['It is ten.'])
      assert.deepEqual(statesOf(updates), ['SUBMITTED', 'WORKING', 'WORKING', 'WORKING', 'COMPLETED'])
      const tools = updates.flatMap((update) => ('status' in update ? dataOf(update.asks) : []))
      assert.deepEqual(
        tools.map(({ toolName, outcome }) => [toolName, outcome]),
        [
          ['lookup', undefined],
          ['lookup', 'succeeded'],
        ],
      )
      const chunks = updates.filter((update) => 'artifactId' in update)
      assert.deepEqual(
        chunks.map(({ append, lastChunk }) => [append, lastChunk]),
        [
          [false, false],
          [true, false],
          [true, false],
          [true, true],
        ],
      )
      assert.deepEqual((await client.get(first.task.id)).artifacts, ['It is ten.'])
    })

    test('answers a task that needs input: yes runs the call, and the stream goes on', async () => {
      const user = someone()
      const client = await start(user)
      amount += 1
      await server.provider.script([calls(['charge', { amount }]), says('Charged.')], user)

      const asked = await allOf(client.stream(user))
      const last = asked.at(-1)
      assert.ok(last !== undefined && 'status' in last)
      assert.equal(last.status, 'INPUT_REQUIRED')
      const [question] = dataOf(last.asks)
      assert.deepEqual(
        [question?.['kind'], question?.['toolName'], question?.['arguments']],
        ['confirmation', 'charge', { amount }],
      )
      assert.ok(!effects.lines().includes(`charge ${amount}`))
      const rest = await allOf(client.stream('yes', { taskId: last.taskId }))

      assert.equal(effects.lines().filter((line) => line === `charge ${amount}`).length, 1)
      assert.deepEqual(statesOf(rest), ['INPUT_REQUIRED', 'WORKING', 'WORKING', 'COMPLETED'])
      assert.deepEqual(textShown(rest), ['Charged.'])
    })

    test('answers with data: a rejection with its reason, waited for', async () => {
      const user = someone()
      const client = await start(user)
      amount += 1
      await server.provider.script([calls(['charge', { amount }]), says('Then not.')], user)

      const task = await client.send(user)
      const [question] = dataOf(task.asks)
      const ended = await client.send(
        [{ data: { interactionId: question?.['interactionId'], approved: false, reason: 'Too much.' } }],
        { taskId: task.id, contextId: task.contextId },
      )

      assert.deepEqual([task.state, ended.state, ended.artifacts], ['INPUT_REQUIRED', 'COMPLETED', ['Then not.']])
      assert.ok(!effects.lines().includes(`charge ${amount}`))
      const told = ended.history.flatMap(({ parts }) => dataOf(parts)).filter(({ outcome }) => outcome !== undefined)
      assert.deepEqual(
        told.map(({ outcome }) => outcome),
        ['denied'],
      )
      const { body } = await server.call('GET', `/v1/tool-confirmations/${question?.['interactionId']}`, {
        headers: await bearer(user),
      })
      assert.deepEqual([body.status, body.error], ['rejected', 'Too much.'])
    })

    test('does not take anything but a clear yes for a yes', async () => {
      const user = someone()
      const client = await start(user)
      amount += 1
      await server.provider.script([calls(['charge', { amount }]), says('Then not.')], user)
      const task = await client.send(user)

      await assert.rejects(client.send('yes', { taskId: task.id, contextId: 'another' }), /contextId/)
      const ended = await client.send('yes, but only half of it', { taskId: task.id })

      assert.equal(ended.state, 'COMPLETED')
      assert.ok(!effects.lines().includes(`charge ${amount}`))
    })

    test('answers several open calls with one data part each, and is told so if it sends a text', async () => {
      const user = someone()
      const client = await start(user)
      const [one, two] = [amount + 1, amount + 2]
      amount += 2
      await server.provider.script(
        [calls(['charge', { amount: one }], ['charge', { amount: two }, 'second']), says('One of two.')],
        user,
      )
      const task = await client.send(user)
      const questions = dataOf(task.asks)
      assert.equal(questions.length, 2)

      await assert.rejects(client.send('yes', { taskId: task.id }), /asks 2 things/)
      const ended = await client.send(
        questions.map(({ interactionId, arguments: input }) => ({
          data: { interactionId, approved: input.amount === one },
        })),
        { taskId: task.id },
      )

      assert.equal(ended.state, 'COMPLETED')
      assert.deepEqual(
        [effects.lines().includes(`charge ${one}`), effects.lines().includes(`charge ${two}`)],
        [true, false],
      )
    })

    test('brings the result of a tool that the client of another wire was to execute', async () => {
      const user = someone()
      const client = await start(user)
      await server.provider.script([calls(['locate', {}]), says('Nice place.')], user)
      const clientTools = [{ name: 'locate', inputSchema: { type: 'object' } }]
      const chat = await server.chat(user, { input: user, clientTools }, await bearer(user))
      const taskId = runIdOf(chat)
      await chat.waitFor(toolState('awaiting_input'))
      const task = await until('the task to wait', async () => {
        const found = await client.get(taskId)
        return found.state === 'INPUT_REQUIRED' ? found : undefined
      })
      const [{ kind, interactionId, toolName } = {}] = dataOf(task.asks)
      assert.deepEqual([kind, toolName], ['client_tool', 'locate'])

      await assert.rejects(client.send([{ data: { interactionId, approved: true } }], { taskId }), /output/)
      const ended = await client.send([{ data: { interactionId, output: { city: 'Oslo' } } }], { taskId })

      assert.deepEqual([ended.state, ended.artifacts], ['COMPLETED', ['Nice place.']])
      assert.match(JSON.stringify((await server.asked(user)).at(-1)?.body.messages), /Oslo/)
    })

    test('gets a working task at once if it does not want to wait, and the newest messages of its history', async () => {
      const user = someone()
      const client = await start(user)
      await server.provider.script([hangsAfter('Thinking')], user)

      const task = await client.send(user, { returnAtOnce: true, historyLength: 0 })
      await server.askedTimes(user, 1)

      assert.ok(['SUBMITTED', 'WORKING'].includes(task.state))
      assert.deepEqual(
        [task.history, (await client.get(task.id, 1)).history.length, (await client.get(task.id, 0)).history.length],
        [[], 1, 0],
      )
      await client.cancel(task.id)
    })

    test('cancels a task; the stream says so, and it cannot be cancelled twice', async () => {
      const user = someone()
      const client = await start(user)
      await server.provider.script([hangsAfter('Once upon')], user)
      const updates: PlainUpdate[] = []
      let canceled
      for await (const update of client.stream(user)) {
        updates.push(update)
        if ('artifactId' in update && !update.lastChunk) {
          const [first] = updates
          assert.ok(first !== undefined && 'task' in first)
          canceled = await client.cancel(first.task.id)
        }
      }

      assert.deepEqual([canceled?.state, canceled?.artifacts], ['CANCELED', ['Once upon']])
      assert.equal(statesOf(updates).at(-1), 'CANCELED')
      await assert.rejects(client.cancel(canceled?.id ?? ''), { name: 'TaskNotCancelableError' })
    })

    test('subscribes again after a lost connection: the task so far, then only what is newer', async () => {
      const user = someone()
      const client = await start(user)
      await server.provider.script([hangsAfter('One, ', 'two')], user)
      let taskId = ''
      const seen: PlainUpdate[] = []
      for await (const update of client.stream(user)) {
        seen.push(update)
        if ('task' in update) taskId = update.task.id
        if (textShown(seen)[0] === 'One, two') break
      }

      const rest: PlainUpdate[] = []
      for await (const update of client.subscribe(taskId)) {
        rest.push(update)
        if (rest.length === 1) await client.cancel(taskId)
      }

      const [snapshot] = rest
      assert.ok(snapshot !== undefined && 'task' in snapshot)
      assert.deepEqual([snapshot.task.state, snapshot.task.artifacts], ['WORKING', ['One, two']])
      assert.deepEqual(textShown(rest), ['One, two'])
      assert.deepEqual(statesOf(rest), ['WORKING', 'CANCELED'])
      await assert.rejects(allOf(client.subscribe(taskId)), isStreamError('UnsupportedOperationError'))
    })

    test('sees the error of a task that failed', async () => {
      const user = someone()
      const client = await start(user)
      await server.provider.script([[{ status: 500, body: {} }]], user)

      const task = await client.send(user)

      assert.equal(task.state, 'FAILED')
      assert.match(textOf(task.asks), /cannot answer now/)
      assert.match(String(dataOf(task.asks)[0]?.['code']), /^model_/)
    })

    test('sends a file, which the task shows by its address, and is refused one that would have to be fetched', async () => {
      const user = someone()
      const client = await start(user)
      await server.provider.script([says('A pixel.')], user)
      const bytes = pngOf().toString('base64')
      const file = { bytes, name: 'dot.png', mediaType: 'image/png' }

      const task = await client.send([{ text: user }, { data: { zoom: 2 } }, { file }])

      assert.deepEqual([task.state, task.artifacts], ['COMPLETED', ['A pixel.']])
      const shown = task.history[0]?.parts[2]
      assert.ok(shown !== undefined && 'file' in shown)
      assert.equal(textOf(task.history[0]?.parts ?? []), `${user}\n{"zoom":2}`)
      assert.deepEqual([shown.file.name, shown.file.mediaType], ['dot.png', 'image/png'])
      const response = await fetch(shown.file.url ?? '', { headers: await bearer(user) })
      assert.equal(Buffer.from(await response.arrayBuffer()).toString('base64'), bytes)
      const far = { file: { url: 'https://example.com/a.png', mediaType: 'image/png' } }
      await assert.rejects(client.send([{ text: 'look' }, far]), { name: 'ContentTypeNotSupportedError' })
      // The address that a task shows can be sent again.
      await server.provider.script([says('The same.')], `${user} again`)
      const again = await client.send([{ text: `${user} again` }, shown])
      assert.deepEqual(again.history[0]?.parts[1], shown)
    })

    test('starts one task for a message that it sends twice', async () => {
      const user = someone()
      const client = await start(user)
      const messageId = randomUUID()
      await server.provider.script([says('Once.')], user)

      const first = await client.send(user, { messageId })
      const again = await client.send(user, { messageId })
      const streamed = await allOf(client.stream(user, { messageId }))

      assert.deepEqual([again.id, again.artifacts], [first.id, ['Once.']])
      assert.deepEqual([statesOf(streamed), textShown(streamed)], [['COMPLETED'], ['Once.']])
      await assert.rejects(client.send('another text', { messageId }), /Idempotency|key|body/i)
    })

    test('is refused what is not served, with the error of A2A', async () => {
      const user = someone()
      const client = await start(user)
      await server.provider.script([says('Done.')], user)
      const task = await client.send(user)

      await assert.rejects(client.send('more', { taskId: task.id }), { name: 'UnsupportedOperationError' })
      await assert.rejects(client.send('hi', { push: true }), { name: 'PushNotificationNotSupportedError' })
      await assert.rejects(client.setPush(task.id), { name: 'PushNotificationNotSupportedError' })
      await assert.rejects(client.send('hi', { modes: ['image/png'] }), { name: 'ContentTypeNotSupportedError' })
      await assert.rejects(client.get('no-such-task'), { name: 'TaskNotFoundError' })
      await assert.rejects(client.send(' '), /empty/)
    })

    test('finds nothing of another user', async () => {
      const [user, other] = [someone('owner'), someone('other')]
      const [client, stranger] = [await start(user), await start(other)]
      amount += 1
      await server.provider.script([calls(['charge', { amount }]), says('Done.')], user)
      const task = await client.send(user)

      await assert.rejects(stranger.get(task.id), { name: 'TaskNotFoundError' })
      await assert.rejects(stranger.cancel(task.id), { name: 'TaskNotFoundError' })
      await assert.rejects(allOf(stranger.subscribe(task.id)), isStreamError('TaskNotFoundError'))
      await assert.rejects(stranger.send('yes', { taskId: task.id }), { name: 'TaskNotFoundError' })
      await assert.rejects(stranger.send('hi', { contextId: task.contextId }), /conversation/)
      assert.equal((await client.get(task.id)).state, 'INPUT_REQUIRED')
      await client.cancel(task.id)
    })

    test('talks to one agent at its own address, found by its own card', async () => {
      const user = someone()
      const client = await open({
        baseUrl: `${server.polylog.baseUrl}/a2a/chat_conversation/`,
        headers: await bearer(user),
      })
      await server.provider.script([says('Here.')], user)

      const task = await client.send(user)

      assert.deepEqual(task.artifacts, ['Here.'])
      await assert.rejects(open({ baseUrl: `${server.polylog.baseUrl}/a2a/nobody/` }), /404/)
    })

    test('reads the public card without a login, and all agents with one', async () => {
      const baseUrl = required.polylog.baseUrl
      const stranger = await open({ baseUrl })
      await assert.rejects(stranger.send('hi'), /login/i)

      const client = await open({ baseUrl, headers: await bearer(someone()) })

      assert.ok((await client.skills()).includes('chat_conversation'))
      await assert.rejects(open({ baseUrl: `${baseUrl}/a2a/chat_conversation/` }), /401/)
    })
  })
}

describe('the endpoint /a2a', () => {
  const question = (text: string, more: Json = {}) => ({
    message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more },
  })

  test('lists the tasks of the caller, newest first, page by page, without their text unless it is asked for', async () => {
    const user = someone()
    const headers = { ...(await bearer(user)), 'a2a-version': '1.0' }
    const list = async (params: Json) =>
      (await rpc({ jsonrpc: '2.0', id: 1, method: 'ListTasks', params }, headers)).body.result
    await server.provider.script([says('One.'), says('Two.'), says('Three.')], user)
    const ids: string[] = []
    for (const text of ['1', '2', '3']) {
      const { body } = await rpc(
        { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: question(`${text} ${user}`) },
        headers,
      )
      ids.unshift(body.result.task.id as string)
    }

    const first = await list({ pageSize: 2 })
    const second = await list({ pageSize: 2, pageToken: first.nextPageToken, includeArtifacts: true })

    const idsOf = (page: Json) => (page.tasks as Json[]).map(({ id }) => id)
    assert.deepEqual([...idsOf(first), ...idsOf(second)], ids)
    assert.deepEqual([first.totalSize, second.nextPageToken, (await list({})).totalSize], [undefined, '', 3])
    assert.equal(first.tasks[0].artifacts, undefined)
    assert.equal(second.tasks[0].artifacts[0].parts[0].text, 'One.')
    assert.deepEqual(idsOf(await list({ status: 'TASK_STATE_FAILED' })), [])
    assert.deepEqual(idsOf(await list({ status: 'TASK_STATE_REJECTED' })), [])
    assert.deepEqual(idsOf(await list({ status: 'UNRECOGNIZED' })), ids)
    const unknown = await rpc({ jsonrpc: '2.0', id: 1, method: 'ListTasks', params: { status: 'done' } }, headers)
    assert.equal(unknown.body.error.code, -32602)
    assert.match(unknown.body.error.message as string, /"status" must be one of TASK_STATE_SUBMITTED/)
    assert.deepEqual(idsOf(await list({ contextId: 'unknown' })), [])
    const other = await rpc(
      { jsonrpc: '2.0', id: 1, method: 'ListTasks', params: {} },
      { ...(await bearer(someone())), 'a2a-version': '1.0' },
    )
    assert.deepEqual(idsOf(other.body.result), [])
  })

  test('shows the message of the client under its own id, live and later', async () => {
    const user = someone()
    const headers = { ...(await bearer(user)), 'a2a-version': '1.0' }
    await server.provider.script([says('Yes.')], user)
    const asked = question(user)
    const rpc = (method: string, params: object) =>
      server.call('POST', '/a2a', { headers, body: { jsonrpc: '2.0', id: 1, method, params } })

    const streamed = await rpc('SendStreamingMessage', asked)
    const [, first = ''] = /^data: (.*)$/m.exec(streamed.text) ?? []
    const { task } = JSON.parse(first).result as Json
    const later = (await rpc('GetTask', { id: task.id })).body.result

    for (const { history } of [task, later]) assert.equal(history[0].messageId, asked.message.messageId)
  })

  test('refuses what is no JSON-RPC request, with the codes of JSON-RPC', async () => {
    const params = question('hi')
    const send = { jsonrpc: '2.0', id: 7, method: 'SendMessage', params }
    for (const [body, code, id] of [
      [[send, send], -32600, null],
      [{ ...send, jsonrpc: '1.0' }, -32600, 7],
      [{ ...send, id: undefined }, -32600, null],
      [{ ...send, id: 'x'.repeat(201) }, -32600, null],
      [{ ...send, method: 'DropTables' }, -32601, 7],
      [{ ...send, method: 'constructor' }, -32601, 7],
      [{ ...send, params: {} }, -32602, 7],
      [{ ...send, params: { message: { ...params.message, role: 'ROLE_AGENT' } } }, -32602, 7],
      [{ ...send, params: { message: { ...params.message, parts: [] } } }, -32602, 7],
      [{ ...send, params: { message: { ...params.message, parts: [{ audio: 'x' }] } } }, -32005, 7],
    ] as const) {
      const { status, body: answer } = await rpc(body)
      assert.deepEqual([status, answer.error?.code, answer.id], [200, code, id], JSON.stringify(body).slice(0, 200))
      assert.ok(typeof answer.error.data[0].metadata.code === 'string')
    }
    const broken = await server.call('POST', '/a2a', {
      raw: '{"jsonrpc":',
      headers: { 'content-type': 'application/json' },
    })
    assert.deepEqual([broken.status, broken.body.error.code], [400, -32700])
  })

  test('chooses the version by the header, else by the method', async () => {
    const user = someone()
    const login = await bearer(user)
    const get = async (method: string, version?: string) => {
      const headers = version === undefined ? login : { ...login, 'a2a-version': version }
      const { body } = await rpc({ jsonrpc: '2.0', id: 1, method, params: { id: 'none' } }, headers)
      return body.error.code as number
    }

    assert.equal(await get('GetTask'), -32001)
    assert.equal(await get('tasks/get'), -32001)
    assert.equal(await get('GetTask', '1.0'), -32001)
    assert.equal(await get('tasks/get', '0.3'), -32001)
    assert.equal(await get('tasks/get', '1.0'), -32601)
    assert.equal(await get('GetTask', '0.3'), -32601)
    assert.equal(await get('GetTask', '2.0'), -32009)
  })

  test('gives each reader of one task frames with the id of its own request', async () => {
    const user = someone()
    const headers = await bearer(user)
    await server.provider.script([hangsAfter('One')], user)
    const started = await rpc(
      {
        jsonrpc: '2.0',
        id: 1,
        method: 'SendMessage',
        params: { ...question(user), configuration: { returnImmediately: true } },
      },
      headers,
    )
    const { id } = started.body.result.task
    await server.askedTimes(user, 1)
    const texts = ['first', 'second'].map(async (requestId) => {
      const body = { jsonrpc: '2.0', id: requestId, method: 'SubscribeToTask', params: { id } }
      return (await server.call('POST', '/a2a', { body, headers })).text
    })
    await rpc({ jsonrpc: '2.0', id: 1, method: 'CancelTask', params: { id } }, headers)

    for (const [index, text] of (await Promise.all(texts)).entries()) {
      const ids = [...text.matchAll(/"jsonrpc":"2.0","id":"(\w+)"/g)].map((match) => match[1])
      assert.ok(ids.length >= 2, text)
      assert.deepEqual([...new Set(ids)], [['first', 'second'][index]])
    }
  })

  test('describes itself to both generations, with the address that the client used', async () => {
    const { baseUrl } = server.polylog
    for (const path of ['/.well-known/agent-card.json', '/.well-known/agent.json']) {
      const old = await server.call('GET', path)
      const now = await server.call('GET', path, { headers: { 'a2a-version': '1.0' } })

      assert.deepEqual(
        [old.body.url, old.body.protocolVersion, old.body.preferredTransport],
        [`${baseUrl}/a2a`, '0.3.0', 'JSONRPC'],
      )
      assert.deepEqual(old.body.securitySchemes.bearer, { type: 'http', scheme: 'bearer' })
      assert.deepEqual(
        now.body.supportedInterfaces.map((entry: Json) => [entry.url, entry.protocolVersion]),
        [
          [`${baseUrl}/a2a`, '1.0'],
          [`${baseUrl}/a2a`, '0.3'],
        ],
      )
      assert.deepEqual(now.body.securitySchemes.bearer, { httpAuthSecurityScheme: { scheme: 'Bearer' } })
      assert.equal(now.body.url, undefined)
      assert.equal(old.headers.get('vary')?.includes('A2A-Version'), true)
    }
    const needs = await required.call('GET', '/.well-known/agent-card.json')
    assert.deepEqual(needs.body.security, [{ bearer: [] }, { apiKey: [] }])
    const refused = await required.call('POST', '/a2a', {
      body: { jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: 'x' } },
    })
    assert.deepEqual(
      [refused.status, refused.body.jsonrpc, refused.body.error.data[0].metadata.code],
      [401, '2.0', 'unauthorized'],
    )
  })
})
