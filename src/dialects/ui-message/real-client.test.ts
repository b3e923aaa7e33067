// What the real readers of this wire, of AI SDK 6 and 7, make of every scenario: in one piece,
// in pieces cut anywhere, over two streams if a person decided, and with rows that were lost.

import fastCheck from 'fast-check'
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isToolUIPart, type UIMessage } from 'ai'
import { textOf } from '../../../test/contracts/dialect-contract.ts'
import { bytesOfText, cutBytes, piecesByEvent } from '../../../test/support/byte-pieces.ts'
import type { Scenario } from '../../../test/scenarios/journal-builder.ts'
import { type ScenarioName, scenarioNamed, scenarios } from '../../../test/scenarios/scenarios.ts'
import { linesOfMessage, type Read, type UiReader, uiReaders } from '../../../test/support/ui-message-reader.ts'
import { endsStream } from '../dialect.ts'
import { uiMessageDialect } from './ui-message.ts'

const dialect = uiMessageDialect()
const replay = uiMessageDialect({ decidedUpTo: Number.MAX_SAFE_INTEGER })

/** The parts of the message in the end, and the error if the run failed. */
const shown: Readonly<Record<ScenarioName, readonly string[]>> = {
  'plain answer': [
    'data-conversation {"conversationId":"conversation-1"}',
    'step-start',
    'text done: Grüße, 世界 🙂\nand "bye".',
  ],
  reasoning: ['step-start', 'reasoning done: A spider has eight legs.', 'text done: Sixteen.'],
  'queued behind another run': ['step-start', 'text done: Then it rained.'],
  'state of a remote agent': [
    'data-context {"layer":"session","patch":{"city":"Rome","draft":true}}',
    'step-start',
    'text done: To Oslo, then.',
    'data-context {"layer":"session","patch":{"city":"Oslo","draft":null}}',
  ],
  'answer rejected and repaired': ['step-start', 'text done: Sure: one.', 'step-start', 'text done: {"count":1}'],
  'older messages cut and summarised': ['step-start', 'text done: In Kyoto.'],
  'large truncated output': [
    'step-start',
    `tool-read_notes {"id":"book"} output-available: {"truncated":true,"fullLength":3000000,"preview":"${'chapter one '.repeat(400)}"}`,
    'step-start',
    'text done: It is long.',
  ],
  'one tool': [
    'data-conversation {"conversationId":"conversation-1"}',
    'step-start',
    'text done: Let me look.',
    'tool-current_time {"timezone":"UTC"} output-available: {"time":"03:04"}',
    'step-start',
    'text done: It is 03:04.',
  ],
  'parallel tools': [
    'step-start',
    'tool-current_time {"timezone":"Europe/Rome"} output-available: {"time":"04:04"}',
    'tool-current_time {"timezone":"America/Lima"} output-available: {"time":"22:04"}',
    'step-start',
    'text done: 04:04 and 22:04.',
  ],
  'remote turn': [
    'step-start',
    'text done: One moment.',
    'tool-order_paper {"sheets":500} output-available: {"order":7}',
    'step-start',
    'text done: The order is being sent.',
    'step-start',
    'text done: It is ordered.',
  ],
  'provider-run search': [
    'step-start',
    'text done: Let me search. ',
    'tool-web_search {"query":"final"} output-available: [{"url":"https://news.example/final"}]',
    'text done: The home team won.',
    'source-url https://news.example/final The final',
    'source-document application/pdf Rules',
  ],
  files: [
    'step-start',
    'tool-brighten {"by":2} output-available: "Brighter:\\n[bright.png, image/png, 35 KB]"',
    'file',
    'step-start',
    'text done: Here it is.',
  ],
  'tool threw': [
    'step-start',
    'tool-read_notes {"id":"missing"} output-error: read_notes failed: the disk is gone',
    'step-start',
    'text done: I could not read them.',
  ],
  'tool failed politely': [
    'step-start',
    'tool-read_notes {"id":"nothing"} output-error: There is no note “nothing”.',
    'step-start',
    'text done: There is no such note.',
  ],
  'tool with bare arguments': [
    'step-start',
    'tool-current_time "UTC" output-error: The arguments do not fit: an object is needed.',
    'step-start',
    'text done: I do not know.',
  ],
  'tool confirmed': [
    'data-conversation {"conversationId":"conversation-1"}',
    'step-start',
    'tool-send_message {"to":"bob","text":"hello"} output-available: {"messageId":"sent-1"}',
    'data-tool-awaiting-input {"confirmationId":"confirmation-1","toolCallId":"call-1","toolName":"send_message","message":"Send “hello” to Bob"}',
    'data-input-resolved {"interactionId":"confirmation-1","resolution":"confirmed"}',
    'step-start',
    'text done: I told him.',
  ],
  'edited while confirming': [
    'data-conversation {"conversationId":"conversation-1"}',
    'step-start',
    'tool-send_message {"to":"bob","text":"good evening"} output-available: {"messageId":"sent-1"}',
    'data-tool-awaiting-input {"confirmationId":"confirmation-1","toolCallId":"call-1","toolName":"send_message","message":"Send “hello” to Bob"}',
    'data-input-resolved {"interactionId":"confirmation-1","resolution":"confirmed"}',
    'step-start',
    'text done: I told him.',
  ],
  'tool denied': [
    'data-conversation {"conversationId":"conversation-1"}',
    'step-start',
    'tool-send_message {"to":"bob","text":"hello"} output-denied',
    'data-tool-awaiting-input {"confirmationId":"confirmation-1","toolCallId":"call-1","toolName":"send_message","message":"Send “hello” to Bob"}',
    'data-input-resolved {"interactionId":"confirmation-1","resolution":"rejected"}',
    'step-start',
    'text done: Then not.',
  ],
  'confirmation expired': [
    'data-conversation {"conversationId":"conversation-1"}',
    'step-start',
    'tool-send_message {"to":"bob","text":"hello"} output-denied',
    'data-tool-awaiting-input {"confirmationId":"confirmation-1","toolCallId":"call-1","toolName":"send_message","message":"Send “hello” to Bob"}',
    'data-input-resolved {"interactionId":"confirmation-1","resolution":"expired"}',
    'step-start',
    'text done: Nobody answered.',
  ],
  'cancelled while a person is awaited': [
    'data-conversation {"conversationId":"conversation-1"}',
    'step-start',
    'tool-send_message {"to":"bob","text":"hello"} output-error: The run ended before this call finished.',
    'data-tool-awaiting-input {"confirmationId":"confirmation-1","toolCallId":"call-1","toolName":"send_message","message":"Send “hello” to Bob"}',
    'data-input-resolved {"interactionId":"confirmation-1","resolution":"closed"}',
  ],
  'unknown outcome': [
    'data-conversation {"conversationId":"conversation-1"}',
    'step-start',
    'tool-send_message {"to":"bob","text":"hello"} output-error: Nobody knows whether this call happened; it was not run again.',
    'data-tool-awaiting-input {"confirmationId":"confirmation-1","toolCallId":"call-1","toolName":"send_message","message":"Send “hello” to Bob"}',
    'data-input-resolved {"interactionId":"confirmation-1","resolution":"confirmed"}',
    'data-tool-awaiting-input {"confirmationId":"confirmation-2","toolCallId":"call-1","toolName":"send_message","message":"Send “hello” to Bob (this may already have happened before a restart)","outcome":"unknown"}',
    'data-input-resolved {"interactionId":"confirmation-2","resolution":"rejected"}',
    'step-start',
    'text done: Please check with Bob.',
  ],
  'one confirmed beside one that runs': [
    'step-start',
    'tool-send_message {"to":"bob","text":"hello"} output-available: {"messageId":"sent-1"}',
    'tool-current_time {} output-available: {"time":"03:04"}',
    'data-tool-awaiting-input {"confirmationId":"confirmation-1","toolCallId":"call-1","toolName":"send_message","message":"Send “hello” to Bob"}',
    'data-input-resolved {"interactionId":"confirmation-1","resolution":"confirmed"}',
    'step-start',
    'text done: Done.',
  ],
  question: [
    'step-start',
    'text done: For when?',
    'data-input-required {"interactionId":"question-1","kind":"choose_one","message":"For when?","options":[{"id":"noon"},{"id":"evening"}],"fields":["time"]}',
    'data-input-resolved {"interactionId":"question-1","resolution":"replied"}',
    'step-start',
    'text done: Booked.',
  ],
  'tool of the client': [
    'data-conversation {"conversationId":"conversation-1"}',
    'step-start',
    'text done: Let me see.',
    'tool-get_location {"unit":"celsius"} output-available: {"city":"Oslo"}',
    'step-start',
    'text done: It is cold in Oslo.',
  ],
  'failed tool of the client': [
    'data-conversation {"conversationId":"conversation-1"}',
    'step-start',
    'text done: Let me see.',
    'tool-get_location {"unit":"celsius"} output-error: No permission.',
    'step-start',
    'text done: Then I cannot know.',
  ],
  'tool of the client beside one that runs': [
    'step-start',
    'tool-get_location {"unit":"celsius"} output-available: "Oslo"',
    'tool-current_time {} output-available: {"time":"03:04"}',
    'step-start',
    'text done: In Oslo, at night.',
  ],
  'cancelled while the client is awaited': [
    'data-conversation {"conversationId":"conversation-1"}',
    'step-start',
    'text done: Let me see.',
    'tool-get_location {"unit":"celsius"} output-error: The run ended before this call finished.',
  ],
  'cancelled mid sentence': ['step-start', 'text done: Once upon a'],
  'cancelled before it began': ['data-conversation {"conversationId":"conversation-1"}'],
  'cancelled during a tool': [
    'step-start',
    'tool-current_time {"timezone":"Europe/Rome"} output-available: {"time":"04:04"}',
    'tool-current_time {"timezone":"America/Lima"} output-error: The run ended before this call finished.',
  ],
  'model down': [
    'data-conversation {"conversationId":"conversation-1"}',
    'error: The model could not be reached. Try again.',
  ],
  'out of steps after a tool': [
    'step-start',
    'tool-current_time {} output-available: {"time":"03:04"}',
    'error: The run reached its limit of 1 steps without a final answer.',
  ],
  'timed out': ['step-start', 'text done: One, two, ', 'error: The run took longer than 600 s and was stopped.'],
  'resumed after restart with the same text': ['step-start', 'text done: Roses are red.'],
  'superseded after restart': [
    'step-start',
    'reasoning done: A poem about roses.',
    'text done: Roses are ',
    'reasoning done: Perhaps violets.',
    'text done: Violets are blue.',
  ],
  'superseded by a tool call': [
    'step-start',
    'text done: I think ',
    'tool-current_time {} output-available: {"time":"03:04"}',
    'step-start',
    'text done: It is 03:04.',
  ],
}

