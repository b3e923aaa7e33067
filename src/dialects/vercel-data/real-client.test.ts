// Every scenario read by the real client of this wire, `@ai-sdk/ui-utils`: over a socket, in
// chunks cut anywhere, and used as its `useChat` hook does, which posts again if it finds tool
// results without an answer.

import fastCheck from 'fast-check'
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { framesOf, textOf } from '../../../test/contracts/dialect-contract.ts'
import type { Scenario } from '../../../test/scenarios/journal-builder.ts'
import { type ScenarioName, scenarioNamed, scenarios } from '../../../test/scenarios/scenarios.ts'
import { bytesOfText, cutBytes, type Pieces, piecesByEvent } from '../../../test/support/byte-pieces.ts'
import { type Chat, chat, ReplayServer } from '../../../test/support/vercel-chat.ts'
import { vercelDataDialect } from './vercel-data.ts'

type Seen = {
  text: string
  reasoning?: string
  tools?: string[]
  sources?: string[]
  /** Custom items, from `useChat().data`. */
  data?: string[]
  /** The finish reason that `onFinish` got, or the error that was thrown instead. */
  finish: string
}

const created = 'conversation.created conversation-1'
const asked = 'tool.awaiting_input confirmation-1'
const hello = '{"to":"bob","text":"hello"}'
const stopped =
  '{"outcome":"cancelled","error":{"code":"tool_cancelled","message":"The run ended before this call finished."}}'

