// The frames of LangGraph, scenario by scenario. What the real client makes of them over a socket is in
// test/http/langgraph.test.ts.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dialectContract, framesOf, textOf } from '../../../test/contracts/dialect-contract.ts'
import { scenario } from '../../../test/scenarios/journal-builder.ts'
import { type ScenarioName, scenarioNamed, scenarios } from '../../../test/scenarios/scenarios.ts'
import { parseCursor } from '../cursor.ts'
import type { Frame } from '../dialect.ts'
import { boundedMessages, humanMessage, type LangMessage, toolMessage } from './lang-message.ts'
import { langGraphDialect, type StreamMode, streamModes } from './langgraph.ts'

const dialect = langGraphDialect()
const everything = langGraphDialect({ modes: streamModes })

dialectContract(dialect)
dialectContract(everything)
dialectContract(langGraphDialect({ modes: ['values'], decidedUpTo: Number.MAX_SAFE_INTEGER }))

/**
 * The frames of each run, in order. `values` has the number of messages and, after `!`, of interrupts; a chunk has the id of its
 * message, with `*` and the number of its calls, or `~` if it is reasoning.
 */
const told: Readonly<Record<ScenarioName, string>> = {
  'plain answer':
    'metadata values:1 chunk:message-1 chunk:message-1 chunk:message-1 chunk:message-1 updates:agent values:2 messages/complete values:2',
  reasoning:
    'metadata values:1 chunk:message-1~ chunk:message-1~ chunk:message-1 chunk:message-1 updates:agent values:2 messages/complete values:2',
  'queued behind another run':
    'metadata values:1 custom:diagnostic chunk:message-1 chunk:message-1 updates:agent values:2 messages/complete values:2',
  'answer rejected and repaired':
    'metadata values:1 chunk:message-1 chunk:message-1 updates:agent values:2 messages/complete chunk:message-2 chunk:message-2 updates:agent values:2 messages/complete values:2',
  'state of a remote agent':
    'metadata values:1 chunk:message-1 chunk:message-1 updates:agent values:2 messages/complete values:2',
  'older messages cut and summarised':
    'metadata values:1 chunk:message-1 chunk:message-1 updates:agent values:2 messages/complete values:2',
  'large truncated output':
    'metadata values:1 chunk:message-1*1 updates:agent values:2 messages/complete tool_start tool_end tool:result-call-1 updates:tools values:3 messages/complete chunk:message-2 updates:agent values:4 messages/complete values:4',
  'one tool':
    'metadata values:1 chunk:message-1 chunk:message-1 chunk:message-1*1 updates:agent values:2 messages/complete tool_start tool_event tool_end tool:result-call-1 updates:tools values:3 messages/complete chunk:message-2 chunk:message-2 updates:agent values:4 messages/complete values:4',
  'parallel tools':
    'metadata values:1 chunk:message-1*2 updates:agent values:2 messages/complete tool_start tool_start tool_end tool:result-call-2 updates:tools values:3 messages/complete tool_end tool:result-call-1 updates:tools values:4 messages/complete chunk:message-2 updates:agent values:5 messages/complete values:5',
  'remote turn':
    'metadata values:1 chunk:message-1 chunk:message-1*1 updates:agent values:2 messages/complete tool_start chunk:message-2 chunk:message-2 updates:agent values:3 messages/complete tool_end tool:result-call-1 updates:tools values:4 messages/complete chunk:message-3 updates:agent values:5 messages/complete values:5',
  'provider-run search':
    'metadata values:1 chunk:message-1 chunk:message-1 tool_start tool_end chunk:message-1 custom:source custom:source chunk:message-1 chunk:message-1*1 updates:agent values:2 messages/complete tool:result-call-1 updates:tools values:3 messages/complete values:3',
  files:
    'metadata values:1 chunk:message-1*1 updates:agent values:2 messages/complete tool_start tool_end tool:result-call-1 updates:tools values:3 messages/complete chunk:message-2 updates:agent values:4 messages/complete values:4',
  'tool threw':
    'metadata values:1 chunk:message-1*1 updates:agent values:2 messages/complete tool_start tool_error tool:result-call-1 updates:tools values:3 messages/complete chunk:message-2 updates:agent values:4 messages/complete values:4',
  'tool failed politely':
    'metadata values:1 chunk:message-1*1 updates:agent values:2 messages/complete tool_start tool_error tool:result-call-1 updates:tools values:3 messages/complete chunk:message-2 updates:agent values:4 messages/complete values:4',
  'tool with bare arguments':
    'metadata values:1 chunk:message-1*1 updates:agent values:2 messages/complete tool_error tool:result-call-1 updates:tools values:3 messages/complete chunk:message-2 updates:agent values:4 messages/complete values:4',
  'tool confirmed':
    'metadata values:1 chunk:message-1*1 updates:agent values:2 messages/complete updates:__interrupt__ values:2!1 tool_start tool_end tool:result-call-1 updates:tools values:3 messages/complete chunk:message-2 chunk:message-2 updates:agent values:4 messages/complete values:4',
  'edited while confirming':
    'metadata values:1 chunk:message-1*1 updates:agent values:2 messages/complete updates:__interrupt__ values:2!1 tool_start tool_end tool:result-call-1 updates:tools values:3 messages/complete chunk:message-2 updates:agent values:4 messages/complete values:4',
  'tool denied':
    'metadata values:1 chunk:message-1*1 updates:agent values:2 messages/complete updates:__interrupt__ values:2!1 tool_error tool:result-call-1 updates:tools values:3 messages/complete chunk:message-2 updates:agent values:4 messages/complete values:4',
  'confirmation expired':
    'metadata values:1 chunk:message-1*1 updates:agent values:2 messages/complete updates:__interrupt__ values:2!1 tool_error tool:result-call-1 updates:tools values:3 messages/complete chunk:message-2 updates:agent values:4 messages/complete values:4',
  'cancelled while a person is awaited':
    'metadata values:1 chunk:message-1*1 updates:agent values:2 messages/complete updates:__interrupt__ values:2!1 tool_error tool:result-call-1 updates:tools values:3 messages/complete values:3',
  'unknown outcome':
    'metadata values:1 chunk:message-1*1 updates:agent values:2 messages/complete updates:__interrupt__ values:2!1 tool_start updates:__interrupt__ values:2!1 tool_error tool:result-call-1 updates:tools values:3 messages/complete chunk:message-2 updates:agent values:4 messages/complete values:4',
  'one confirmed beside one that runs':
    'metadata values:1 chunk:message-1*2 updates:agent values:2 messages/complete tool_start tool_end tool:result-call-2 updates:tools values:3 messages/complete updates:__interrupt__ values:3!1 tool_start tool_end tool:result-call-1 updates:tools values:4 messages/complete chunk:message-2 updates:agent values:5 messages/complete values:5',
  question:
    'metadata values:1 chunk:message-1 updates:agent values:2 messages/complete updates:__interrupt__ values:2!1 chunk:message-2 updates:agent values:3 messages/complete values:3',
  'tool of the client':
    'metadata values:1 chunk:message-1 chunk:message-1*1 updates:agent values:2 messages/complete updates:__interrupt__ values:2!1 tool_end tool:result-call-1 updates:tools values:3 messages/complete chunk:message-2 chunk:message-2 updates:agent values:4 messages/complete values:4',
  'failed tool of the client':
    'metadata values:1 chunk:message-1 chunk:message-1*1 updates:agent values:2 messages/complete updates:__interrupt__ values:2!1 tool_error tool:result-call-1 updates:tools values:3 messages/complete chunk:message-2 updates:agent values:4 messages/complete values:4',
  'tool of the client beside one that runs':
    'metadata values:1 chunk:message-1*2 updates:agent values:2 messages/complete tool_start tool_end tool:result-call-2 updates:tools values:3 messages/complete updates:__interrupt__ values:3!1 tool_end tool:result-call-1 updates:tools values:4 messages/complete chunk:message-2 updates:agent values:5 messages/complete values:5',
  'cancelled while the client is awaited':
    'metadata values:1 chunk:message-1 chunk:message-1*1 updates:agent values:2 messages/complete updates:__interrupt__ values:2!1 tool_error tool:result-call-1 updates:tools values:3 messages/complete values:3',
  'cancelled mid sentence': 'metadata values:1 chunk:message-1 chunk:message-1 values:1',
  'cancelled before it began': 'metadata values:1 values:1',
  'cancelled during a tool':
    'metadata values:1 chunk:message-1*2 updates:agent values:2 messages/complete tool_start tool_start tool_end tool:result-call-1 updates:tools values:3 messages/complete tool_error tool:result-call-2 updates:tools values:4 messages/complete values:4',
  'model down': 'metadata values:1 error',
  'out of steps after a tool':
    'metadata values:1 chunk:message-1*1 updates:agent values:2 messages/complete tool_start tool_end tool:result-call-1 updates:tools values:3 messages/complete error',
  'timed out': 'metadata values:1 chunk:message-1 chunk:message-1 error',
  'resumed after restart with the same text':
    'metadata values:1 chunk:message-1 chunk:message-1 chunk:message-1 updates:agent values:2 messages/complete values:2',
  'superseded after restart':
    'metadata values:1 chunk:message-1~ chunk:message-1 chunk:message-1 chunk:message-1~ chunk:message-2 chunk:message-2 updates:agent values:2 messages/complete values:2',
  'superseded by a tool call':
    'metadata values:1 chunk:message-1 chunk:message-2*1 updates:agent values:2 messages/complete tool_start tool_end tool:result-call-1 updates:tools values:3 messages/complete chunk:message-3 updates:agent values:4 messages/complete values:4',
}

