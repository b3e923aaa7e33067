// The events of `format=ag-ui`, scenario by scenario. What the real clients make of them is in
// real-client.test.ts.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dialectContract, framesOf, textOf } from '../../../test/contracts/dialect-contract.ts'
import { type Scenario, scenario } from '../../../test/scenarios/journal-builder.ts'
import { type ScenarioName, scenarioNamed, scenarios } from '../../../test/scenarios/scenarios.ts'
import type { RunSpec } from '../../journal/event.ts'
import { resultForModel } from '../../journal/tool-outcome.ts'
import type { Frame } from '../dialect.ts'
import { agUiDialect } from './ag-ui.ts'

const dialect = agUiDialect()
/** The whole run as one stream, for a client that knows nothing yet. */
const replay = agUiDialect({
  decidedUpTo: Number.MAX_SAFE_INTEGER,
  history: [{ id: 'message-user', role: 'user', content: 'Hello' }],
})
const continued = agUiDialect({ continuedBy: { runId: 'run-2', protocolVersion: undefined } })

dialectContract(dialect)
dialectContract(replay)
dialectContract(continued)

type AgUiEvent = { type: string; [field: string]: unknown }

/** Short names for the events of a stream: `text(` opens, `text)` closes, and `call` is a whole call with its arguments. */
const shortNames: Readonly<Record<string, string>> = {
  RUN_STARTED: 'run(',
  RUN_ERROR: 'run):error',
  STEP_STARTED: 'step(',
  STEP_FINISHED: 'step)',
  TEXT_MESSAGE_START: 'text(',
  TEXT_MESSAGE_CONTENT: 'says',
  TEXT_MESSAGE_END: 'text)',
  REASONING_START: 'reasoning(',
  REASONING_MESSAGE_START: '',
  REASONING_MESSAGE_CONTENT: 'thinks',
  REASONING_MESSAGE_END: '',
  REASONING_END: 'reasoning)',
  TOOL_CALL_START: '',
  TOOL_CALL_ARGS: '',
  TOOL_CALL_END: 'call',
  TOOL_CALL_RESULT: 'result',
  STATE_SNAPSHOT: 'state',
  STATE_DELTA: 'state+',
  MESSAGES_SNAPSHOT: 'messages',
}

function shortName({ data }: Frame): string {
  const event = data as AgUiEvent & { outcome?: { type: string } }
  if (event.type === 'CUSTOM') return String(event['name'])
  if (event.type === 'RUN_FINISHED') return `run):${event.outcome?.type ?? 'none'}`
  return shortNames[event.type] ?? assert.fail(`no short name for ${event.type}`)
}

function toldOf(of: Scenario, by = dialect): string {
  const names = framesOf(by, of).map(({ frame }) => shortName(frame))
  return names.filter((name) => name !== '').join(' ')
}