const seen: Readonly<Record<ScenarioName, Seen>> = {
  'plain answer': { text: 'Grüße, 世界 🙂\nand "bye".', data: [created], finish: 'stop' },
  reasoning: { text: 'Sixteen.', reasoning: 'A spider has eight legs.', finish: 'stop' },
  'queued behind another run': { text: 'Then it rained.', finish: 'stop' },
  'state of a remote agent': { text: 'To Oslo, then.', finish: 'stop' },
  'answer rejected and repaired': { text: 'Sure: one.\n\n{"count":1}', finish: 'stop' },
  'older messages cut and summarised': { text: 'In Kyoto.', finish: 'stop' },
  'large truncated output': {
    text: 'It is long.',
    tools: [
      `read_notes {"id":"book"} = {"truncated":true,"fullLength":3000000,"preview":"${'chapter one '.repeat(400)}"}`,
    ],
    finish: 'stop',
  },
  'one tool': {
    text: 'Let me look.\n\nIt is 03:04.',
    tools: ['current_time {"timezone":"UTC"} = {"time":"03:04"}'],
    data: [created],
    finish: 'stop',
  },
  'remote turn': {
    text: 'One moment.\n\nThe order is being sent.\n\nIt is ordered.',
    tools: ['order_paper {"sheets":500} = {"order":7}'],
    finish: 'stop',
  },
  'parallel tools': {
    text: '04:04 and 22:04.',
    tools: [
      'current_time {"timezone":"Europe/Rome"} = {"time":"04:04"}',
      'current_time {"timezone":"America/Lima"} = {"time":"22:04"}',
    ],
    finish: 'stop',
  },
  'provider-run search': {
    text: 'Let me search. The home team won.',
    tools: ['web_search {"query":"final"} = [{"url":"https://news.example/final"}]'],
    sources: ['https://news.example/final The final'],
    finish: 'stop',
  },
  files: {
    text: 'Here it is.',
    tools: ['brighten {"by":2} = "Brighter:\\n[bright.png, image/png, 35 KB]"'],
    finish: 'stop',
  },
  'tool threw': {
    text: 'I could not read them.',
    tools: [
      'read_notes {"id":"missing"} = {"outcome":"threw","error":{"code":"tool_failed","message":"read_notes failed: the disk is gone"}}',
    ],
    finish: 'stop',
  },
  'tool failed politely': {
    text: 'There is no such note.',
    tools: [
      'read_notes {"id":"nothing"} = {"outcome":"failed","error":{"code":"tool_failed","message":"There is no note “nothing”."},"output":{"found":false}}',
    ],
    finish: 'stop',
  },
  'tool with bare arguments': {
    text: 'I do not know.',
    tools: [
      'current_time {"input":"UTC"} = {"outcome":"failed","error":{"code":"tool_input_invalid","message":"The arguments do not fit: an object is needed."}}',
    ],
    finish: 'stop',
  },
  'tool confirmed': {
    text: 'I told him.',
    tools: [`send_message ${hello} = {"messageId":"sent-1"}`],
    data: [created, asked],
    finish: 'stop',
  },
  'edited while confirming': {
    text: 'I told him.',
    tools: ['send_message {"to":"bob","text":"good evening"} = {"messageId":"sent-1"}'],
    data: [created, asked],
    finish: 'stop',
  },
  'tool denied': {
    text: 'Then not.',
    tools: [`send_message ${hello} = {"outcome":"denied","error":{"code":"tool_denied","message":"Not now."}}`],
    data: [created, asked],
    finish: 'stop',
  },
  'confirmation expired': {
    text: 'Nobody answered.',
    tools: [
      `send_message ${hello} = {"outcome":"denied","error":{"code":"tool_expired","message":"Nobody decided in time."}}`,
    ],
    data: [created, asked],
    finish: 'stop',
  },
  'cancelled while a person is awaited': {
    text: '',
    tools: [`send_message ${hello} = ${stopped}`],
    data: [created, asked],
    finish: 'other',
  },
  'unknown outcome': {
    text: 'Please check with Bob.',
    tools: [
      `send_message ${hello} = {"outcome":"unknown","error":{"code":"tool_outcome_unknown","message":"Nobody knows whether this call happened; it was not run again."}}`,
    ],
    data: [created, asked, 'tool.awaiting_input confirmation-2'],
    finish: 'stop',
  },
  'one confirmed beside one that runs': {
    text: 'Done.',
    tools: [`send_message ${hello} = {"messageId":"sent-1"}`, 'current_time {} = {"time":"03:04"}'],
    data: [asked],
    finish: 'stop',
  },
  question: { text: 'For when?\n\nBooked.', data: ['input.required question-1'], finish: 'stop' },
  'tool of the client': {
    text: 'Let me see.\n\nIt is cold in Oslo.',
    tools: ['get_location {"unit":"celsius"} = {"city":"Oslo"}'],
    data: [created],
    finish: 'stop',
  },
  'failed tool of the client': {
    text: 'Let me see.\n\nThen I cannot know.',
    tools: [
      'get_location {"unit":"celsius"} = {"outcome":"failed","error":{"code":"tool_failed","message":"No permission."}}',
    ],
    data: [created],
    finish: 'stop',
  },
  'tool of the client beside one that runs': {
    text: 'In Oslo, at night.',
    tools: ['get_location {"unit":"celsius"} = "Oslo"', 'current_time {} = {"time":"03:04"}'],
    finish: 'stop',
  },
  'cancelled while the client is awaited': {
    text: 'Let me see.',
    tools: [`get_location {"unit":"celsius"} = ${stopped}`],
    data: [created],
    finish: 'other',
  },
  'cancelled mid sentence': { text: 'Once upon a', finish: 'other' },
  'cancelled before it began': { text: '', data: [created], finish: 'other' },
  'cancelled during a tool': {
    text: '',
    tools: [
      'current_time {"timezone":"Europe/Rome"} = {"time":"04:04"}',
      `current_time {"timezone":"America/Lima"} = ${stopped}`,
    ],
    finish: 'other',
  },
  'model down': { text: '', data: [created], finish: 'Error: The model could not be reached. Try again.' },
  'out of steps after a tool': {
    text: '',
    tools: ['current_time {} = {"time":"03:04"}'],
    finish: 'Error: The run reached its limit of 1 steps without a final answer.',
  },
  'timed out': { text: 'One, two, ', finish: 'Error: The run took longer than 600 s and was stopped.' },
  'resumed after restart with the same text': { text: 'Roses are red.', finish: 'stop' },
  'superseded after restart': {
    text: 'Roses are \n\nViolets are blue.',
    reasoning: 'A poem about roses.\n\nPerhaps violets.',
    finish: 'stop',
  },
  'superseded by a tool call': {
    text: 'I think \n\nIt is 03:04.',
    tools: ['current_time {} = {"time":"03:04"}'],
    finish: 'stop',
  },
}

function summaryOf({ message, data, finish }: Chat): Seen {
  const tools = message?.toolInvocations?.map((call) => {
    const result = call.state === 'result' ? JSON.stringify(call.result) : 'nothing yet'
    return `${call.toolName} ${JSON.stringify(call.args)} = ${result}`
  })
  const items = data.map((item) => {
    const { type, ...rest } = item as Record<string, string>
    return `${type} ${rest['conversationId'] ?? rest['confirmationId'] ?? rest['interactionId']}`
  })
  const sources = (message?.parts ?? []).flatMap((part) =>
    part.type === 'source' ? [`${part.source.url} ${part.source.title}`] : [],
  )
  return {
    text: message?.content ?? '',
    ...(message?.reasoning === undefined ? {} : { reasoning: message.reasoning }),
    ...(tools === undefined ? {} : { tools }),
    ...(sources.length === 0 ? {} : { sources }),
    ...(items.length === 0 ? {} : { data: items }),
    finish,
  }
}

