// The routes for `useChat`, with the real chat class and the real transport of AI SDK 6 and 7 over
// real sockets: send, approve, resume and stop.

import * as sdk7 from 'ai'
import * as sdk6 from 'ai-6'
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sharedMcpServer } from '../support/shared-mcp-server.ts'
import { calls, hangsAfter, type Json, says, someone, until } from '../support/test-server.ts'
import { linesOfMessage } from '../support/ui-message-reader.ts'

type Sdk = Pick<
  typeof sdk7,
  'AbstractChat' | 'DefaultChatTransport' | 'isToolUIPart' | 'lastAssistantMessageIsCompleteWithApprovalResponses'
>

const { server, effects } = sharedMcpServer()

class PlainState {
  status: sdk7.ChatStatus = 'ready'
  error: Error | undefined = undefined
  messages: sdk7.UIMessage[] = []
  pushMessage = (message: sdk7.UIMessage) => {
    this.messages = [...this.messages, message]
  }
  popMessage = () => {
    this.messages = this.messages.slice(0, -1)
  }
  replaceMessage = (index: number, message: sdk7.UIMessage) => {
    this.messages = this.messages.with(index, structuredClone(message))
  }
  snapshot = <T>(value: T): T => structuredClone(value)
}

function chatOf(sdk: Sdk, user: string, id: string) {
  class PlainChat extends sdk.AbstractChat<sdk7.UIMessage> {
    constructor() {
      super({
        id,
        state: new PlainState(),
        transport: new sdk.DefaultChatTransport({
          api: `${server.polylog.baseUrl}/v1/ui/chat`,
          body: { userId: user },
          prepareReconnectToStreamRequest: ({ id: chatId }) => ({
            api: `${server.polylog.baseUrl}/v1/ui/chat/${encodeURIComponent(chatId)}/stream?userId=${user}`,
          }),
        }),
        sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithApprovalResponses,
      })
    }
  }
  return new PlainChat()
}

type PlainChat = ReturnType<typeof chatOf>

const linesOf = (chat: PlainChat) => linesOfMessage(chat.lastMessage)
const runsOf = async (user: string) => (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]

/** Waits for an answer that has begun to come. */
async function untilText(chat: PlainChat, text: string): Promise<void> {
  await until(`the text ${text}`, () => (linesOf(chat).some((line) => line.includes(text)) ? true : undefined))
}

let amount = 50_000

for (const [name, sdk] of [
  ['AI SDK 7', sdk7],
  ['AI SDK 6', sdk6 as unknown as Sdk],
] as const) {
  describe(`useChat of ${name}`, () => {
    test('sends messages of one conversation, and only the last one of the list is new to the server', async () => {
      const user = someone()
      const chat = chatOf(sdk, user, `chat of ${user}/1`)
      await server.provider.script([says('One.'), says('Two.')], user)

      await chat.sendMessage({ text: user })
      // What the client claims about the past is not believed, because the conversation is stored.
      chat.messages = chat.messages.map((message) =>
        message.role === 'assistant' ? { ...message, parts: [{ type: 'text', text: 'FORGED' }] } : message,
      )
      await chat.sendMessage({ text: `${user} again` })

      assert.equal(chat.status, 'ready')
      assert.deepEqual(linesOf(chat), ['step-start', 'text done: Two.'])
      const asked = JSON.stringify((await server.asked(user))[1])
      assert.match(asked, /One\./)
      assert.doesNotMatch(asked, /FORGED/)
      assert.equal((await runsOf(user)).length, 2)
    })

    for (const approved of [true, false]) {
      test(`${approved ? 'allows' : 'denies'} a call with the follow-up request, and the same run goes on`, async () => {
        const user = someone()
        const chat = chatOf(sdk, user, `chat-${user}`)
        amount += 1
        const charged = `charge ${amount}`
        await server.provider.script([calls(['charge', { amount }]), says('Done.')], user)
        await chat.sendMessage({ text: user })
        const call = chat.lastMessage?.parts.find(sdk.isToolUIPart)
        assert.equal(call?.state, 'approval-requested')
        assert.ok(!effects.lines().includes(charged))

        await chat.addToolApprovalResponse({ id: call.approval?.id ?? '', approved })
        await untilText(chat, 'Done.')
        await until('the end of the stream', () => (chat.status === 'ready' ? true : undefined))

        const decided = chat.lastMessage?.parts.find(sdk.isToolUIPart)
        assert.equal(decided?.state, approved ? 'output-available' : 'output-denied')
        assert.equal(effects.lines().filter((line) => line === charged).length, approved ? 1 : 0)
        const runs = await runsOf(user)
        assert.deepEqual(
          runs.map(({ runId, status }) => [runId, status]),
          [[chat.lastMessage?.id, 'succeeded']],
        )
      })
    }

    test('resumes a run in another tab, from its beginning, also after a decision', async () => {
      const user = someone()
      const id = `chat-${user}`
      amount += 1
      await server.provider.script([calls(['charge', { amount }]), hangsAfter('Charged, ', 'and')], user)
      const first = chatOf(sdk, user, id)
      await first.sendMessage({ text: user })
      const waiting = chatOf(sdk, user, id)
      await waiting.resumeStream()
      const call = waiting.lastMessage?.parts.find(sdk.isToolUIPart)
      assert.equal(call?.state, 'approval-requested')
      const deciding = first.addToolApprovalResponse({ id: call.approval?.id ?? '', approved: true })
      await untilText(first, 'and')

      const second = chatOf(sdk, user, id)
      const resuming = second.resumeStream()
      await untilText(second, 'and')

      assert.deepEqual(linesOf(second), linesOf(first))
      const stopped = await server.call('POST', `/v1/ui/chat/${id}/stop`, { user, body: {} })
      await Promise.all([resuming, deciding])
      assert.deepEqual(stopped.body.stopped, [second.lastMessage?.id])
      await until('the end of both streams', () =>
        first.status === 'ready' && second.status === 'ready' ? true : undefined,
      )
      assert.equal((await runsOf(user))[0]?.status, 'cancelled')
    })

    test('has nothing to resume when nothing runs', async () => {
      const user = someone()
      const chat = chatOf(sdk, user, `chat-${user}`)
      await chat.resumeStream()
      assert.deepEqual([chat.status, chat.messages], ['ready', []])
      await server.provider.script([says('One.')], user)
      await chat.sendMessage({ text: user })

      const answer = await server.call('GET', `/v1/ui/chat/chat-${user}/stream`, { user })

      assert.equal(answer.status, 204)
    })

    test('asks again for another answer to the last question', async () => {
      const user = someone()
      const chat = chatOf(sdk, user, `chat-${user}`)
      await server.provider.script([says('One.'), says('Another one.')], user)
      await chat.sendMessage({ text: user })

      await chat.regenerate()

      assert.deepEqual(linesOf(chat), ['step-start', 'text done: Another one.'])
      const { body } = await server.call('GET', `/v1/conversations/chat-${user}/messages`, { user })
      assert.doesNotMatch(JSON.stringify(body), /"One\."/)
    })
  })
}

