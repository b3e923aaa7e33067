// The frames of the session API's wire, scenario by scenario.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dialectContract, framesOf, textOf } from '../../../test/contracts/dialect-contract.ts'
import { type Scenario, scenario } from '../../../test/scenarios/journal-builder.ts'
import { type ScenarioName, scenarioNamed, scenarios } from '../../../test/scenarios/scenarios.ts'
import type { EventData, JsonValue } from '../../journal/event.ts'
import { preview } from './preview.ts'
import { sessionDialect } from './session.ts'

dialectContract(sessionDialect)

// oxlint-disable-next-line typescript/no-explicit-any -- what the wire says; each test asserts what it needs of it
type Json = Record<string, any> & { type: string }

function told(story: ScenarioName | Scenario): Json[] {
  const found = typeof story === 'string' ? scenarioNamed(story) : story
  return framesOf(sessionDialect, found).map(({ frame }) => frame.data as Json)
}

const short: Readonly<Record<string, string>> = {
  start: '^',
  text: 't',
  tool_use: 'u',
  tool_error: 'x',
  tool_result: 'r',
  error: '!',
  done: '$',
}

const sequences: Readonly<Record<ScenarioName, string>> = {
  'plain answer': '^ t t t t $',
  reasoning: '^ t t $',
  'queued behind another run': '^ t t $',
  'state of a remote agent': '^ t t $',
  'answer rejected and repaired': '^ t t t t $',
  'older messages cut and summarised': '^ t t $',
  'large truncated output': '^ u r t $',
  'one tool': '^ t t u r t t $',
  'parallel tools': '^ u u r r t $',
  'remote turn': '^ t u t t r t $',
  'provider-run search': '^ t t u r t t $',
  files: '^ u r t $',
  'tool threw': '^ u x r t $',
  'tool failed politely': '^ u r t $',
  'tool with bare arguments': '^ u r t $',
  'tool confirmed': '^ u r t t $',
  'edited while confirming': '^ u r t $',
  'tool denied': '^ u r t $',
  'confirmation expired': '^ u r t $',
  'cancelled while a person is awaited': '^ u r $',
  'unknown outcome': '^ u r t $',
  'one confirmed beside one that runs': '^ u u r r t $',
  question: '^ t u r t $',
  'tool of the client': '^ t u r t t $',
  'failed tool of the client': '^ t u r t $',
  'tool of the client beside one that runs': '^ u u r r t $',
  'cancelled while the client is awaited': '^ t u r $',
  'cancelled mid sentence': '^ t t $',
  'cancelled before it began': '^ $',
  'cancelled during a tool': '^ u u r r $',
  'model down': '^ ! $',
  'out of steps after a tool': '^ u r ! $',
  'timed out': '^ t t ! $',
  'resumed after restart with the same text': '^ t t t $',
  'superseded after restart': '^ t t t t $',
  'superseded by a tool call': '^ t u r t $',
}

/** The fields of the specification; `tool_use_id` of `tool_error` is ours, since calls of one tool may run side by side. */
const fields: Readonly<Record<string, string[]>> = {
  start: ['agentId', 'isNewSession', 'timestamp'],
  text: ['content', 'timestamp'],
  tool_use: ['tool', 'id', 'message', 'input', 'timestamp'],
  tool_error: ['tool', 'error', 'tool_use_id', 'timestamp'],
  tool_result: ['tool_use_id', 'result', 'is_error', 'timestamp'],
  error: ['error', 'message', 'timestamp'],
  done: ['metadata'],
}

/** One call of `name`, with this end. */
function oneCall(name: string, input: JsonValue, done: Partial<EventData<'tool.done'>>): Scenario {
  return scenario('one call', (journal) =>
    journal
      .accepted('Go.')
      .running()
      .asks(1, 'message-1')
      .calls('call-1', name, input)
      .stepDone(1, 'message-1', 1)
      .starts('call-1', input)
      .done('call-1', 'succeeded', 'Done.', done)
      .answers(2, 'message-2', 'Good.')
      .succeeds('message-2', 'Good.'),
  )
}