function linesOf({ message, error }: Read): string[] {
  return [...linesOfMessage(message), ...(error === undefined ? [] : [`error: ${error}`])]
}

/** One stream up to each decision, and one after it, as the requests of a chat bring them. */
async function readInTurns(reader: UiReader, scenario: Scenario): Promise<Read> {
  let message: UIMessage | undefined
  let seq = 0
  for (const end of scenario.events.filter((event) => endsStream(dialect, event))) {
    const read = await reader.read([bytesOfText(textOf(dialect, scenario, { seq, index: null }))], message)
    if (read.error !== undefined) return read
    message = read.message
    seq = end.seq
  }
  return { message, error: undefined }
}

for (const reader of uiReaders) {
  describe(`the real client, ${reader.name}`, () => {
    for (const scenario of scenarios) {
      const whole = bytesOfText(textOf(replay, scenario))

      it(`shows “${scenario.name}” as it was, in one stream or over the decisions of a person`, async () => {
        for (const read of [await reader.read([whole]), await reader.read(piecesByEvent(replay, scenario))]) {
          assert.deepEqual(linesOf(read), shown[scenario.name])
          assert.equal(read.message?.id, scenario.runId)
        }
        assert.deepEqual(linesOf(await readInTurns(reader, scenario)), shown[scenario.name])
      })

      it(`shows “${scenario.name}” the same, wherever the network cuts it`, async () => {
        const places = fastCheck.array(fastCheck.nat({ max: whole.length }), { maxLength: 12 })

        await fastCheck.assert(
          fastCheck.asyncProperty(places, async (at) => {
            assert.deepEqual(linesOf(await reader.read(cutBytes(whole, at))), shown[scenario.name])
          }),
          { numRuns: 6 },
        )
      })

      it(`accepts “${scenario.name}” also where a row of the journal was unreadable`, async () => {
        const expected = shown[scenario.name].find((line) => line.startsWith('error: '))
        for (const missing of scenario.events.slice(0, -1)) {
          const events = scenario.events.filter((event) => event !== missing)
          for (const used of [dialect, replay]) {
            const { error } = await reader.read([bytesOfText(textOf(used, { ...scenario, events }))])
            const ended =
              used === replay || !events.some((event) => endsStream(dialect, event) && event.type === 'run.state')
            assert.equal(error === undefined ? undefined : `error: ${error}`, ended ? expected : undefined)
          }
        }
      })
    }

    it('shows a call that waits for a person as one that asks for approval', async () => {
      const { message } = await reader.read([bytesOfText(textOf(dialect, scenarioNamed('tool confirmed')))])
      const [call] = message?.parts.filter(isToolUIPart) ?? []

      assert.equal(call?.state, 'approval-requested')
      assert.equal(call.approval?.id, 'confirmation-1')
    })

    it('shows a call that was allowed as running, also in a replay', async () => {
      const scenario = scenarioNamed('tool confirmed')
      const running = scenario.events.findIndex(({ type }) => type === 'tool.started')
      const events = scenario.events.slice(0, running + 1)

      const { message } = await reader.read([bytesOfText(textOf(replay, { ...scenario, events }))])

      const [call] = message?.parts.filter(isToolUIPart) ?? []
      assert.equal(call?.state, 'input-available')
    })

    it('adds up the tokens of all steps', async () => {
      const { message } = await reader.read([bytesOfText(textOf(dialect, scenarioNamed('one tool')))])

      assert.deepEqual(message?.metadata, { usage: { inputTokens: 20, outputTokens: 10, totalTokens: 30 } })
    })
  })
}