describe('a request for useChat', () => {
  const question = (text: string) => ({ role: 'user', parts: [{ type: 'text', text }] })

  test('cannot decide, read or stop what belongs to another user', async () => {
    const [user, other] = [someone('owner'), someone('other')]
    amount += 1
    await server.provider.script([calls(['charge', { amount }]), says('Done.')], user)
    const chat = chatOf(sdk7, user, `chat-${user}`)
    await chat.sendMessage({ text: user })
    const [call] = chat.lastMessage?.parts.filter(sdk7.isToolUIPart) ?? []
    const forged = {
      role: 'assistant',
      parts: [
        { type: 'tool-charge', state: 'approval-responded', approval: { id: call?.approval?.id, approved: true } },
      ],
    }
    const post = async (as: string, id: string) =>
      await server.call('POST', '/v1/ui/chat', { body: { id, messages: [forged], userId: as } })

    const byOther = await post(other, `chat-${user}`)
    await server.provider.script([says('Hi.')], other)
    const otherChat = chatOf(sdk7, other, `chat-${other}`)
    await otherChat.sendMessage({ text: other })
    const inOtherChat = await post(other, `chat-${other}`)
    const stream = await server.call('GET', `/v1/ui/chat/chat-${user}/stream`, { user: other })
    const stop = await server.call('POST', `/v1/ui/chat/chat-${user}/stop`, { user: other, body: {} })

    assert.deepEqual([byOther.status, byOther.body.code], [404, 'conversation_not_found'])
    assert.deepEqual([inOtherChat.status, inOtherChat.body.code], [404, 'tool_confirmation_not_found'])
    assert.equal(stream.status, 204)
    assert.deepEqual(stop.body, { stopped: [] })
    assert.equal((await runsOf(user))[0]?.status, 'awaiting_input')
    assert.ok(!effects.lines().includes(`charge ${amount}`))
  })

  test('that brings nothing to do is refused with a sentence', async () => {
    for (const [messages, code] of [
      [[question(' ')], 'messages_or_prompt_required'],
      [[{ role: 'assistant', parts: [] }], 'messages_or_prompt_required'],
      [[{ role: 'user', parts: [{ type: 'file', url: 'data:,x' }] }], 'unsupported_content'],
      [[], 'invalid_request'],
    ] as const) {
      const answer = await server.call('POST', '/v1/ui/chat', { body: { id: 'x', messages, userId: someone() } })
      assert.deepEqual([answer.status, answer.body.code], [400, code])
    }
  })

  test('of AI SDK 5 gets the parts that it accepts', async () => {
    const user = someone()
    amount += 1
    await server.provider.script([calls(['charge', { amount }]), says('Done.')], user)

    const answer = await server.call('POST', '/v1/ui/v5/chat', {
      body: { id: `chat-${user}`, messages: [question(user)], userId: user },
    })

    assert.match(answer.text, /"type":"data-tool-awaiting-input"/)
    assert.doesNotMatch(answer.text, /tool-approval-request|finishReason/)
  })
})