const resultOf = (story: ScenarioName | Scenario) => told(story).find(({ type }) => type === 'tool_result')

describe('session', () => {
  for (const { name } of scenarios) {
    it(`sends “${name}” in the order in which it happened, from start to done`, () => {
      assert.equal(
        told(name)
          .map(({ type }) => short[type])
          .join(' '),
        sequences[name],
      )
    })

    it(`sends “${name}” with the fields of the table and no others, times in epoch milliseconds`, () => {
      for (const { type, ...rest } of told(name)) {
        assert.deepEqual(Object.keys(rest), fields[type])
        assert.equal(typeof (rest.timestamp ?? rest.metadata?.timestamp), 'number')
      }
    })

    it(`gives every tool_use of “${name}” one result under its id`, () => {
      const frames = told(name)
      const used = frames.flatMap((frame) => (frame.type === 'tool_use' ? [frame.id as string] : []))
      const results = frames.flatMap((frame) => (frame.type === 'tool_result' ? [frame.tool_use_id as string] : []))

      assert.deepEqual(results.toSorted(), used.toSorted())
      assert.equal(new Set(used).size, used.length)
    })
  }

  it('consists of data lines only', () => {
    for (const block of textOf(sessionDialect, scenarioNamed('tool threw')).split('\n\n').slice(0, -1))
      assert.match(block, /^data: \{"type":"[^\n]*\}$/)
  })

  it('starts with the session and says whether it is new', () => {
    const [fresh, end] = told('cancelled before it began')

    assert.deepEqual([fresh?.agentId, fresh?.isNewSession], ['conversation-1', true])
    assert.equal(end?.metadata.agentId, 'conversation-1')
    assert.equal(told('reasoning')[0]?.isNewSession, false)
  })

  it('keeps a connection alive with counted heartbeats', () => {
    assert.equal(
      sessionDialect.keepAlive(1707500002000, 7),
      'data: {"type":"heartbeat","message":"processing","count":7,"timestamp":1707500002000}\n\n',
    )
  })

  it('says that a tool threw before its result, and only then that it is an error', () => {
    const [, , thrown, result] = told('tool threw')

    assert.deepEqual([thrown?.tool, thrown?.tool_use_id], ['read_notes', 'call-1'])
    assert.match(thrown?.error, /the disk is gone/)
    assert.deepEqual([result?.result.status, result?.is_error], ['failed', true])
  })

  it('reports an exception as an error, also if its effect is unknown', () => {
    const error = { code: 'tool_outcome_unknown', message: 'bash_run did not answer within 2 s' }
    const story = oneCall('bash_run', {}, { outcome: 'unknown', error, summary: error.message, durationMs: 2000 })

    assert.deepEqual(
      told(story).flatMap(({ type, is_error }) => (type.startsWith('tool_') ? [[type, is_error]] : [])),
      [
        ['tool_use', undefined],
        ['tool_error', undefined],
        ['tool_result', true],
      ],
    )
  })

  for (const name of [
    'tool failed politely',
    'tool with bare arguments',
    'tool denied',
    'confirmation expired',
    'unknown outcome',
    'cancelled during a tool',
  ] as const) {
    it(`has a result that failed without an error for “${name}”`, () => {
      const { result, is_error } = told(name).findLast(({ type }) => type === 'tool_result') ?? assert.fail()

      assert.deepEqual([result.status, is_error], ['failed', false])
      assert.notEqual(result.message, '')
    })
  }

  it('says of file tools whether they changed anything, and of others it does not', () => {
    const written = oneCall('fs_write', {}, { modified: true, paths: ['a.txt'] })

    assert.deepEqual(resultOf(written)?.result, {
      status: 'success',
      message: 'Done.',
      modified: true,
      paths: ['a.txt'],
    })
    assert.deepEqual(resultOf(oneCall('fs_read', {}, {}))?.result, {
      status: 'success',
      message: 'Done.',
      modified: false,
      paths: [],
    })
    assert.deepEqual(Object.keys(resultOf('one tool')?.result), ['status', 'message'])
  })

  it('says in the message of a call that waits for a person where to decide, and shows the arguments', () => {
    const [, use] = told('tool confirmed')

    assert.match(use?.message, /^Waiting for a decision at \/v1\/tool-confirmations\/confirmation-1 /)
    assert.deepEqual(use?.input, { to: 'bob', text: 'hello' })
  })

  it('shows long arguments as a preview, and none if they could not be parsed', () => {
    const use = told(oneCall('fs_write', { path: 'a', content: 'x'.repeat(10_000) }, {})).find(
      ({ type }) => type === 'tool_use',
    )
    assert.equal(use?.input.path, 'a')
    assert.ok(use?.input.content.length < 600)

    const invalid = scenario('invalid', (journal) =>
      journal
        .accepted('Go.')
        .running()
        .asks(1, 'message-1')
        .add('tool.called', {
          callId: 'call-1',
          name: 'look',
          step: 1,
          index: 0,
          input: {},
          note: 'Call look',
          effect: 'read',
          invalidInput: '{',
        })
        .stepDone(1, 'message-1', 1)
        .done('call-1', 'failed', 'The arguments are not valid JSON.')
        .answers(2, 'message-2', 'Sorry.')
        .succeeds('message-2', 'Sorry.'),
    )
    assert.equal('input' in (told(invalid).find(({ type }) => type === 'tool_use') ?? assert.fail()), false)
  })

  it('ends a failed run with error and then done; a run out of time is REQUEST_TIMEOUT', () => {
    assert.equal(told('timed out').at(-2)?.error, 'REQUEST_TIMEOUT')
    assert.equal(told('model down').at(-2)?.error, 'INTERNAL_ERROR')
    assert.equal(told('out of steps after a tool').at(-2)?.error, 'INTERNAL_ERROR')
  })

  it('says that a cancelled run was cancelled', () => {
    assert.equal(told('cancelled mid sentence').at(-1)?.metadata.cancelled, true)
    assert.deepEqual(Object.keys(told('plain answer').at(-1)?.metadata), ['agentId', 'timestamp'])
  })

  it('shows in the result the arguments that a person changed, and only then', () => {
    const inputOf = (name: ScenarioName) => told(name).find(({ type }) => type === 'tool_result')?.result.input

    assert.deepEqual(inputOf('edited while confirming'), { to: 'bob', text: 'good evening' })
    assert.equal(inputOf('tool confirmed'), undefined)
  })

  it('puts a blank line between the text of two steps', () => {
    const text = told('one tool').flatMap((frame) => frame.content ?? [])

    assert.deepEqual(text, ['Let me ', 'look.', '\n\nIt is ', '03:04.'])
  })

  it('puts text that a restart replaced after a blank line', () => {
    const text = told('superseded after restart').map((frame) => frame.content ?? '')

    assert.equal(text.join(''), 'Roses are \n\nViolets are blue.')
  })
})

describe('previews of arguments', () => {
  it('leave short values as they are', () => {
    const value = { path: 'a', edits: [{ find: 'x', replace: '' }], count: 3, dry: null }

    assert.deepEqual(preview(value), value)
  })

  it('bound texts, lists and depth, and never keep half of a character', () => {
    const long = preview({ text: `${'x'.repeat(499)}😀`, list: Array.from({ length: 30 }, (_, index) => index) }) as {
      text: string
      list: unknown[]
    }

    assert.equal(long.text, `${'x'.repeat(499)}… (501 characters)`)
    assert.deepEqual(long.list.slice(-2), [19, '… (10 more)'])
    assert.equal(JSON.stringify(preview({ a: { b: { c: { d: { e: 1 } } } } })), '{"a":{"b":{"c":{"d":"…"}}}}')
  })
})
