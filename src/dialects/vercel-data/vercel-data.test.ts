// The lines of `format=vercel-ai`, scenario by scenario. What the real client makes
// of them is in real-client.test.ts.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dialectContract, framesOf, textOf } from '../../../test/contracts/dialect-contract.ts'
import { scenario } from '../../../test/scenarios/journal-builder.ts'
import { type ScenarioName, scenarioNamed, scenarios } from '../../../test/scenarios/scenarios.ts'
import type { EventData, EventType } from '../../journal/event.ts'
import { endsStream } from '../dialect.ts'
import { vercelDataDialect } from './vercel-data.ts'

dialectContract(vercelDataDialect)

/** The codes of each stream, in order. A tool step is `f … 9 a e f`: its next step opens with its end. */
const told: Readonly<Record<ScenarioName, string>> = {
  'plain answer': '2 f 0 0 0 0 e d',
  reasoning: 'f g g 0 0 e d',
  'queued behind another run': 'f 0 0 e d',
  'state of a remote agent': 'f 0 0 e d',
  'answer rejected and repaired': 'f 0 0 e f 0 0 0 e d',
  'older messages cut and summarised': 'f 0 0 e d',
  'large truncated output': 'f 9 a e f 0 e d',
  'one tool': '2 f 0 0 9 a e f 0 0 0 e d',
  'parallel tools': 'f 9 9 a a e f 0 e d',
  'remote turn': 'f 0 9 0 0 0 a e f 0 0 e d',
  'provider-run search': 'f 0 0 9 a e f 0 h 0 e d',
  files: 'f 9 a e f 0 e d',
  'tool threw': 'f 9 a e f 0 e d',
  'tool failed politely': 'f 9 a e f 0 e d',
  'tool with bare arguments': 'f 9 a e f 0 e d',
  'tool confirmed': '2 f 9 2 8 a e f 0 0 e d',
  'edited while confirming': '2 f 9 2 8 a e f 0 e d',
  'tool denied': '2 f 9 2 8 a e f 0 e d',
  'confirmation expired': '2 f 9 2 8 a e f 0 e d',
  'cancelled while a person is awaited': '2 f 9 2 8 a e f e d',
  'unknown outcome': '2 f 9 2 8 2 8 a e f 0 e d',
  'one confirmed beside one that runs': 'f 9 9 2 8 a a e f 0 e d',
  question: 'f 0 e 2 8 f 0 0 e d',
  'tool of the client': '2 f 0 9 e d a f 0 0 0 e d',
  'failed tool of the client': '2 f 0 9 e d a f 0 0 e d',
  'tool of the client beside one that runs': 'f 9 9 a e d a f 0 e d',
  'cancelled while the client is awaited': '2 f 0 9 e d a f e d',
  'cancelled mid sentence': 'f 0 0 e d',
  'cancelled before it began': '2 d',
  'cancelled during a tool': 'f 9 9 a a e f e d',
  'model down': '2 f e 3 d',
  'out of steps after a tool': 'f 9 a e f e 3 d',
  'timed out': 'f 0 0 e 3 d',
  'resumed after restart with the same text': 'f 0 0 0 e d',
  'superseded after restart': 'f g 0 0 g g 0 0 0 e d',
  'superseded by a tool call': 'f 0 9 a e f 0 0 e d',
}

type Line = { code: string; value: unknown }

/** Also the lines after the end of a stream that waits for a tool of the client. */
function linesOf(name: ScenarioName): Line[] {
  const lines = framesOf(vercelDataDialect, scenarioNamed(name)).map(({ text }) => text)
  return parse(lines.join(''))
}

function parse(text: string): Line[] {
  assert.ok(text === '' || text.endsWith('\n'))
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => ({ code: line.slice(0, 1), value: JSON.parse(line.slice(2)) as unknown }))
}

function valuesOf(lines: Line[], code: string): unknown[] {
  return lines.filter((line) => line.code === code).map(({ value }) => value)
}

