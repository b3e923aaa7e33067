// The trace of a run, against the journal and against what the wire says.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { framesOf } from '../../../test/contracts/dialect-contract.ts'
import { type ScenarioName, scenarioNamed, scenarios } from '../../../test/scenarios/scenarios.ts'
import type { RunEvent } from '../../journal/event.ts'
import { chunksDialect } from './chunks.ts'
import { traceOf } from './trace.ts'

const traceNamed = (name: ScenarioName) => traceOf('run-1', scenarioNamed(name).events)

describe('a trace', () => {
  for (const story of scenarios) {
    it(`of “${story.name}” has the tools and the text of the stream, with the times of the journal`, () => {
      const trace = traceOf(story.runId, story.events)
      const wire = framesOf(chunksDialect({ outputChars: null }), story)
      const atOf = new Map(story.events.map((event) => [event.seq, new Date(event.at).toISOString()]))

      const tools = wire.filter(({ frame }) => frame.name.startsWith('tool_'))
      assert.deepEqual(
        trace.events
          .filter((event) => event.type.startsWith('tool_'))
          // What a person changed is shown in the trace where the call begins; see below.
          .map(({ requested_args, ...event }) =>
            requested_args === undefined ? event : { ...event, tool_args: requested_args },
          ),
        tools.map(({ frame, seq }) => ({ ...(frame.data as object), timestamp: atOf.get(seq) })),
      )
      const texts = wire.filter(({ frame }) => frame.name === 'chunk')
      assert.deepEqual(
        trace.events.filter((event) => event.type === 'text').map((event) => [event.content, event.timestamp]),
        texts.map(({ frame, seq }) => [(frame.data as { content: string }).content, atOf.get(seq)]),
      )
    })
  }

  it('shows the arguments that a call ran with if a person changed them, and those that were asked for', () => {
    const start = traceNamed('edited while confirming').events.find(({ type }) => type === 'tool_start')

    assert.deepEqual(start?.tool_args, { to: 'bob', text: 'good evening' })
    assert.deepEqual(start?.requested_args, { to: 'bob', text: 'hello' })
    const untouched = traceNamed('tool confirmed').events.find(({ type }) => type === 'tool_start')
    assert.deepEqual([untouched?.tool_args, untouched?.requested_args], [{ to: 'bob', text: 'hello' }, undefined])
  })

  it('says completed, with the answer, the totals and the time it took', () => {
    const trace = traceNamed('one tool')
    const { events } = scenarioNamed('one tool')
    const ended = events.findLast((event) => event.type === 'run.ended')

    assert.equal(trace.status, 'completed')
    assert.equal(trace.message_id, ended?.data.messageId)
    assert.equal(trace.user_message_id, 'message-user')
    assert.equal(trace.total_tool_calls, 1)
    assert.equal(trace.total_tokens_used, 30)
    assert.equal(trace.total_duration_ms, (events.at(-1)?.at ?? 0) - (events[0]?.at ?? 0))
    assert.equal(trace.completed_at, new Date(events.at(-1)?.at ?? 0).toISOString())
    assert.deepEqual([trace.cancelled_by, trace.error], [null, null])
  })

  it('has every field of a whole run, with thoughts and usage among its events', () => {
    const at = (ms: number) => new Date(Date.UTC(2026, 0, 2, 3, 4, 5) + ms).toISOString()

    assert.deepEqual(traceNamed('reasoning'), {
      trace_id: 'run-1',
      conversation_id: 'conversation-1',
      message_id: 'message-1',
      user_message_id: 'message-user',
      config_id: null,
      pipeline_name: 'chat_conversation',
      events: [
        { type: 'thinking', content: 'A spider has ', timestamp: at(30) },
        { type: 'thinking', content: 'eight legs.', timestamp: at(40) },
        { type: 'text', content: 'Six', message_id: 'message-1', timestamp: at(50) },
        { type: 'text', content: 'teen.', message_id: 'message-1', timestamp: at(60) },
        {
          type: 'usage',
          prompt_tokens: 12,
          completion_tokens: 9,
          total_tokens: 21,
          cached_tokens: 0,
          cache_write_tokens: 0,
          reasoning_tokens: 6,
          cost_micro_usd: null,
          timestamp: at(80),
        },
      ],
      started_at: at(0),
      completed_at: at(100),
      status: 'completed',
      total_tool_calls: 0,
      total_tokens_used: 21,
      total_cost_micro_usd: null,
      total_duration_ms: 100,
      cancelled_by: null,
      cancellation_reason: null,
      created_at: at(0),
      error: null,
    })
  })

  it('names the configuration, and counts tokens only if the provider reported them', () => {
    const events = scenarioNamed('plain answer').events.map((event): RunEvent => {
      if (event.type === 'run.accepted')
        return { ...event, data: { ...event.data, spec: { ...event.data.spec, configName: 'brief' } } }
      if (event.type !== 'step.done') return event
      const { usage: _usage, ...data } = event.data
      return { ...event, data }
    })

    const trace = traceOf('run-1', events)

    assert.deepEqual([trace.config_id, trace.total_tokens_used], ['brief', null])
    assert.equal(
      trace.events.some(({ type }) => type === 'usage'),
      false,
    )
  })

  it('says who cancelled and why, and has no answer then', () => {
    const { events } = scenarioNamed('cancelled mid sentence')
    const bySystem = events.map((event): RunEvent =>
      event.type === 'run.ended' ? { ...event, data: { status: 'canceled', by: 'system' } } : event,
    )

    const [trace, other] = [traceOf('run-1', events), traceOf('run-1', bySystem)]

    assert.deepEqual(
      [trace.status, trace.cancelled_by, trace.cancellation_reason, trace.message_id],
      ['cancelled', 'user', 'The user pressed stop.', null],
    )
    assert.deepEqual([other.cancelled_by, other.cancellation_reason], ['system', null])
  })

  it('has the status error, and names the error', () => {
    const trace = traceNamed('model down')

    assert.deepEqual(
      [trace.status, trace.error],
      ['error', { code: 'model_failed', message: 'The model could not be reached. Try again.' }],
    )
  })

  it('is running until the end, and has no duration until then', () => {
    const trace = traceOf('run-1', scenarioNamed('one tool').events.slice(0, -1))

    assert.deepEqual(
      [trace.status, trace.completed_at, trace.total_duration_ms, trace.message_id],
      ['running', null, null, null],
    )
  })

  it('shows what the model is no longer given, and counts what the summary took', () => {
    const { events, total_tokens_used } = traceNamed('older messages cut and summarised')

    const [cut, summary, usage] = events.filter(({ type }) => type !== 'text')
    assert.deepEqual(
      [cut?.type, cut?.through_message_id, cut?.messages, cut?.tokens],
      ['context_cut', 'message-old-8', 8, 4000],
    )
    assert.deepEqual(
      [summary?.type, summary?.content, summary?.message_id, summary?.messages],
      ['context_summary', 'They planned a trip to Kyoto in May.', 'summary-1', 12],
    )
    assert.equal(usage?.type, 'usage')
    assert.ok(Number(total_tokens_used) >= 6112)
  })
})
