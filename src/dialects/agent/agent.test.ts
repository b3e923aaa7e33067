// The native wire, scenario by scenario, and the timeline, which uses the same fold.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dialectContract, framesOf, textOf } from '../../../test/contracts/dialect-contract.ts'
import { type ScenarioName, scenarioNamed, scenarios } from '../../../test/scenarios/scenarios.ts'
import { parseCursor } from '../cursor.ts'
import { encodeEvents } from '../dialect.ts'
import { agentDialect } from './agent.ts'
import { openTimeline, type TimelineEntry, timelineEntries } from './timeline.ts'

dialectContract(agentDialect)

/** Each frame as its address, its name without the family, and its status where it has one. */
const told: Readonly<Record<ScenarioName, string>> = {
  'plain answer': '1 start, 2 patch, 5 delta, 6 delta, 7 delta, 8 delta, 9 message, 12 end succeeded',
  reasoning: '1 start, 4 reasoning, 5 reasoning, 6 delta, 7 delta, 8 message, 11 end succeeded',
  'queued behind another run': '1 start, 6 delta, 7 delta, 8 message, 11 end succeeded',
  'state of a remote agent': '1 start, 3 patch, 5 delta, 6 patch, 7 delta, 8 message, 11 end succeeded',
  'answer rejected and repaired':
    '1 start, 4 delta, 5 delta, 6 message, 10 delta, 11 delta, 12 message, 15 end succeeded',
  'older messages cut and summarised': '1 start, 6 delta, 7 delta, 8 message, 11 end succeeded',
  'large truncated output':
    '1 start, 4 state queued, 6 state running, 7 state succeeded, 9 delta, 10 message, 13 end succeeded',
  'one tool':
    '1 start, 2 patch, 5 delta, 6 delta, 7 message, 8 state queued, 10 state running, 11 state running, ' +
    '12 state succeeded, 14 delta, 15 delta, 16 message, 19 end succeeded',
  'parallel tools':
    '1 start, 4 state queued, 5 state queued, 7 state running, 8 state running, 9 state succeeded, ' +
    '10 state succeeded, 12 delta, 13 message, 16 end succeeded',
  'remote turn':
    '1 start, 5 delta, 6 message, 7 state queued, 9 state running, 11 delta, 12 delta, 13 message, ' +
    '15 state succeeded, 17 delta, 18 message, 21 end succeeded',
  'provider-run search':
    '1 start, 4 delta, 5 delta, 6 state queued, 7 state running, 8 state succeeded, 9 delta, 10 source, 11 source, ' +
    '12 delta, 13 message, 16 end succeeded',
  files: '1 start, 4 state queued, 6 state running, 7 state succeeded, 9 delta, 10 message, 13 end succeeded',
  'tool threw': '1 start, 4 state queued, 6 state running, 7 state failed, 9 delta, 10 message, 13 end succeeded',
  'tool failed politely':
    '1 start, 4 state queued, 6 state running, 7 state failed, 9 delta, 10 message, 13 end succeeded',
  'tool with bare arguments': '1 start, 4 state queued, 6 state failed, 8 delta, 9 message, 12 end succeeded',
  'tool confirmed':
    '1 start, 2 patch, 5 state queued, 7.1 state running, 7.2 state awaiting_input, 12 state running, ' +
    '13 state succeeded, 15 delta, 16 delta, 17 message, 20 end succeeded',
  'edited while confirming':
    '1 start, 2 patch, 5 state queued, 7.1 state running, 7.2 state awaiting_input, 12 state running, ' +
    '13 state succeeded, 15 delta, 16 message, 19 end succeeded',
  'tool denied':
    '1 start, 2 patch, 5 state queued, 7.1 state running, 7.2 state awaiting_input, 12 state cancelled, ' +
    '14 delta, 15 message, 18 end succeeded',
  'confirmation expired':
    '1 start, 2 patch, 5 state queued, 7.1 state running, 7.2 state awaiting_input, 12 state cancelled, ' +
    '14 delta, 15 message, 18 end succeeded',
  'cancelled while a person is awaited':
    '1 start, 2 patch, 5 state queued, 7.1 state running, 7.2 state awaiting_input, 10 state cancelled, 12 end cancelled',
  'unknown outcome':
    '1 start, 2 patch, 5 state queued, 7.1 state running, 7.2 state awaiting_input, 12 state running, ' +
    '15 state awaiting_input, 20 state failed, 22 delta, 23 message, 26 end succeeded',
  'one confirmed beside one that runs':
    '1 start, 4 state queued, 5 state queued, 7.1 state running, 7.2 state awaiting_input, 8 state running, ' +
    '9 state succeeded, 14 state running, 15 state succeeded, 17 delta, 18 message, 21 end succeeded',
  question: '1 start, 4 delta, 5 message, 7 required, 9 resolved, 13 delta, 14 message, 17 end succeeded',
  'tool of the client':
    '1 start, 2 patch, 5 delta, 6 message, 7 state queued, 9.1 state running, 9.2 state awaiting_input, ' +
    '14 state succeeded, 16 delta, 17 delta, 18 message, 21 end succeeded',
  'failed tool of the client':
    '1 start, 2 patch, 5 delta, 6 message, 7 state queued, 9.1 state running, 9.2 state awaiting_input, ' +
    '14 state failed, 16 delta, 17 message, 20 end succeeded',
  'tool of the client beside one that runs':
    '1 start, 4 state queued, 5 state queued, 7.1 state running, 7.2 state awaiting_input, 8 state running, ' +
    '9 state succeeded, 14 state succeeded, 16 delta, 17 message, 20 end succeeded',
  'cancelled while the client is awaited':
    '1 start, 2 patch, 5 delta, 6 message, 7 state queued, 9.1 state running, 9.2 state awaiting_input, ' +
    '12 state cancelled, 14 end cancelled',
  'cancelled mid sentence': '1 start, 4 delta, 5 delta, 8 end cancelled',
  'cancelled before it began': '1 start, 2 patch, 4 end cancelled',
  'cancelled during a tool':
    '1 start, 4 state queued, 5 state queued, 7 state running, 8 state running, 9 state succeeded, ' +
    '10 state cancelled, 12 end cancelled',
  'model down': '1 start, 2 patch, 6.1 error, 6.2 end failed',
  'out of steps after a tool': '1 start, 4 state queued, 6 state running, 7 state succeeded, 9.1 error, 9.2 end failed',
  'timed out': '1 start, 4 delta, 5 delta, 9.1 error, 9.2 end failed',
  'resumed after restart with the same text': '1 start, 4 delta, 5 delta, 9 delta, 10 message, 13 end succeeded',
  'superseded after restart':
    '1 start, 4 reasoning, 5 delta, 6 delta, 10 reasoning, 11 message, 12 delta, 13 delta, 14 message, 17 end succeeded',
  'superseded by a tool call':
    '1 start, 4 delta, 8 message, 9 state queued, 11 state running, 12 state succeeded, 14 delta, 15 message, ' +
    '18 end succeeded',
}