describe('the lines of format=vercel-ai', () => {
  for (const { name } of scenarios) {
    it(`sends “${name}” in the order that the client expects`, () => {
      const codes = linesOf(name).map(({ code }) => code)

      assert.equal(codes.join(' '), told[name])
    })

    it(`frames “${name}” as one message, with one end for each stream`, () => {
      const lines = linesOf(name)
      const streams = scenarioNamed(name).events.filter((event) => endsStream(vercelDataDialect, event)).length

      assert.ok(new Set(valuesOf(lines, 'f').map((value) => (value as { messageId: string }).messageId)).size <= 1)
      assert.equal(valuesOf(lines, 'd').length, streams)
      assert.equal(lines.at(-1)?.code, 'd')
      assert.equal(valuesOf(lines, 'f').length, valuesOf(lines, 'e').length)
      assert.ok(valuesOf(lines, '3').length <= 1)
    })
  }

  it('writes a run with a confirmation as exactly these bytes (CHAT-070)', () => {
    const asked =
      '[{"type":"tool.awaiting_input","toolCallId":"call-1","toolName":"send_message","confirmationId":"confirmation-1",' +
      '"input":{"to":"bob","text":"hello"},"message":"Send “hello” to Bob"}]'

    assert.equal(
      textOf(vercelDataDialect, scenarioNamed('tool confirmed')),
      [
        '2:[{"type":"conversation.created","conversationId":"conversation-1"}]',
        'f:{"messageId":"message-1"}',
        '9:{"toolCallId":"call-1","toolName":"send_message","args":{"to":"bob","text":"hello"}}',
        `2:${asked}`,
        `8:${asked}`,
        'a:{"toolCallId":"call-1","result":{"messageId":"sent-1"}}',
        'e:{"finishReason":"tool-calls","usage":{"promptTokens":10,"completionTokens":5},"isContinued":false}',
        'f:{"messageId":"message-1"}',
        '0:"I told "',
        '0:"him."',
        'e:{"finishReason":"stop","usage":{"promptTokens":10,"completionTokens":5},"isContinued":false}',
        'd:{"finishReason":"stop","usage":{"promptTokens":20,"completionTokens":10}}',
        '',
      ].join('\n'),
    )
  })

  it('stays open while a person is awaited, and keeps alive with a bare newline', () => {
    const { events } = scenarioNamed('tool confirmed')

    assert.deepEqual(
      events.filter((event) => endsStream(vercelDataDialect, event)).map(({ type }) => type),
      ['run.ended'],
    )
    assert.equal(vercelDataDialect.keepAlive(0, 1), '\n')
  })

  it('sends the headers of the specification, and none that lets a proxy buffer the stream', () => {
    assert.deepEqual(vercelDataDialect.headers, {
      'content-type': 'text/plain; charset=utf-8',
      'x-vercel-ai-data-stream': 'v1',
      'cache-control': 'no-cache, no-transform',
      connection: 'keep-alive',
      'x-accel-buffering': 'no',
    })
  })

  it('sends a failed call as a result that contains the error', () => {
    const [result] = valuesOf(linesOf('tool failed politely'), 'a')

    assert.deepEqual(result, {
      toolCallId: 'call-1',
      result: {
        outcome: 'failed',
        error: { code: 'tool_failed', message: 'There is no note “nothing”.' },
        output: { found: false },
      },
    })
  })

  it('has a result also for a call that returned nothing, since the client wants one', () => {
    const run = scenario('silent tool', (journal) =>
      journal
        .accepted('x')
        .running()
        .asks(1, 'm')
        .calls('call-1', 'forget', {})
        .stepDone(1, 'm', 1)
        .starts('call-1', {})
        .done('call-1', 'succeeded', 'Forgotten.')
        .answers(2, 'n', 'Done.')
        .succeeds('n', 'Done.'),
    )

    assert.deepEqual(valuesOf(parse(textOf(vercelDataDialect, run)), 'a'), [{ toolCallId: 'call-1', result: null }])
  })

  it('says that an output is cut, and how long it is', () => {
    const [line] = valuesOf(linesOf('large truncated output'), 'a') as { result: Record<string, unknown> }[]

    assert.equal(line?.result['truncated'], true)
    assert.equal(line?.result['fullLength'], 3_000_000)
    assert.equal(line?.result['preview'], 'chapter one '.repeat(400))
  })

  it('puts a blank line between the text of two steps, since message.content has no other mark', () => {
    assert.deepEqual(valuesOf(linesOf('one tool'), '0'), ['Let me ', 'look.', '\n\n', 'It is ', '03:04.'])
  })

  it('puts text that a restart generated again after a blank line', () => {
    assert.deepEqual(valuesOf(linesOf('superseded after restart'), '0'), [
      'Roses ',
      'are ',
      '\n\n',
      'Violets ',
      'are blue.',
    ])
    assert.deepEqual(valuesOf(linesOf('superseded after restart'), 'g'), [
      'A poem about roses.',
      '\n\n',
      'Perhaps violets.',
    ])
  })

  it('asks again with a new confirmation if the outcome is unknown', () => {
    const asked = valuesOf(linesOf('unknown outcome'), '8').flat() as { confirmationId: string; outcome?: string }[]

    assert.deepEqual(
      asked.map(({ confirmationId, outcome }) => [confirmationId, outcome]),
      [
        ['confirmation-1', undefined],
        ['confirmation-2', 'unknown'],
      ],
    )
  })

  it('ends a failure with its sentence and then the finish', () => {
    assert.deepEqual(linesOf('timed out').slice(-2), [
      { code: '3', value: 'The run took longer than 600 s and was stopped.' },
      { code: 'd', value: { finishReason: 'error', usage: { promptTokens: 12, completionTokens: 3 } } },
    ])
  })

  it('ends a cancelled run as finished for another reason, not as an error', () => {
    assert.deepEqual(linesOf('cancelled mid sentence').at(-1), { code: 'd', value: { finishReason: 'other' } })
  })

  it('announces a conversation only if the session layer names one', () => {
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
      framesOf(vercelDataDialect, run).map(({ frame }) => frame.name),
      ['finish_message'],
    )
  })
})