/** The events of each run, in order. A run that waited for its client has one stream before the answer and one after. */
const told: Readonly<Record<ScenarioName, string>> = {
  'plain answer': 'run( conversation.created step( text( says says says says text) step) run):success',
  reasoning: 'run( step( reasoning( thinks thinks reasoning) text( says says text) step) run):success',
  'queued behind another run': 'run( diagnostic step( text( says says text) step) run):success',
  'state of a remote agent': 'run( state step( text( says state+ says text) step) run):success',
  'answer rejected and repaired':
    'run( step( text( says says text) step) output.rejected step( text( says says text) step) run):success',
  'older messages cut and summarised':
    'run( context.cut context.summarised step( text( says says text) step) run):success',
  'large truncated output': 'run( step( call step) result step( text( says text) step) run):success',
  'one tool':
    'run( conversation.created step( text( says says text) call step) tool.progress result step( text( says says text) step) run):success',
  'parallel tools': 'run( step( call call step) result result step( text( says text) step) run):success',
  'remote turn':
    'run( step( text( says text) call step) step( text( says says text) step) result step( text( says text) step) run):success',
  'provider-run search':
    'run( step( text( says says call result says source.found source.found says text) step) run):success',
  files: 'run( step( call step) result step( text( says text) step) run):success',
  'tool threw': 'run( step( call step) result step( text( says text) step) run):success',
  'tool failed politely': 'run( step( call step) result step( text( says text) step) run):success',
  'tool with bare arguments': 'run( step( call step) result step( text( says text) step) run):success',
  'tool confirmed':
    'run( conversation.created step( call step) run):interrupt run( input.resolved result step( text( says says text) step) run):success',
  'edited while confirming':
    'run( conversation.created step( call step) run):interrupt run( input.resolved tool.input_changed result step( text( says text) step) run):success',
  'tool denied':
    'run( conversation.created step( call step) run):interrupt run( input.resolved result step( text( says text) step) run):success',
  'confirmation expired':
    'run( conversation.created step( call step) run):interrupt run( input.resolved result step( text( says text) step) run):success',
  'cancelled while a person is awaited':
    'run( conversation.created step( call step) run):interrupt run( input.resolved result run.cancelled run):cancelled',
  'unknown outcome':
    'run( conversation.created step( call step) run):interrupt run( input.resolved run):interrupt run( input.resolved result step( text( says text) step) run):success',
  'one confirmed beside one that runs':
    'run( step( call call step) result run):interrupt run( input.resolved result step( text( says text) step) run):success',
  question:
    'run( step( text( says text) step) run):interrupt run( input.resolved step( text( says text) step) run):success',
  'tool of the client':
    'run( conversation.created step( text( says text) call step) run):success run( input.resolved result step( text( says says text) step) run):success',
  'failed tool of the client':
    'run( conversation.created step( text( says text) call step) run):success run( input.resolved result step( text( says text) step) run):success',
  'tool of the client beside one that runs':
    'run( step( call call step) result run):success run( input.resolved result step( text( says text) step) run):success',
  'cancelled while the client is awaited':
    'run( conversation.created step( text( says text) call step) run):success run( input.resolved result run.cancelled run):cancelled',
  'cancelled mid sentence': 'run( step( text( says says text) run.cancelled step) run):cancelled',
  'cancelled before it began': 'run( conversation.created run.cancelled run):cancelled',
  'cancelled during a tool': 'run( step( call call step) result result run.cancelled run):cancelled',
  'model down': 'run( conversation.created step( step) run):error',
  'out of steps after a tool': 'run( step( call step) result run):error',
  'timed out': 'run( step( text( says says text) step) run):error',
  'resumed after restart with the same text': 'run( step( text( says says says text) step) run):success',
  'superseded after restart':
    'run( step( reasoning( thinks reasoning) text( says says reasoning( thinks text) message.superseded reasoning) text( says says text) step) run):success',
  'superseded by a tool call':
    'run( step( text( says text) message.superseded call step) result step( text( says text) step) run):success',
}

function eventsOf(of: Scenario, by = dialect): AgUiEvent[] {
  return framesOf(by, of).map(({ frame }) => frame.data as AgUiEvent)
}

function ofType(events: readonly AgUiEvent[], type: string): AgUiEvent[] {
  return events.filter((event) => event.type === type)
}

function interruptsIn(finished: AgUiEvent | undefined): Record<string, unknown>[] {
  const outcome = finished?.['outcome'] as { interrupts: Record<string, unknown>[] } | undefined
  return outcome?.interrupts ?? []
}

/** The scenario, started by a request of an AG-UI client. */
function startedBy(name: ScenarioName, agUi: Partial<NonNullable<RunSpec['agUi']>>): Scenario {
  const { events, ...rest } = scenarioNamed(name)
  return {
    ...rest,
    events: events.map((event) =>
      event.type === 'run.accepted'
        ? {
            ...event,
            data: {
              ...event.data,
              spec: { ...event.data.spec, agUi: { threadId: 'thread-1', runId: 'client-run-1', ...agUi } },
            },
          }
        : event,
    ),
  }
}