type Data = Record<string, unknown>

function dataOf(name: ScenarioName, event: string): Data[] {
  return framesOf(agentDialect, scenarioNamed(name))
    .filter(({ frame }) => frame.name === event)
    .map(({ frame }) => frame.data as Data)
}

function fieldsOf(data: Data | undefined, ...names: string[]): unknown[] {
  return names.map((name) => data?.[name])
}

describe('the frames of the native wire', () => {
  for (const scenario of scenarios) {
    it(`sends the frames of “${scenario.name}” in order`, () => {
      const lines = framesOf(agentDialect, scenario).map(({ address, frame }) => {
        const { status } = frame.data as { status?: string }
        return [address, frame.name.split('.').at(-1), ...(status === undefined ? [] : [status])].join(' ')
      })

      assert.equal(lines.join(', '), told[scenario.name])
    })
  }

  it('are SSE with an id, a name, and data of the form {event, data} (CHAT-030)', () => {
    const text = textOf(agentDialect, scenarioNamed('plain answer'))

    for (const frame of text.split('\n\n').slice(0, -1)) {
      const [id, event, data, ...more] = frame.split('\n')
      const body = JSON.parse(data?.slice('data: '.length) ?? '') as Data
      assert.match(id ?? '', /^id: \d+(\.\d+)?$/)
      assert.equal(event, `event: ${String(body['event'])}`)
      assert.deepEqual(Object.keys(body), ['event', 'data'])
      assert.deepEqual(more, [])
    }
  })

  it('write a delta as exactly these bytes', () => {
    const text = textOf(agentDialect, scenarioNamed('plain answer'))
    const delta =
      'id: 7\nevent: agent.delta\ndata: {"event":"agent.delta","data":{"id":"message-1","delta":"🙂\\n","role":"assistant"}}\n\n'

    assert.ok(text.includes(delta))
  })

  it('begin with the run, its time and its input', () => {
    const [start] = dataOf('plain answer', 'agent.start')

    assert.deepEqual(fieldsOf(start, 'runId', 'createdAt', 'createdAtMs', 'agentId', 'input', 'conversationId'), [
      'run-plain-answer',
      '2026-01-02T03:04:05.000Z',
      Date.UTC(2026, 0, 2, 3, 4, 5),
      'chat_conversation',
      'Say hello.',
      'conversation-1',
    ])
  })

  it('give a message the id that its deltas had', () => {
    const deltas = dataOf('plain answer', 'agent.delta')
    const [message] = dataOf('plain answer', 'agent.message')

    assert.deepEqual(new Set(deltas.map(({ id }) => id)), new Set([message?.['id']]))
    assert.equal(deltas.map(({ delta }) => delta).join(''), message?.['content'])
  })

  it('carry the confirmation of a call, and what was shown to the person (CHAT-050)', () => {
    const [, running, awaiting, , done] = dataOf('tool confirmed', 'tool.state')

    assert.deepEqual(fieldsOf(running, 'status', 'previousStatus', 'confirmationId'), ['running', 'queued', undefined])
    assert.deepEqual(fieldsOf(awaiting, 'status', 'previousStatus', 'confirmationId', 'input', 'message'), [
      'awaiting_input',
      'running',
      'confirmation-1',
      { to: 'bob', text: 'hello' },
      'Send “hello” to Bob',
    ])
    assert.deepEqual(fieldsOf(done, 'status', 'previousStatus', 'output'), [
      'succeeded',
      'running',
      { messageId: 'sent-1' },
    ])
  })

  it('show the arguments that a person edited, from the moment they are used', () => {
    const inputs = dataOf('edited while confirming', 'tool.state').map(({ input }) => (input as { text: string }).text)

    assert.deepEqual(inputs, ['hello', 'hello', 'hello', 'good evening', 'good evening'])
  })

  it('name the files of the question and of a result', () => {
    const [start] = dataOf('files', 'agent.start')
    const done = dataOf('files', 'tool.state').at(-1)

    assert.deepEqual(start?.['parts'], [
      { type: 'text', text: 'Make it brighter.' },
      { type: 'file', fileId: 'file-1', mediaType: 'image/png', name: 'dark.png', size: 34_200 },
    ])
    assert.deepEqual(done?.['files'], [{ fileId: 'file-2', mediaType: 'image/png', name: 'bright.png', size: 35_000 }])
  })

  it('give the reason if a call did not succeed', () => {
    const codeOf = (name: ScenarioName) => (dataOf(name, 'tool.state').at(-1)?.['error'] as Data | undefined)?.['code']

    assert.equal(codeOf('tool denied'), 'tool_denied')
    assert.equal(codeOf('confirmation expired'), 'tool_expired')
    assert.equal(codeOf('tool threw'), 'tool_failed')
    assert.equal(codeOf('cancelled during a tool'), 'tool_cancelled')
    assert.equal(codeOf('unknown outcome'), 'tool_outcome_unknown')
  })

  it('ask a person about an unknown outcome, and say that it is unknown', () => {
    const awaiting = dataOf('unknown outcome', 'tool.state').filter(({ status }) => status === 'awaiting_input')

    assert.deepEqual(
      awaiting.map(({ confirmationId, error }) => [confirmationId, (error as Data | undefined)?.['code']]),
      [
        ['confirmation-1', undefined],
        ['confirmation-2', 'tool_outcome_unknown'],
      ],
    )
  })

  it('say that an output is cut, and how long it is', () => {
    const output = dataOf('large truncated output', 'tool.state').at(-1)?.['output'] as Data

    assert.deepEqual(fieldsOf(output, 'truncated', 'fullLength'), [true, 3_000_000])
  })

  it('close a torn message as superseded and give the new text an id of its own', () => {
    const messages = dataOf('superseded after restart', 'agent.message')

    assert.deepEqual(
      messages.map(({ id, content, metadata }) => [id, content, (metadata as Data)['state']]),
      [
        ['message-1', 'Roses are ', 'superseded'],
        ['message-2', 'Violets are blue.', undefined],
      ],
    )
  })

  it('do not repeat text that a restart generated again', () => {
    const deltas = dataOf('resumed after restart with the same text', 'agent.delta')

    assert.deepEqual(
      deltas.map(({ id, delta }) => [id, delta]),
      [
        ['message-1', 'Roses '],
        ['message-1', 'are '],
        ['message-1', 'red.'],
      ],
    )
  })

  it('report a failure twice: as an error, and in the ending (CHAT-030)', () => {
    const error = { code: 'model_failed', message: 'The model could not be reached. Try again.', retryable: true }

    assert.deepEqual(dataOf('model down', 'error'), [error])
    assert.deepEqual(dataOf('model down', 'agent.end')[0]?.['error'], error)
  })

  it('go on between the two frames of one event', () => {
    const scenario = scenarioNamed('model down')
    const opened = agentDialect.open({ runId: scenario.runId })

    const { text } = encodeEvents(agentDialect, opened, scenario.events, parseCursor('6.1'))

    assert.match(text, /^id: 6\.2\nevent: agent\.end\n/)
    assert.equal(text.match(/^id:/gm)?.length, 1)
  })

  it('ping with the time of the connection and without an id (CHAT-060)', () => {
    assert.equal(
      agentDialect.keepAlive(Date.UTC(2026, 0, 1), 3),
      'event: ping\ndata: {"event":"ping","data":{"at":"2026-01-01T00:00:00.000Z"}}\n\n',
    )
  })
})

