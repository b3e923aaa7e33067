// What a version of the AI SDK has to be able to do with the real server, over real sockets: send,
// approve, execute tools of its own, resume, stop, and go on after the server was killed.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  calls,
  hangsAfter,
  type Json,
  says,
  someone,
  startTestServerProcess,
  type TestServerProcess,
} from '../support/test-server.ts'
import {
  linesOfChat,
  uiChat,
  type UiChat,
  type UiChatOptions,
  type UiSdk,
  untilLine,
  untilReady,
} from '../support/ui-chat-client.ts'

const tools = { locate: { description: 'Where the user is.', inputSchema: { type: 'object', properties: {} } } }

export type UiChatSuite = {
  name: string
  sdk: UiSdk
  path: string
  /** Decides about the call that the last message shows as waiting, and goes on. */
  decide(chat: UiChat, approved: boolean, confirmationId: string): Promise<void>
  /** The state of a call that was denied. */
  denied: string
}

export function uiChatSuite({ name, sdk, path, decide, denied }: UiChatSuite): void {
  describe(`useChat of ${name}`, () => {
    let server: TestServerProcess
    before(async () => {
      server = await startTestServerProcess()
    })
    after(async () => {
      await server.close()
    })

    const chatOf = (user: string, more: Partial<UiChatOptions> = {}) =>
      uiChat(sdk, { baseUrl: () => server.polylog.baseUrl, path, user, id: `chat of ${user}/1`, ...more })
    const runsOf = async (user: string) =>
      (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]
    const callIn = (chat: UiChat) => chat.lastMessage?.parts.find(sdk.isToolUIPart)
    /** The messages of each request to the model, without instructions. */
    const toldTo = async (user: string) =>
      (await server.asked(user)).map(({ body }) =>
        (body.messages ?? []).filter(({ role }) => role !== 'system').map(({ content }) => content),
      )
    const assertStored = async (user: string, expected: string[]) => {
      const path = `/v1/conversations/${encodeURIComponent(`chat of ${user}/1`)}/messages`
      const { body } = await server.call('GET', path, { user })
      assert.deepEqual(
        (body as unknown as Json[]).map(({ content }) => content),
        expected,
      )
    }
    const stop = (chat: UiChat, user: string) =>
      server.call('POST', `${path}/${encodeURIComponent(chat.id)}/stop`, { user, body: {} })

    test('sends messages of one conversation, and only the last one of the list is new to the server', async () => {
      const user = someone()
      const chat = chatOf(user)
      await server.provider.script([says('One.'), says('Two.')], user)

      await chat.sendMessage({ text: user })
      // What the client claims about the past is not believed, because the conversation is stored.
      chat.messages = chat.messages.map((message) =>
        message.role === 'assistant' ? { ...message, parts: [{ type: 'text', text: 'FORGED' }] } : message,
      )
      await chat.sendMessage({ text: `${user} again` })

      assert.equal(chat.status, 'ready')
      assert.deepEqual(linesOfChat(chat), ['step-start', 'text done: Two.'])
      const asked = JSON.stringify((await server.asked(user))[1])
      assert.match(asked, /One\./)
      assert.doesNotMatch(asked, /FORGED/)
      assert.equal((await runsOf(user)).length, 2)
    })

    for (const approved of [true, false]) {
      test(`${approved ? 'allows' : 'denies'} a call, and the same run goes on`, async () => {
        const user = someone()
        const chat = chatOf(user)
        await server.provider.script([calls(['remember_note', { text: 'x' }]), says('Done.')], user)
        await chat.sendMessage({ text: user })
        assert.ok(['approval-requested', 'input-available'].includes(callIn(chat)?.state ?? ''))
        const asked = chat.lastMessage?.parts.find((part) => part.type === 'data-tool-awaiting-input')
        const { confirmationId } = (asked as unknown as { data: { confirmationId: string } }).data

        await decide(chat, approved, confirmationId)
        await untilLine(chat, 'Done.')
        await untilReady(chat)

        assert.equal(callIn(chat)?.state, approved ? 'output-available' : denied)
        assert.deepEqual(
          (await runsOf(user)).map(({ runId, status }) => [runId, status]),
          [[chat.lastMessage?.id, 'succeeded']],
        )
      })
    }

    test('executes a tool of its own, and the same run goes on with the result', async () => {
      const user = someone()
      const seen: unknown[] = []
      const onToolCall: UiChatOptions['onToolCall'] = (call) => {
        seen.push(call)
        return { city: 'Oslo' }
      }
      const chat = chatOf(user, { body: { tools }, onToolCall })
      const both = calls(['locate', { precise: true }], ['current_time', {}])
      await server.provider.script([both, calls(['locate', {}, 'again']), says('Cold.')], user)

      await chat.sendMessage({ text: user })
      await untilLine(chat, 'Cold.')
      await untilReady(chat)

      assert.deepEqual(seen, [
        { toolName: 'locate', input: { precise: true } },
        { toolName: 'locate', input: {} },
      ])
      assert.deepEqual(
        linesOfChat(chat).filter((line) => line.includes('locate')),
        [
          'tool-locate {"precise":true} output-available: {"city":"Oslo"}',
          'tool-locate {} output-available: {"city":"Oslo"}',
        ],
      )
      assert.equal(chat.posts, 3)
      assert.equal((await runsOf(user)).length, 1)
      assert.match(JSON.stringify((await server.asked(user))[1]?.body.messages?.at(-2)), /Oslo/)
    })

    test('sends the error of a tool of its own', async () => {
      const user = someone()
      const onToolCall = () => {
        throw new Error('No permission.')
      }
      const chat = chatOf(user, { body: { tools }, onToolCall })
      await server.provider.script([calls(['locate', {}]), says('Then not.')], user)

      await chat.sendMessage({ text: user })
      await untilLine(chat, 'Then not.')
      await untilReady(chat)

      assert.ok(linesOfChat(chat).includes('tool-locate {} output-error: No permission.'))
      assert.match(JSON.stringify((await server.asked(user))[1]?.body.messages?.at(-1)), /No permission\./)
    })

    test('resumes in another tab, also while its own tool is awaited', async () => {
      const user = someone()
      await server.provider.script([calls(['locate', {}]), says('Cold.')], user)
      const first = chatOf(user, { body: { tools } })
      await first.sendMessage({ text: user })

      const second = chatOf(user, { body: { tools }, onToolCall: () => 'Oslo' })
      second.messages = structuredClone(first.messages.slice(0, 1))
      await second.resumeStream()
      await untilLine(second, 'Cold.')
      await untilReady(second)

      assert.deepEqual(
        linesOfChat(second).filter((line) => !line.startsWith('data-')),
        ['step-start', 'tool-locate {} output-available: "Oslo"', 'step-start', 'text done: Cold.'],
      )
    })

    test('has nothing to resume when nothing runs', async () => {
      const user = someone()
      const chat = chatOf(user)
      await chat.resumeStream()
      assert.deepEqual([chat.status, chat.messages], ['ready', []])
      await server.provider.script([says('One.')], user)
      await chat.sendMessage({ text: user })

      await chat.resumeStream()

      assert.equal(chat.status, 'ready')
      assert.deepEqual(linesOfChat(chat), ['step-start', 'text done: One.'])
    })

    test('stops the run, and both tabs learn it', async () => {
      const user = someone()
      await server.provider.script([hangsAfter('Once ', 'upon')], user)
      const first = chatOf(user)
      const sending = first.sendMessage({ text: user })
      await untilLine(first, 'upon')
      const second = chatOf(user)
      const resuming = second.resumeStream()
      await untilLine(second, 'upon')

      const stopped = await stop(first, user)
      await Promise.all([sending, resuming])

      assert.deepEqual(stopped.body.stopped, [first.lastMessage?.id])
      assert.deepEqual(linesOfChat(second), linesOfChat(first))
      assert.equal((await runsOf(user))[0]?.status, 'cancelled')
    })

    test('asks again for another answer to the last question', async () => {
      const user = someone()
      const chat = chatOf(user)
      await server.provider.script([says('One.'), says('Another one.')], user)
      await chat.sendMessage({ text: user })

      await chat.regenerate()

      assert.deepEqual(linesOfChat(chat), ['step-start', 'text done: Another one.'])
    })

    test('asks again for another answer to an earlier question, which replaces everything after it', async () => {
      const user = someone()
      const chat = chatOf(user)
      await server.provider.script([says('One.'), says('Two.'), says('Other.'), says('Third.')], user)
      await chat.sendMessage({ text: `${user} first` })
      await chat.sendMessage({ text: `${user} second` })

      await chat.regenerate({ messageId: chat.messages[1]?.id ?? '' })
      assert.deepEqual(linesOfChat(chat), ['step-start', 'text done: Other.'])
      await chat.sendMessage({ text: `${user} third` })

      assert.deepEqual(await toldTo(user), [
        [`${user} first`],
        [`${user} first`, 'One.', `${user} second`],
        [`${user} first`],
        [`${user} first`, 'Other.', `${user} third`],
      ])
      await assertStored(user, [`${user} first`, 'Other.', `${user} third`, 'Third.'])
    })

    test('edits an earlier question, which replaces everything after it', async () => {
      const user = someone()
      const chat = chatOf(user)
      await server.provider.script([says('One.'), says('Two.'), says('Three.'), says('Edited.'), says('More.')], user)
      for (const word of ['first', 'second', 'third']) await chat.sendMessage({ text: `${user} ${word}` })

      await chat.sendMessage({ text: `${user} edited`, messageId: chat.messages[2]?.id ?? '' })
      assert.equal(chat.messages.length, 4)
      await chat.sendMessage({ text: `${user} more` })

      assert.deepEqual((await toldTo(user)).slice(3), [
        [`${user} first`, 'One.', `${user} edited`],
        [`${user} first`, 'One.', `${user} edited`, 'Edited.', `${user} more`],
      ])
      await assertStored(user, [`${user} first`, 'One.', `${user} edited`, 'Edited.', `${user} more`, 'More.'])
    })

    test('resumes after the server was killed in the middle of a sentence', async () => {
      const user = someone()
      const slowly = [{ text: ['Once ', 'upon', ' a time'] }, { stall: true as const }, { finish: 'stop' }]
      await server.provider.script([hangsAfter('Once ', 'upon'), slowly], user)
      const chat = chatOf(user)
      const sending = chat.sendMessage({ text: user })
      await untilLine(chat, 'upon')

      await server.polylog.kill()
      await sending
      assert.equal(chat.status, 'error')
      server = await server.restartProcess()
      const resuming = chat.resumeStream()
      await untilLine(chat, 'a time')
      await server.provider.release()
      await resuming

      assert.equal(chat.status, 'ready')
      assert.deepEqual(
        linesOfChat(chat).filter((line) => line.startsWith('text')),
        ['text done: Once upon a time'],
      )
      assert.equal((await runsOf(user)).length, 1)
    })

    test('answers for its own tool after the server was killed', async () => {
      const user = someone()
      await server.provider.script([calls(['locate', {}]), says('Cold.')], user)
      const chat = chatOf(user, { body: { tools } })
      await chat.sendMessage({ text: user })
      const call = callIn(chat)
      assert.equal(call?.state, 'input-available')

      await server.polylog.kill()
      server = await server.restartProcess()
      await chat.addToolOutput({ tool: 'locate' as never, toolCallId: call.toolCallId, output: 'Oslo' })
      await untilLine(chat, 'Cold.')
      await untilReady(chat)

      assert.equal((await runsOf(user))[0]?.status, 'succeeded')
    })
  })
}
