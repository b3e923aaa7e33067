// The parts of `format=ui-message`, scenario by scenario. What the real clients make of them is
// in real-client.test.ts.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dialectContract, framesOf, textOf } from '../../../test/contracts/dialect-contract.ts'
import { scenario } from '../../../test/scenarios/journal-builder.ts'
import { type ScenarioName, scenarioNamed, scenarios } from '../../../test/scenarios/scenarios.ts'
import type { EventData } from '../../journal/event.ts'
import { endsStream } from '../dialect.ts'
import { uiMessageDialect } from './ui-message.ts'

const dialect = uiMessageDialect()
/** The whole run as one stream, as a client gets it that comes back after the last decision. */
const replay = uiMessageDialect({ decidedUpTo: Number.MAX_SAFE_INTEGER })

dialectContract(dialect)
dialectContract(replay)
dialectContract(uiMessageDialect({ sdk: 5 }))
dialectContract(uiMessageDialect({ endsAtAnswer: 'interaction-1' }))

/** The parts of each run, in order. A run that waited for a person has one stream before the decision and one after. */
const told: Readonly<Record<ScenarioName, string>> = {
  'plain answer':
    'start data-conversation start-step text-start text-delta text-delta text-delta text-delta text-end finish-step finish done',
  reasoning:
    'start start-step reasoning-start reasoning-delta reasoning-delta reasoning-end text-start text-delta text-delta text-end finish-step finish done',
  'queued behind another run': 'start start-step text-start text-delta text-delta text-end finish-step finish done',
  'state of a remote agent':
    'start data-context start-step text-start text-delta data-context text-delta text-end finish-step finish done',
  'answer rejected and repaired':
    'start start-step text-start text-delta text-delta text-end finish-step start-step text-start text-delta text-delta text-end finish-step finish done',
  'older messages cut and summarised':
    'start start-step text-start text-delta text-delta text-end finish-step finish done',
  'large truncated output':
    'start start-step tool-input-available tool-output-available finish-step start-step text-start text-delta text-end finish-step finish done',
  'one tool':
    'start data-conversation start-step text-start text-delta text-delta text-end tool-input-available tool-output-available finish-step start-step text-start text-delta text-delta text-end finish-step finish done',
  'parallel tools':
    'start start-step tool-input-available tool-input-available tool-output-available tool-output-available finish-step start-step text-start text-delta text-end finish-step finish done',
  'remote turn':
    'start start-step text-start text-delta text-end tool-input-available finish-step start-step text-start text-delta text-delta text-end tool-output-available finish-step start-step text-start text-delta text-end finish-step finish done',
  'provider-run search':
    'start start-step text-start text-delta text-delta text-end tool-input-available tool-output-available text-start text-delta source-url source-document text-delta text-end finish-step finish done',
  files:
    'start start-step tool-input-available tool-output-available file finish-step start-step text-start text-delta text-end finish-step finish done',
  'tool threw':
    'start start-step tool-input-available tool-output-error finish-step start-step text-start text-delta text-end finish-step finish done',
  'tool failed politely':
    'start start-step tool-input-available tool-output-error finish-step start-step text-start text-delta text-end finish-step finish done',
  'tool with bare arguments':
    'start start-step tool-input-available tool-output-error finish-step start-step text-start text-delta text-end finish-step finish done',
  'tool confirmed':
    'start data-conversation start-step tool-input-available data-tool-awaiting-input tool-approval-request finish-step finish done' +
    ' ' +
    'start data-input-resolved tool-input-available tool-output-available start-step text-start text-delta text-delta text-end finish-step finish done',
  'edited while confirming':
    'start data-conversation start-step tool-input-available data-tool-awaiting-input tool-approval-request finish-step finish done' +
    ' ' +
    'start data-input-resolved tool-input-available tool-output-available start-step text-start text-delta text-end finish-step finish done',
  'tool denied':
    'start data-conversation start-step tool-input-available data-tool-awaiting-input tool-approval-request finish-step finish done' +
    ' ' +
    'start data-input-resolved tool-output-denied start-step text-start text-delta text-end finish-step finish done',
  'confirmation expired':
    'start data-conversation start-step tool-input-available data-tool-awaiting-input tool-approval-request finish-step finish done' +
    ' ' +
    'start data-input-resolved tool-output-denied start-step text-start text-delta text-end finish-step finish done',
  'cancelled while a person is awaited':
    'start data-conversation start-step tool-input-available data-tool-awaiting-input tool-approval-request finish-step finish done' +
    ' ' +
    'start data-input-resolved tool-output-error message-metadata abort done',
  'unknown outcome':
    'start data-conversation start-step tool-input-available data-tool-awaiting-input tool-approval-request finish-step finish done' +
    ' ' +
    'start data-input-resolved tool-input-available data-tool-awaiting-input tool-approval-request finish done' +
    ' ' +
    'start data-input-resolved tool-output-error start-step text-start text-delta text-end finish-step finish done',
  'one confirmed beside one that runs':
    'start start-step tool-input-available tool-input-available data-tool-awaiting-input tool-approval-request tool-output-available finish-step finish done' +
    ' ' +
    'start data-input-resolved tool-input-available tool-output-available start-step text-start text-delta text-end finish-step finish done',
  question:
    'start start-step text-start text-delta text-end data-input-required finish-step finish done' +
    ' ' +
    'start data-input-resolved start-step text-start text-delta text-end finish-step finish done',
  'tool of the client':
    'start data-conversation start-step text-start text-delta text-end tool-input-available finish-step finish done' +
    ' ' +
    'start tool-output-available start-step text-start text-delta text-delta text-end finish-step finish done',
  'failed tool of the client':
    'start data-conversation start-step text-start text-delta text-end tool-input-available finish-step finish done' +
    ' ' +
    'start tool-output-error start-step text-start text-delta text-end finish-step finish done',
  'tool of the client beside one that runs':
    'start start-step tool-input-available tool-input-available tool-output-available finish-step finish done' +
    ' ' +
    'start tool-output-available start-step text-start text-delta text-end finish-step finish done',
  'cancelled while the client is awaited':
    'start data-conversation start-step text-start text-delta text-end tool-input-available finish-step finish done' +
    ' ' +
    'start tool-output-error message-metadata abort done',
  'cancelled mid sentence': 'start start-step text-start text-delta text-delta text-end finish-step abort done',
  'cancelled before it began': 'start data-conversation abort done',
  'cancelled during a tool':
    'start start-step tool-input-available tool-input-available tool-output-available tool-output-error finish-step message-metadata abort done',
  'model down': 'start data-conversation start-step finish-step error finish done',
  'out of steps after a tool':
    'start start-step tool-input-available tool-output-available finish-step message-metadata error finish done',
  'timed out':
    'start start-step text-start text-delta text-delta text-end finish-step message-metadata error finish done',
  'resumed after restart with the same text':
    'start start-step text-start text-delta text-delta text-delta text-end finish-step finish done',
  'superseded after restart':
    'start start-step reasoning-start reasoning-delta reasoning-end text-start text-delta text-delta text-end reasoning-start reasoning-delta reasoning-end text-start text-delta text-delta text-end finish-step finish done',
  'superseded by a tool call':
    'start start-step text-start text-delta text-end tool-input-available tool-output-available finish-step start-step text-start text-delta text-end finish-step finish done',
}

