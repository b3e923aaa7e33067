// The routes for `useChat`: what a request may and may not do. The real clients of each version are in
// test/clients.

import * as sdk from 'ai'
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { dataUrl, pngOf } from '../support/sample-files.ts'
import { sharedMcpServer } from '../support/shared-mcp-server.ts'
import { calls, type Json, says, someone } from '../support/test-server.ts'
import { linesOfChat, uiChat, untilLine, untilReady } from '../support/ui-chat-client.ts'

const { server, effects } = sharedMcpServer()

const chatOf = (user: string, id: string, body: object = {}) =>
  uiChat(sdk, { baseUrl: () => server.polylog.baseUrl, user, id, body })
const runsOf = async (user: string) => (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]

let amount = 50_000

describe('a request for useChat', () => {
  const question = (text: string) => ({ role: 'user', parts: [{ type: 'text', text }] })

  test('cannot decide, read or stop what belongs to another user', async () => {
    const [user, other] = [someone('owner'), someone('other')]
    amount += 1
    await server.provider.script([calls(['charge', { amount }]), says('Done.')], user)
    const chat = chatOf(user, `chat-${user}`)
    await chat.sendMessage({ text: user })
    const [call] = chat.lastMessage?.parts.filter(sdk.isToolUIPart) ?? []
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
    const otherChat = chatOf(other, `chat-${other}`)
    await otherChat.sendMessage({ text: other })
    const inOtherChat = await post(other, `chat-${other}`)
    const stream = await server.call('GET', `/v1/ui/chat/chat-${user}/stream`, { user: other })
    const stop = await server.call('POST', `/v1/ui/chat/chat-${user}/stop`, { user: other, body: {} })

    assert.deepEqual([byOther.status, byOther.body.code], [404, 'conversation_not_found'])
    assert.deepEqual([inOtherChat.status, inOtherChat.body.code], [404, 'tool_confirmation_not_found'])
    assert.equal(stream.status, 204)
    assert.deepEqual(stop.body, { stopped: [], stopping: [] })
    assert.equal((await runsOf(user))[0]?.status, 'awaiting_input')
    assert.ok(!effects.lines().includes(`charge ${amount}`))
  })

  test('that brings nothing to do is refused with a sentence', async () => {
    for (const [messages, code] of [
      [[question(' ')], 'messages_or_prompt_required'],
      [[{ role: 'assistant', parts: [] }], 'messages_or_prompt_required'],
      [[{ role: 'user', parts: [{ type: 'hologram' }] }], 'unsupported_content'],
      [[{ role: 'user', parts: [{ type: 'file', url: 'https://pictures.example/1.png' }] }], 'file_url_refused'],
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

  test('cannot decide in one chat what another chat of the same user asked', async () => {
    const user = someone()
    amount += 1
    await server.provider.script([calls(['charge', { amount }]), says('Done.')], user)
    const asking = chatOf(user, `asking-${user}`)
    await asking.sendMessage({ text: user })
    const [call] = asking.lastMessage?.parts.filter(sdk.isToolUIPart) ?? []
    const other = `other-${user}`
    await server.provider.script([says('Hi.')], other)
    await chatOf(user, other).sendMessage({ text: other })

    const answer = await server.call('POST', '/v1/ui/chat', {
      user,
      body: {
        id: other,
        messages: [
          {
            role: 'assistant',
            parts: [
              {
                type: 'tool-charge',
                state: 'approval-responded',
                approval: { id: call?.approval?.id, approved: true },
              },
            ],
          },
        ],
      },
    })

    assert.deepEqual([answer.status, answer.body.code], [404, 'tool_confirmation_not_found'])
    assert.ok(!effects.lines().includes(`charge ${amount}`))
  })

  test('with a new question while an approval is open: the call is not run, and the question is answered', async () => {
    const user = someone()
    amount += 1
    await server.provider.script([calls(['charge', { amount }]), says('Something else.')], user)
    const chat = chatOf(user, `chat-${user}`)
    await chat.sendMessage({ text: user })

    await chat.sendMessage({ text: `${user}, never mind` })

    assert.deepEqual(linesOfChat(chat), ['step-start', 'text done: Something else.'])
    assert.ok(!effects.lines().includes(`charge ${amount}`))
    assert.deepEqual(
      (await runsOf(user)).map(({ status }) => status),
      ['succeeded', 'cancelled'],
    )
  })

  test('that resumes right after a decision elsewhere gets what follows it', async () => {
    const user = someone()
    amount += 1
    const slowly = [{ text: ['Charged.'] }, { stall: true as const }, { finish: 'stop' }]
    await server.provider.script([calls(['charge', { amount }]), slowly], user)
    const chat = chatOf(user, `chat-${user}`)
    await chat.sendMessage({ text: user })
    const [call] = chat.lastMessage?.parts.filter(sdk.isToolUIPart) ?? []
    await server.reaches(user, chat.lastMessage?.id ?? '', 'awaiting_input')

    await server.call('POST', `/v1/tool-confirmations/${call?.approval?.id}/confirm`, { user })
    const resuming = chat.resumeStream()
    await untilLine(chat, 'Charged.')
    await server.provider.release()
    await resuming

    assert.equal(linesOfChat(chat).at(-1), 'text done: Charged.')
  })

  test('for another answer while an approval is open asks the question again', async () => {
    const user = someone()
    amount += 1
    await server.provider.script([calls(['charge', { amount }]), says('Without charging.')], user)
    const chat = chatOf(user, `chat-${user}`)
    await chat.sendMessage({ text: user })

    await chat.regenerate()

    assert.deepEqual(linesOfChat(chat), ['step-start', 'text done: Without charging.'])
    assert.ok(!effects.lines().includes(`charge ${amount}`))
    const asked = JSON.stringify((await server.asked(user))[1]?.body.messages)
    assert.doesNotMatch(asked, /charge/)
  })

  test('with very many answers is refused', async () => {
    const user = someone()
    await server.provider.script([says('Hi.')], user)
    await chatOf(user, `chat-${user}`).sendMessage({ text: user })
    const approval = { type: 'tool-x', state: 'approval-responded', approval: { id: 'a', approved: true } }
    const parts = Array.from({ length: 201 }, () => approval)

    const answer = await server.call('POST', '/v1/ui/chat', {
      user,
      body: { id: `chat-${user}`, messages: [{ role: 'assistant', parts }] },
    })

    assert.deepEqual([answer.status, answer.body.code], [400, 'batch_size_exceeded'])
  })

  test('with a new question while the model talks waits for its turn', async () => {
    const user = someone()
    const slowly = [{ text: ['One'] }, { stall: true as const }, { finish: 'stop' }]
    await server.provider.script([slowly, says('Two.')], user)
    const first = chatOf(user, `chat-${user}`)
    const asking = first.sendMessage({ text: user })
    await untilLine(first, 'One')
    const second = chatOf(user, `chat-${user}`)
    const queueing = second.sendMessage({ text: `${user} again` })
    await server.reaches(user, first.lastMessage?.id ?? '', 'running')

    await server.provider.release()
    await Promise.all([asking, queueing])

    assert.deepEqual([linesOfChat(first).at(-1), linesOfChat(second).at(-1)], ['text done: One', 'text done: Two.'])
  })
})

describe('files', () => {
  test('in a question are stored with it and reach the model, also those that were uploaded before', async () => {
    const user = someone()
    const id = `chat-${user}`
    await server.provider.script([says('A dot.'), says('The same.')], user)
    const chat = chatOf(user, id)
    const url = dataUrl('image/png', pngOf(9))

    await chat.sendMessage({ text: user, files: [{ type: 'file', mediaType: 'image/png', filename: 'dot.png', url }] })
    const files = (await server.call('GET', '/v1/files', { user })).body.data as Json[]
    const stored = { type: 'file' as const, mediaType: 'image/png', url: `/v1/files/${files[0]?.id}/content` }
    await chat.sendMessage({ text: `${user} again`, files: [stored] })

    assert.deepEqual(linesOfChat(chat), ['step-start', 'text done: The same.'])
    assert.equal(files.length, 1, 'the history that comes again stores nothing')
    for (const { body } of await server.asked(user)) assert.ok(JSON.stringify(body.messages?.at(-1)).includes(url))
    const messages = (await server.call('GET', `/v1/conversations/${id}/messages`, { user })).body as unknown as Json[]
    assert.deepEqual(
      messages
        .filter(({ role }) => role === 'user')
        .map(({ parts }) => (parts as Json[]).find(({ type }) => type === 'file')?.fileId),
      [files[0]?.id, files[0]?.id],
    )
  })

  test('of another user do not exist', async () => {
    const [user, other] = [someone('owner'), someone('other')]
    const upload = await fetch(`${server.polylog.baseUrl}/v1/files?userId=${user}&name=dot.png`, {
      method: 'POST',
      body: new Uint8Array(pngOf(9)),
    })
    const { id } = (await upload.json()) as { id: string }

    const answer = await server.call('POST', '/v1/ui/chat', {
      user: other,
      body: { id: 'x', messages: [{ role: 'user', parts: [{ type: 'file', url: `/v1/files/${id}/content` }] }] },
    })

    assert.deepEqual([answer.status, answer.body.code], [404, 'file_not_found'])
  })
})

describe('tools of the client', () => {
  const locate = { description: 'Where the user is.', inputSchema: { type: 'object', properties: {} } }

  /** A chat that waits for the result of `locate`. */
  async function waitingChat(...scripts: Parameters<typeof server.provider.script>[0]) {
    const user = someone()
    const id = `chat-${user}`
    await server.provider.script([calls(['locate', {}, 'call_a']), ...scripts], user)
    const chat = chatOf(user, id, { tools: { locate } })
    await chat.sendMessage({ text: user })
    const post = async (parts: object[], messageId?: string) =>
      await server.call('POST', '/v1/ui/chat', {
        user,
        body: { id, messages: [{ role: 'assistant', parts, ...(messageId === undefined ? {} : { id: messageId }) }] },
      })
    return { user, id, chat, post }
  }

  const result = (toolCallId: string, output: unknown) => ({
    type: 'tool-locate',
    state: 'output-available',
    toolCallId,
    input: { forged: true },
    output,
  })

  test('may come as a list or by name, and with the names of other front ends', async () => {
    const list = [{ name: 'locate', ...locate }]
    const other = { locate: { description: 'Where?', parameters: locate.inputSchema } }
    for (const tools of [list, { locate }, other]) {
      const user = someone()
      await server.provider.script([says('Hi.')], user)
      await chatOf(user, `chat-${user}`, { tools }).sendMessage({ text: user })
      const [request] = await server.asked(user)
      const offered = (request?.body['tools'] ?? []) as { function: { name: string; parameters: object } }[]
      assert.deepEqual(
        offered.find(({ function: { name } }) => name === 'locate')?.function.parameters,
        locate.inputSchema,
      )
    }
    const conflict = await server.call('POST', '/v1/ui/chat', {
      user: someone(),
      body: {
        id: 'x',
        messages: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
        tools: { current_time: locate },
      },
    })
    assert.equal(conflict.body.code, 'client_tool_conflict')
  })

  test('have results that are believed only for calls that wait, and without their arguments', async () => {
    const { user, chat, post } = await waitingChat(says('Cold.'))

    const unknown = await post([result('call_of_nobody', 1), { ...result('call_a', 1), providerExecuted: true }])
    const answer = await post([result('call_of_nobody', 1), result('call_a', 'Oslo')], chat.lastMessage?.id)

    assert.deepEqual([unknown.status, unknown.body.code], [400, 'messages_or_prompt_required'])
    assert.match(answer.text, /Cold\./)
    const messages = JSON.stringify((await server.asked(user))[1]?.body.messages)
    assert.match(messages, /Oslo/)
    assert.doesNotMatch(messages, /forged/)
  })

  test('take no result from another chat, even of the same user', async () => {
    const { user, chat } = await waitingChat(says('Cold.'))
    const other = `other-${user}`
    await server.provider.script([says('Hi.')], other)
    await chatOf(user, other).sendMessage({ text: other })

    const answer = await server.call('POST', '/v1/ui/chat', {
      user,
      body: {
        id: other,
        messages: [{ role: 'assistant', id: chat.lastMessage?.id, parts: [result('call_a', 'Oslo')] }],
      },
    })

    assert.deepEqual([answer.status, answer.body.code], [400, 'messages_or_prompt_required'])
    assert.equal(
      (await server.call('GET', `/v1/agent/runs/${chat.lastMessage?.id}`, { user })).body.status,
      'awaiting_input',
    )
  })

  test('have one result: a request that is repeated gets the same rest, whatever it says', async () => {
    const { user, chat, post } = await waitingChat(says('Cold.'))
    const first = await post([result('call_a', 'Oslo')])
    const again = await post([result('call_a', 'Oslo')])
    const other = await post([result('call_a', 'Rome')], chat.lastMessage?.id)

    assert.equal(again.text, first.text)
    assert.equal(other.text, first.text)
    assert.match(first.text, /"output":"Oslo"/)
    assert.equal((await server.asked(user)).length, 2)
  })

  test('are answered one at a time: the stream ends again while another call waits', async () => {
    const user = someone()
    const id = `chat-${user}`
    await server.provider.script([calls(['locate', {}, 'call_a'], ['locate', {}, 'call_b']), says('Both.')], user)
    const chat = chatOf(user, id, { tools: { locate } })
    await chat.sendMessage({ text: user })
    const post = async (...parts: object[]) =>
      await server.call('POST', '/v1/ui/chat', { user, body: { id, messages: [{ role: 'assistant', parts }] } })

    const first = await post(result('call_a', 1))
    const second = await post(result('call_a', 1), result('call_b', 2))

    assert.match(first.text, /"tool-output-available","toolCallId":"call_a","providerExecuted":true.*\[DONE\]/s)
    assert.doesNotMatch(first.text, /call_b|start-step/)
    assert.match(second.text, /Both\./)
  })

  test('are open beside an approval: each is answered when the user is ready', async () => {
    const user = someone()
    const id = `chat-${user}`
    amount += 1
    await server.provider.script([calls(['locate', {}, 'call_a'], ['charge', { amount }]), says('Both.')], user)
    const chat = chatOf(user, id, { tools: { locate } })
    await chat.sendMessage({ text: user })
    const approval = chat.lastMessage?.parts
      .filter(sdk.isToolUIPart)
      .find((part) => part.state === 'approval-requested')

    await chat.addToolOutput({ tool: 'locate' as never, toolCallId: 'call_a', output: 'Oslo' })
    await untilReady(chat)
    assert.ok(!effects.lines().includes(`charge ${amount}`))
    assert.equal(chat.posts, 2)
    await chat.addToolApprovalResponse({ id: approval?.approval?.id ?? '', approved: true })
    await untilLine(chat, 'Both.')
    await untilReady(chat)

    assert.ok(effects.lines().includes(`charge ${amount}`))
    assert.equal((await runsOf(user)).length, 1)
  })

  test('are cancelled by a new question', async () => {
    const { user, chat } = await waitingChat(says('Else.'))

    await chat.sendMessage({ text: `${user}, something else` })

    assert.equal(linesOfChat(chat).at(-1), 'text done: Else.')
    assert.deepEqual(
      (await runsOf(user)).map(({ status }) => status),
      ['succeeded', 'cancelled'],
    )
  })
})