describe('the timeline (CHAT-080)', () => {
  function timelineOf(name: ScenarioName): TimelineEntry[] {
    const { runId, events } = scenarioNamed(name)
    const fold = openTimeline(runId)
    const out: TimelineEntry[] = []
    for (const event of events) timelineEntries(fold, event, out)
    return out
  }

  for (const { name, events } of scenarios) {
    it(`of “${name}” has every frame, and every event without one under its own name`, () => {
      const frames = framesOf(agentDialect, scenarioNamed(name))
      const entries = timelineOf(name)

      const shown = entries.filter(({ id }) => frames.some(({ address }) => address === id))
      assert.deepEqual(
        shown.map(({ id, event, payload }) => ({ id, event, payload })),
        frames.map(({ address, frame }) => ({ id: address, event: frame.name, payload: frame.data })),
      )
      assert.deepEqual(
        entries.map(({ seq }) => seq),
        entries.map((_, index) => index + 1),
      )
      assert.deepEqual(
        [...new Set(entries.map(({ id }) => parseCursor(id).seq))],
        events.filter(({ type }) => type !== 'engine.handle').map(({ seq }) => seq),
      )
    })
  }

  it('shows who decided, though the stream does not', () => {
    const resolved = timelineOf('tool denied').find(({ event }) => event === 'input.resolved')

    assert.deepEqual(resolved?.payload, {
      interactionId: 'confirmation-1',
      number: 1,
      resolution: 'rejected',
      by: 'ada',
      reason: 'Not now.',
    })
  })
})

it('a long answer that run.ended does not repeat is the output of agent.end all the same', () => {
  const plain = scenarioNamed('plain answer')
  const long = 'long '.repeat(20_000)
  const events = plain.events.map((event) => {
    if (event.type === 'message.done') return { ...event, data: { ...event.data, text: long } }
    if (event.type !== 'run.ended') return event
    const { output: _output, ...data } = event.data
    return { ...event, data }
  })

  const end = framesOf(agentDialect, { ...plain, events }).at(-1)

  assert.equal((end?.frame.data as { output?: string } | undefined)?.output, long)
})