describe('the events of format=ag-ui', () => {
  for (const { name } of scenarios) {
    it(`tells “${name}” in the order that the client expects`, () => {
      assert.equal(toldOf(scenarioNamed(name)), told[name])
    })

    it(`replays “${name}” as one run, with the earlier messages first`, () => {
      const names = toldOf(scenarioNamed(name), replay).split(' ')

      assert.deepEqual(names.slice(0, 2), ['run(', 'messages'])
      assert.equal(names.filter((each) => each === 'run(').length, 1)
      assert.equal(names.filter((each) => each.startsWith('run)')).length, 1)
      assert.match(names.at(-1) ?? '', /^run\)/)
    })

    it(`tells “${name}” to a client before 1.0 without what it refuses`, () => {
      for (const event of eventsOf(startedBy(name, {}))) {
        if (event.type === 'RUN_STARTED') assert.equal(event['protocolVersion'], undefined)
        if (event.type !== 'RUN_FINISHED') continue
        const outcome = event['outcome'] as { type: string } | undefined
        assert.ok(outcome === undefined || ['success', 'interrupt'].includes(outcome.type), JSON.stringify(outcome))
        assert.equal(outcome?.type === 'success' ? Object.keys(outcome).length : 1, 1)
      }
    })
  }

  it('has the ids that the client chose; a run of another API has those of the server', () => {
    const [start] = eventsOf(startedBy('plain answer', { protocolVersion: '1.0' }))
    assert.deepEqual(start, {
      type: 'RUN_STARTED',
      threadId: 'thread-1',
      runId: 'client-run-1',
      protocolVersion: '1.0',
    })
    const end = eventsOf(startedBy('plain answer', { protocolVersion: '1.0' })).at(-1)
    assert.deepEqual([end?.['threadId'], end?.['runId']], ['thread-1', 'client-run-1'])

    const { runId } = scenarioNamed('plain answer')
    const [own] = eventsOf(scenarioNamed('plain answer'))
    assert.deepEqual([own?.['threadId'], own?.['runId']], ['conversation-1', runId])
  })

  it('has the run id of the request that goes on with the run', () => {
    const waited = startedBy('tool confirmed', { protocolVersion: '1.0' })
    const events = eventsOf(waited, agUiDialect({ continuedBy: { runId: 'client-run-2', protocolVersion: '1.0' } }))

    assert.deepEqual(new Set(ofType(events, 'RUN_STARTED').map((event) => event['runId'])), new Set(['client-run-2']))
  })

  it('asks for consent with an interrupt that says what to answer', () => {
    const finished = ofType(eventsOf(scenarioNamed('tool confirmed')), 'RUN_FINISHED')[0]
    const interrupts = interruptsIn(finished)

    assert.equal(interrupts.length, 1)
    const { responseSchema, ...rest } = interrupts[0] ?? {}
    assert.deepEqual(rest, {
      id: 'confirmation-1',
      reason: 'tool_call',
      message: 'Send “hello” to Bob',
      toolCallId: 'call-1',
      expiresAt: '2026-01-03T03:04:05.000Z',
      metadata: { toolName: 'send_message' },
    })
    assert.deepEqual((responseSchema as { required: string[] }).required, ['approved'])
  })

  it('asks a question with an interrupt without a call', () => {
    const finished = ofType(eventsOf(scenarioNamed('question')), 'RUN_FINISHED')[0]
    const interrupts = interruptsIn(finished)

    assert.equal(interrupts[0]?.['reason'], 'input_required')
    assert.equal(interrupts[0]?.['toolCallId'], undefined)
    assert.deepEqual(interrupts[0]?.['metadata'], {
      style: 'choose_one',
      options: [{ id: 'noon' }, { id: 'evening' }],
      fields: ['time'],
    })
  })

  it('names the message of the step as parent of its calls', () => {
    const start = ofType(eventsOf(scenarioNamed('one tool')), 'TOOL_CALL_START')[0]

    assert.equal(start?.['parentMessageId'], 'message-1')
  })

  it('counts the tokens of each model, and after a decision only those since then', () => {
    const usage = ofType(eventsOf(scenarioNamed('tool confirmed')), 'RUN_FINISHED').map((event) => event['usage'])
    const counted = { provider: 'demo', model: 'demo', inputTokens: 10, outputTokens: 5, totalTokens: 15 }

    for (const entries of usage) {
      assert.deepEqual(entries, [{ ...counted, reasoningTokens: 0, cachedInputTokens: 0, cacheWriteInputTokens: 0 }])
    }
  })

  it('has the results as the model was told, which is also what a snapshot has', () => {
    const result = ofType(eventsOf(scenarioNamed('tool denied')), 'TOOL_CALL_RESULT')[0]
    assert.equal(result?.['content'], 'The user did not allow this call, so it was not run. Not now.')
    assert.deepEqual(result['metadata'], { outcome: 'denied', code: 'tool_denied', message: 'Not now.' })

    const outcomes = new Set<string>()
    for (const scenario of scenarios) {
      const told = scenario.events.filter((event) => event.type === 'tool.done').map(({ data }) => resultForModel(data))
      const shown = ofType(eventsOf(scenario), 'TOOL_CALL_RESULT').map(({ content }) => content)
      assert.deepEqual(shown, told, scenario.name)
      for (const event of scenario.events) if (event.type === 'tool.done') outcomes.add(event.data.outcome)
    }
    assert.ok(outcomes.size >= 3, [...outcomes].join())
  })

  it('names the files of a result, with the address of their bytes', () => {
    const result = ofType(eventsOf(scenarioNamed('files')), 'TOOL_CALL_RESULT')[0]

    assert.deepEqual(result?.['metadata'], {
      files: [
        {
          fileId: 'file-2',
          mediaType: 'image/png',
          name: 'bright.png',
          size: 35_000,
          url: '/v1/files/file-2/content',
        },
      ],
    })
  })

  it('gives JSON as the result of a run that was asked for it', () => {
    const asked = scenario('x', (journal) =>
      journal.accepted('Count.').running().answers(1, 'm', '{"count":1}').succeeds('m', '{"count":1}'),
    )
    const events = asked.events.map((event) =>
      event.type === 'run.accepted'
        ? { ...event, data: { ...event.data, spec: { ...event.data.spec, outputSchema: { type: 'object' } } } }
        : event,
    )

    assert.deepEqual(eventsOf({ ...asked, events }).at(-1)?.['result'], { count: 1 })
    assert.equal(eventsOf(asked).at(-1)?.['result'], undefined)
  })

  it('tells changes of the context as changes of the state that the client sent', () => {
    const journal = (state: NonNullable<RunSpec['agUi']>['state']) => {
      const changed = scenario('x', (builder) =>
        builder
          .accepted('Plan a trip.')
          .running()
          .add('context.patch', { layer: 'session', patch: { 'to/from': 'Rome', 'a~b': 1, old: null, gone: null } })
          .add('context.patch', { layer: 'session', patch: { conversationId: 'c', sessionId: 's', old: 2 } })
          .answers(1, 'm', 'Done.')
          .succeeds('m', 'Done.'),
      )
      const agUi = { threadId: 't', runId: 'r', ...(state === undefined ? {} : { state }) }
      const events = changed.events.map((event) =>
        event.type === 'run.accepted'
          ? { ...event, data: { ...event.data, spec: { ...event.data.spec, agUi } } }
          : event,
      )
      return eventsOf({ ...changed, events }).filter(({ type }) => type.startsWith('STATE_'))
    }
    const second = { type: 'STATE_DELTA', delta: [{ op: 'add', path: '/old', value: 2 }] }

    assert.deepEqual(journal({ old: 1 }), [
      {
        type: 'STATE_DELTA',
        delta: [
          { op: 'add', path: '/to~1from', value: 'Rome' },
          { op: 'add', path: '/a~0b', value: 1 },
          { op: 'remove', path: '/old' },
        ],
      },
      second,
    ])
    // A patch needs an object, so the first change is a whole state if the client has none.
    for (const none of [undefined, [1], 'text']) {
      assert.deepEqual(journal(none), [{ type: 'STATE_SNAPSHOT', snapshot: { 'to/from': 'Rome', 'a~b': 1 } }, second])
    }
  })

  it('writes an answer as these very bytes', () => {
    assert.equal(
      textOf(dialect, startedBy('cancelled before it began', { protocolVersion: '1.0' })),
      'id: 1\ndata: {"type":"RUN_STARTED","threadId":"thread-1","runId":"client-run-1","protocolVersion":"1.0"}\n\n' +
        'id: 2\ndata: {"type":"CUSTOM","name":"conversation.created","value":{"conversationId":"conversation-1"}}\n\n' +
        'id: 4.1\ndata: {"type":"CUSTOM","name":"run.cancelled","value":{"reason":"The user pressed stop."}}\n\n' +
        'id: 4.2\ndata: {"type":"RUN_FINISHED","timestamp":1767323045030,"threadId":"thread-1","runId":"client-run-1","outcome":{"type":"cancelled"}}\n\n',
    )
  })

  it('has no carriage return in any stream, because the client splits at two newlines', () => {
    for (const each of scenarios) assert.doesNotMatch(textOf(dialect, each), /\r/)
    assert.equal(dialect.keepAlive(0, 1), ': c\n\n')
  })
})