type Part = { type: string; [field: string]: unknown }

function partsOf(name: ScenarioName, of = dialect): Part[] {
  const frames = framesOf(of, scenarioNamed(name)).map(({ frame }) => frame)
  return frames.filter((frame) => frame.data !== '[DONE]').map(({ data }) => data as Part)
}

function namesOf(name: ScenarioName, of = dialect): string[] {
  return framesOf(of, scenarioNamed(name)).map(({ frame }) => frame.name)
}

describe('the parts of format=ui-message', () => {
  for (const { name } of scenarios) {
    it(`tells “${name}” in the order that the client expects`, () => {
      assert.equal(namesOf(name).join(' '), told[name])
    })

    it(`closes everything that “${name}” opens before each end of a stream`, () => {
      const open = new Set<string>()
      for (const part of partsOf(name)) {
        const [, kind, edge] = /^(text|reasoning)-(start|end)$/.exec(part.type) ?? []
        if (edge === 'start') open.add(`${kind} ${String(part['id'])}`)
        if (edge === 'end') assert.ok(open.delete(`${kind} ${String(part['id'])}`), 'only what is open is closed')
        if (part.type === 'start-step') open.add('step')
        if (part.type === 'finish-step') assert.ok(open.delete('step'), 'only an open step is finished')
        if (['finish', 'abort', 'error'].includes(part.type)) assert.deepEqual([...open], [], `before ${part.type}`)
      }
    })

    it(`tells “${name}” as one message, whose id is the id of the run`, () => {
      const ids = partsOf(name).flatMap((part) => (part.type === 'start' ? [part['messageId']] : []))

      assert.deepEqual([...new Set(ids)], [scenarioNamed(name).runId])
    })

    it(`replays “${name}” as one stream with one start and one end`, () => {
      const names = namesOf(name, replay)

      assert.equal(names.filter((part) => part === 'start').length, 1)
      assert.equal(names.filter((part) => part === 'done').length, 1)
      assert.equal(textOf(replay, scenarioNamed(name)).endsWith('data: [DONE]\n\n'), true)
    })

    it(`tells “${name}” to AI SDK 5 without the parts that it refuses`, () => {
      const parts = partsOf(name, uiMessageDialect({ sdk: 5 }))

      for (const part of parts) {
        assert.ok(!['tool-approval-request', 'tool-output-denied'].includes(part.type), part.type)
        if (part.type === 'finish') assert.equal(part['finishReason'], undefined)
        if (part.type === 'abort') assert.deepEqual(part, { type: 'abort' })
      }
    })
  }

  it('tells the files of a tool by their paths, and patches of the context as data', () => {
    const files = [{ fileId: 'file/1', mediaType: 'image/png', name: 'map.png', size: 3 }]
    const { runId, events } = scenario('files of a tool', (journal) =>
      journal
        .accepted('Draw a map.')
        .running()
        .add('context.patch', { layer: 'global', patch: { theme: 'dark' } })
        .asks(1, 'message-1')
        .calls('call-1', 'draw', {})
        .stepDone(1, 'message-1', 1)
        .starts('call-1', {})
        .done('call-1', 'succeeded', 'Drawn.', { output: 'ok', files })
        .answers(2, 'message-2', 'Here.')
        .succeeds('message-2', 'Here.'),
    )
    const parts = framesOf(dialect, { name: 'files', runId, events }).map(({ frame }) => frame.data)

    assert.deepEqual(parts.slice(1, 2), [{ type: 'data-context', data: { layer: 'global', patch: { theme: 'dark' } } }])
    assert.deepEqual(parts.slice(4, 6), [
      { type: 'tool-output-available', toolCallId: 'call-1', output: 'ok' },
      { type: 'file', url: '/v1/files/file%2F1/content', mediaType: 'image/png' },
    ])
  })

  it('ends the reply to the first of two answers, and takes the result as the server’s', () => {
    const partly = uiMessageDialect({ endsAtAnswer: 'interaction-1' })
    const { runId, events } = scenarioNamed('tool of the client')
    const parked = events.find((event) => endsStream(dialect, event))?.seq ?? 0
    const text = textOf(partly, { name: 'partly', runId, events }, { seq: parked, index: null })

    assert.equal(
      text.replaceAll(/^id: .+\n/gm, ''),
      [
        `{"type":"start","messageId":"${runId}"}`,
        '{"type":"tool-output-available","toolCallId":"call-1","providerExecuted":true,"output":{"city":"Oslo"}}',
        '{"type":"finish","finishReason":"tool-calls","messageMetadata":{"usage":{"inputTokens":10,"outputTokens":5,"totalTokens":15}}}',
        '[DONE]',
      ]
        .map((json) => `data: ${json}\n\n`)
        .join(''),
    )
  })

  it('writes a run with a confirmation as these very bytes', () => {
    const asked =
      '{"confirmationId":"confirmation-1","toolCallId":"call-1","toolName":"send_message","message":"Send “hello” to Bob"}'
    const frames = [
      '{"type":"start","messageId":"run-tool-confirmed"}',
      '{"type":"data-conversation","id":"conversation","data":{"conversationId":"conversation-1"}}',
      '{"type":"start-step"}',
      '{"type":"tool-input-available","toolCallId":"call-1","toolName":"send_message","input":{"to":"bob","text":"hello"},"providerExecuted":true}',
      `{"type":"data-tool-awaiting-input","id":"confirmation-1","data":${asked}}`,
      '{"type":"tool-approval-request","approvalId":"confirmation-1","toolCallId":"call-1"}',
      '{"type":"finish-step"}',
      '{"type":"finish","finishReason":"tool-calls","messageMetadata":{"usage":{"inputTokens":10,"outputTokens":5,"totalTokens":15}}}',
      '[DONE]',
    ]
    const text = textOf(dialect, scenarioNamed('tool confirmed'))

    assert.equal(text.replaceAll(/^id: .+\n/gm, ''), frames.map((json) => `data: ${json}\n\n`).join(''))
    assert.equal(text.match(/^id: /gm)?.length, frames.length)
  })

  it('ends the stream at each decision, and the replay only at those that are still open', () => {
    const { events } = scenarioNamed('unknown outcome')
    const parked = events.filter((event) => event.type === 'run.state' && event.data.to === 'waiting_user')
    const ends = (of: typeof dialect) => events.filter((event) => endsStream(of, event)).map(({ seq }) => seq)
    const [first = 0, second = 0] = parked.map(({ seq }) => seq)

    assert.deepEqual(ends(dialect), [first, second, events.length])
    assert.deepEqual(ends(uiMessageDialect({ decidedUpTo: first })), [second, events.length])
  })

  it('keeps alive with a comment, the only thing that the client skips', () => {
    assert.equal(dialect.keepAlive(0, 1), ': c\n\n')
  })

  it('sends the header by which clients know the wire', () => {
    assert.equal(dialect.headers['x-vercel-ai-ui-message-stream'], 'v1')
    assert.equal(dialect.headers['content-type'], 'text/event-stream; charset=utf-8')
  })

  it('tells the tokens before an error, because the client reads nothing after it', () => {
    const parts = partsOf('out of steps after a tool').slice(-3)

    assert.deepEqual(
      parts.map(({ type }) => type),
      ['message-metadata', 'error', 'finish'],
    )
    assert.deepEqual(parts[0]?.['messageMetadata'], { usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 } })
  })

  it('says “denied” only of a call that a person was asked about', () => {
    const run = scenario('denied by the wire', (journal) =>
      journal
        .accepted('x')
        .running()
        .asks(1, 'message-1')
        .calls('call-1', 'send_message', {}, { effect: 'unsafe' })
        .stepDone(1, 'message-1', 1)
        .done('call-1', 'denied', 'Nobody can be asked here.')
        .answers(2, 'message-2', 'No.')
        .succeeds('message-2', 'No.'),
    )
    const [output] = framesOf(dialect, run).filter(({ frame }) => frame.name.startsWith('tool-output'))

    assert.deepEqual(output?.frame.data, {
      type: 'tool-output-error',
      toolCallId: 'call-1',
      errorText: 'Nobody can be asked here.',
    })
  })

  it('announces a conversation only where the session layer names one', () => {
    const patches: EventData<'context.patch'>[] = [
      { layer: 'session', patch: { vars: { a: 1 } } },
      { layer: 'session', patch: { conversationId: '' } },
      { layer: 'request', patch: { conversationId: 'conversation-9' } },
    ]
    const run = scenario('patched', (journal) => {
      journal.accepted('x')
      for (const patch of patches) journal.add('context.patch', patch)
      journal.cancelled('queued')
    })

    assert.deepEqual(
      framesOf(dialect, run).map(({ frame }) => frame.name),
      ['start', 'data-context', 'data-context', 'data-context', 'abort', 'done'],
    )
  })
})