/** All lines of a run, also those after the end of a stream that waits for a tool of the client. */
function bytesOf(scenario: Scenario): Uint8Array {
  const lines = framesOf(vercelDataDialect, scenario).map(({ text }) => text)
  return bytesOfText(lines.join(''))
}

/** The client without a socket, where a test needs hundreds of streams. */
function answering(text: string): typeof fetch {
  return () => Promise.resolve(new Response(text))
}

describe('the real client', () => {
  const server = new ReplayServer(vercelDataDialect.headers)
  before(() => server.listen())
  after(() => server.close())

  async function replayed(pieces: Pieces): Promise<Chat> {
    server.pieces = pieces
    server.posts = 0
    const result = await chat(server.url)
    assert.equal(server.posts, 1, 'exactly one POST')
    return result
  }

  for (const scenario of scenarios) {
    it(`shows “${scenario.name}” correctly for any division into chunks, and posts once`, async () => {
      const bytes = bytesOf(scenario)
      const oneByteEach = Array.from({ length: Math.min(bytes.length, 600) }, (_, index) => index)

      for (const pieces of [[bytes], piecesByEvent(vercelDataDialect, scenario), cutBytes(bytes, oneByteEach)]) {
        assert.deepEqual(summaryOf(await replayed(pieces)), seen[scenario.name])
      }
    })

    it(`shows “${scenario.name}” the same, wherever the network cuts it`, async () => {
      const bytes = bytesOf(scenario)
      const places = fastCheck.array(fastCheck.nat({ max: bytes.length }), { maxLength: 12 })

      await fastCheck.assert(
        fastCheck.asyncProperty(places, async (at) => {
          assert.deepEqual(summaryOf(await replayed(cutBytes(bytes, at))), seen[scenario.name])
        }),
        { numRuns: 8 },
      )
    })

    it(`never posts again after a connection that was lost in “${scenario.name}”`, async () => {
      for (let count = 0; count < scenario.events.length; count++) {
        const text = textOf(vercelDataDialect, { ...scenario, events: scenario.events.slice(0, count) })

        const { posts } = await chat('http://127.0.0.1', answering(text))

        assert.equal(posts, 1, `after event ${count}`)
      }
    })

    it(`understands “${scenario.name}” also if a row of the journal was unreadable`, async () => {
      for (const missing of scenario.events.slice(0, -1)) {
        const events = scenario.events.filter((event) => event !== missing)

        const { finish, posts } = await chat(
          'http://127.0.0.1',
          answering(new TextDecoder().decode(bytesOf({ ...scenario, events }))),
        )

        const expected = seen[scenario.name].finish
        // Without the end of its last step the reason for the stop is unknown; everything else is the same.
        const known = missing.type === 'step.done' ? [expected, 'unknown', 'tool-calls'] : [expected]
        assert.ok(known.includes(finish), `without ${missing.type}: ${finish}`)
        assert.equal(posts, 1, `without ${missing.type}`)
      }
    })
  }

  it('gives the message the id that the journal has for it', async () => {
    const { message } = await replayed([bytesOf(scenarioNamed('one tool'))])

    assert.equal(message?.id, 'message-1')
  })

  it('keeps an open confirmation with the message and shows the call as not answered', async () => {
    const scenario = scenarioNamed('tool confirmed')
    const parked = scenario.events.findIndex((event) => event.type === 'run.state' && event.data.to === 'waiting_user')
    const text = textOf(vercelDataDialect, { ...scenario, events: scenario.events.slice(0, parked + 1) })

    const { message } = await replayed([bytesOfText(text)])

    assert.equal(message?.toolInvocations?.[0]?.state, 'call')
    assert.deepEqual(message?.annotations, [
      {
        type: 'tool.awaiting_input',
        toolCallId: 'call-1',
        toolName: 'send_message',
        confirmationId: 'confirmation-1',
        input: { to: 'bob', text: 'hello' },
        message: 'Send “hello” to Bob',
      },
    ])
  })

  it('adds up the tokens of all steps', async () => {
    const { usage } = await replayed([bytesOf(scenarioNamed('one tool'))])

    assert.deepEqual(usage, { promptTokens: 20, completionTokens: 10, totalTokens: 30 })
  })

  it('counts the steps of the run as steps of one message', async () => {
    const { message } = await replayed([bytesOf(scenarioNamed('one tool'))])

    assert.deepEqual(
      message?.parts.map(({ type }) => type),
      ['step-start', 'text', 'tool-invocation', 'step-start', 'text'],
    )
  })
})