describe('how a step finished', () => {
  function finishes(finishReason: string, usage?: EventData<'step.done'>['usage']): Line[] {
    const run = scenario('finish', (journal) => {
      const done = { step: 1, messageId: 'm', finishReason, toolCalls: 0, durationMs: 1 }
      journal.accepted('x').running().asks(1, 'm').says('m', 'hi').message('m', 'hi', 1)
      journal.add('step.done', usage === undefined ? done : { ...done, usage }).succeeds('m', 'hi')
    })
    return parse(textOf(vercelDataDialect, run)).slice(-2)
  }

  it('uses the words of the protocol; unknown reasons become “other”', () => {
    for (const [reason, shown] of [
      ['length', 'length'],
      ['paused_for_lunch', 'other'],
    ] as const) {
      const lines = finishes(reason)

      assert.deepEqual(lines[0]?.value, { finishReason: shown, isContinued: false })
      assert.deepEqual(lines[1]?.value, { finishReason: shown })
    }
  })

  it('has null for a number that the provider did not report', () => {
    assert.deepEqual(finishes('stop', { outputTokens: 3 })[1]?.value, {
      finishReason: 'stop',
      usage: { promptTokens: null, completionTokens: 3 },
    })
  })
})

describe('a journal with rows that could not be read', () => {
  function without(name: ScenarioName, type: EventType): Line[] {
    const whole = scenarioNamed(name)
    const events = whole.events.filter((event) => event.type !== type)
    return parse(textOf(vercelDataDialect, { ...whole, events }))
  }

  it('still opens a step before the text in it', () => {
    const lines = without('plain answer', 'step.started')

    assert.equal(lines.map(({ code }) => code).join(' '), told['plain answer'])
    assert.deepEqual(valuesOf(lines, 'f'), [{ messageId: 'message-1' }])
  })

  it('still shows a call, without the name that was lost', () => {
    const lines = without('one tool', 'tool.called')

    assert.deepEqual(valuesOf(lines, '9'), [{ toolCallId: 'call-1', toolName: 'unknown', args: { timezone: 'UTC' } }])
    assert.deepEqual(valuesOf(lines, 'a'), [{ toolCallId: 'call-1', result: { time: '03:04' } }])
  })

  it('still puts a confirmation to the person', () => {
    const [, asked] = valuesOf(without('tool confirmed', 'tool.called'), '2').flat() as Record<string, unknown>[]

    assert.equal(asked?.['toolCallId'], 'call-1')
    assert.equal(asked?.['confirmationId'], 'confirmation-1')
  })

  for (const { name, events } of scenarios) {
    it(`still closes every step of “${name}”`, () => {
      for (const type of new Set(events.map((event) => event.type))) {
        if (type === 'run.ended') continue
        const lines = without(name, type)

        assert.equal(valuesOf(lines, 'f').length, valuesOf(lines, 'e').length, `without ${type}`)
      }
    })
  }
})