// oxlint-disable-next-line typescript/no-explicit-any -- the frames of one wire; each test asserts what it needs of them
type Data = any

function wordOf({ name, data: given }: Frame): string {
  const data: Data = given
  switch (name) {
    case 'values':
      return `values:${data.messages.length}${data.__interrupt__ === undefined ? '' : `!${data.__interrupt__.length}`}`
    case 'messages': {
      const [{ type, id, tool_call_chunks: calls, additional_kwargs: more }] = data
      if (type === 'tool') return `tool:${id}`
      return `chunk:${id}${calls === undefined ? '' : `*${calls.length}`}${more === undefined ? '' : '~'}`
    }
    case 'updates':
      return `updates:${Object.keys(data).join()}`
    case 'tools':
      return data.event.slice('on_'.length)
    case 'custom':
      return `custom:${data.type}`
    default:
      return name
  }
}

const dataOf = (name: ScenarioName, frame: string, of = dialect): Data[] =>
  framesOf(of, scenarioNamed(name))
    .filter((told) => told.frame.name === frame)
    .map((told) => told.frame.data)

describe('the frames of LangGraph', () => {
  for (const { name } of scenarios) {
    it(`tells “${name}” in all modes`, () => {
      assert.equal(
        framesOf(dialect, scenarioNamed(name))
          .map(({ frame }) => wordOf(frame))
          .join(' '),
        told[name],
      )
    })

    it(`pairs every call of “${name}” with its result in each state that is not interrupted`, () => {
      const last: Data = dataOf(name, 'values').at(-1)
      const results = new Set(last.messages.map((message: Data) => message.tool_call_id))
      if (!told[name].endsWith('error')) {
        for (const message of last.messages) for (const { id } of message.tool_calls ?? []) assert.ok(results.has(id))
      }
    })

    it(`gives a client that reconnects to “${name}” with other modes exactly what is newer`, () => {
      const cursors = framesOf(everything, scenarioNamed(name)).map(({ address }) => parseCursor(address))
      for (const mode of ['values', 'updates', 'messages-tuple', 'tools'] as const) {
        const other = langGraphDialect({ modes: [mode], decidedUpTo: Number.MAX_SAFE_INTEGER })
        const frames = framesOf(other, scenarioNamed(name))
        for (const cursor of cursors) {
          const isNewer = ({ address }: { address: string }) => {
            const { seq, index } = parseCursor(address)
            return seq > cursor.seq || (seq === cursor.seq && (index ?? 1) > (cursor.index ?? Number.POSITIVE_INFINITY))
          }
          const rest = frames.filter(isNewer).map(({ text }) => text)
          assert.equal(textOf(other, scenarioNamed(name), cursor), rest.join(''))
        }
      }
    })
  }

  it('sends only the modes that a client asked for', () => {
    const names = (modes: StreamMode[]) => [
      ...new Set(
        [...textOf(langGraphDialect({ modes }), scenarioNamed('one tool')).matchAll(/^event: (.+)$/gm)].map(
          (match) => match[1],
        ),
      ),
    ]

    assert.deepEqual(names(['values']), ['metadata', 'values'])
    assert.deepEqual(names(['updates']), ['metadata', 'updates'])
    assert.deepEqual(names(['messages-tuple']), ['metadata', 'messages'])
    assert.deepEqual(names(['messages']), ['metadata', 'messages/partial', 'messages/complete'])
    assert.deepEqual(names(['tools']), ['metadata', 'tools'])
    assert.deepEqual(names([]), ['metadata'])
  })

  it('shows calls that wait for consent in the shape of the human-in-the-loop middleware', () => {
    const interrupted = dataOf('tool confirmed', 'values').find((values) => values.__interrupt__ !== undefined)

    assert.deepEqual(interrupted.__interrupt__, [
      {
        id: 'confirmation-1',
        value: {
          action_requests: [
            {
              name: 'send_message',
              args: { to: 'bob', text: 'hello' },
              description: 'Send “hello” to Bob',
              interaction_id: 'confirmation-1',
              tool_call_id: 'call-1',
            },
          ],
          review_configs: [{ action_name: 'send_message', allowed_decisions: ['approve', 'edit', 'reject'] }],
        },
        when: 'during',
        resumable: true,
      },
    ])
  })

  it('does not repeat an interrupt that was decided in a replay, because the client would keep it', () => {
    const replay = langGraphDialect({ decidedUpTo: Number.MAX_SAFE_INTEGER })

    assert.doesNotMatch(textOf(replay, scenarioNamed('tool confirmed')), /__interrupt__/)
  })

  it('puts the messages of the thread before those of the run, in every state', () => {
    const earlier = [humanMessage('old', 'Before.')]
    const all = dataOf('plain answer', 'values', langGraphDialect({ earlier }))

    assert.deepEqual(
      all.map(({ messages }) => messages.map(({ id }: LangMessage) => id)),
      [
        ['old', 'message-user'],
        ['old', 'message-user', 'message-1'],
        ['old', 'message-user', 'message-1'],
      ],
    )
  })

  it('shows the question of a run without a conversation too, and none if the run goes on from results', () => {
    const { runId, events } = scenarioNamed('plain answer')
    const firstValues = (data: object) => {
      const changed = events.map((event) =>
        event.type === 'run.accepted' ? { ...event, data: { ...event.data, ...data } } : event,
      )
      const { frames } = dialect.step(dialect.open({ runId }), changed[0] as (typeof events)[number])
      const values = frames.flatMap(({ name, data }) =>
        name === 'values' ? [data as { messages: LangMessage[] }] : [],
      )
      return values.flatMap(({ messages }) => messages.map(({ type, content }) => [type, content]))
    }
    const detached = { conversationId: null, userMessageId: null }

    assert.deepEqual(firstValues({ ...detached, input: 'Hello?' }), [['human', 'Hello?']])
    assert.deepEqual(firstValues({ ...detached, input: '', continuesHistory: true }), [])
  })

  it('keeps alive without a blank line, which the client would take for an event', () => {
    assert.equal(dialect.keepAlive(0, 1), ': c\n')
  })

  it('repeats a long text in messages/partial only so often that all of it stays linear', () => {
    const pieces = 4000
    const run = scenario('long', (journal) =>
      journal
        .accepted('x')
        .running()
        .answers(1, 'message-1', ...Array.from({ length: pieces }, () => 'word word '))
        .succeeds('message-1', 'x'),
    )
    const partials = framesOf(everything, run).filter(({ frame }) => frame.name === 'messages/partial')
    const chars = partials.reduce((sum, { text }) => sum + text.length, 0)

    assert.ok(partials.length > 200)
    assert.ok(chars < 40 * 10 * pieces, `${chars}`)
  })
})

describe('the list of messages in a state', () => {
  const long = (id: string, size: number) => humanMessage(id, 'x'.repeat(size))

  it('is cut at its beginning if it is too long, and always has the newest message', () => {
    const ids = (messages: LangMessage[]) => boundedMessages(messages).map(({ id }) => id)

    assert.deepEqual(ids([long('a', 10), long('b', 10)]), ['a', 'b'])
    assert.deepEqual(ids([long('a', 300_000), long('b', 300_000), long('c', 10)]), ['b', 'c'])
    assert.deepEqual(ids([long('a', 10), long('b', 2_000_000)]), ['b'])
    assert.equal(boundedMessages(Array.from({ length: 600 }, (_, index) => long(`${index}`, 1))).length, 500)
    assert.deepEqual(boundedMessages([]), [])
  })

  it('has only the beginning of a long tool output', () => {
    const { content } = toolMessage('t', { callId: 'c', name: 'n' }, 'y'.repeat(100_000), true)

    assert.equal(content.length, 32 * 1024 + 1)
  })
})
