// The frames of the chat API's wire, scenario by scenario.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dialectContract, framesOf, textOf } from '../../../test/contracts/dialect-contract.ts'
import { type Scenario, scenario } from '../../../test/scenarios/journal-builder.ts'
import { type ScenarioName, scenarioNamed, scenarios } from '../../../test/scenarios/scenarios.ts'
import { AppError } from '../../errors/app-error.ts'
import { httpStatusOf } from '../../http/error-reply.ts'
import { chunksDialect, type ChunksOptions } from './chunks.ts'

dialectContract(chunksDialect())
dialectContract(chunksDialect({ framing: 'ndjson' }))
dialectContract(chunksDialect({ agentSteps: false }))
dialectContract(chunksDialect({ toolSteps: false, outputChars: 20 }))

type Json = Record<string, unknown> & { type: string }

function told(story: ScenarioName | Scenario, options: ChunksOptions = {}): Json[] {
  const found = typeof story === 'string' ? scenarioNamed(story) : story
  return framesOf(chunksDialect(options), found).map(({ frame }) => frame.data as Json)
}

const short: Readonly<Record<string, string>> = {
  chunk: 'c',
  tool_start: 's',
  tool_output: 'o',
  tool_end: 'e',
  error: '!',
  done: 'd',
}

const sequences: Readonly<Record<ScenarioName, string>> = {
  'plain answer': 'c c c c d',
  reasoning: 'c c d',
  'queued behind another run': 'c c d',
  'state of a remote agent': 'c c d',
  'answer rejected and repaired': 'c c c c d',
  'older messages cut and summarised': 'c c d',
  'large truncated output': 's o e c d',
  'one tool': 'c c s o e c c d',
  'parallel tools': 's s o e o e c d',
  'remote turn': 'c s c c o e c d',
  'provider-run search': 'c c s o e c c d',
  files: 's o e c d',
  'tool threw': 's o e c d',
  'tool failed politely': 's o e c d',
  'tool with bare arguments': 's o e c d',
  'tool confirmed': 's o o e c c d',
  'edited while confirming': 's o o o e c d',
  'tool denied': 's o o e c d',
  'confirmation expired': 's o o e c d',
  'cancelled while a person is awaited': 's o o e !',
  'unknown outcome': 's o o o e c d',
  'one confirmed beside one that runs': 's o s o e o e c d',
  question: 'c s o o e c d',
  'tool of the client': 'c s o o e c c d',
  'failed tool of the client': 'c s o o e c d',
  'tool of the client beside one that runs': 's o s o e o e c d',
  'cancelled while the client is awaited': 'c s o o e !',
  'cancelled mid sentence': 'c c !',
  'cancelled before it began': '!',
  'cancelled during a tool': 's s o e o e !',
  'model down': '!',
  'out of steps after a tool': 's o e !',
  'timed out': 'c c !',
  'resumed after restart with the same text': 'c c c d',
  'superseded after restart': 'c c c c d',
  'superseded by a tool call': 'c s o e c d',
}

/** The table of the seed, and `code` for errors. */
const fields: Readonly<Record<string, string[]>> = {
  chunk: ['content', 'conversation_id'],
  tool_start: ['tool_call_id', 'tool_name', 'tool_args', 'timestamp'],
  tool_output: ['tool_call_id', 'output', 'truncated', 'full_length'],
  tool_end: ['tool_call_id', 'status', 'duration_ms'],
  error: ['status', 'message', 'code'],
  done: ['conversation_id', 'message_id', 'trace_id'],
}

describe('chunks', () => {
  for (const { name } of scenarios) {
    it(`sends “${name}” in the order in which it happened, and ends once`, () => {
      const frames = told(name)

      assert.equal(frames.map(({ type }) => short[type]).join(' '), sequences[name])
    })

    it(`sends “${name}” with the fields of the table and no others`, () => {
      for (const { type, ...rest } of told(name)) assert.deepEqual(Object.keys(rest), fields[type])
    })

    it(`starts and ends every tool call of “${name}” exactly once, under one id`, () => {
      const frames = told(name)
      const ids = (type: string) =>
        frames
          .filter((frame) => frame.type === type)
          .map((frame) => String(frame.tool_call_id))
          .toSorted()

      assert.deepEqual(ids('tool_end'), ids('tool_start'))
      assert.deepEqual([...new Set(ids('tool_start'))], ids('tool_start'))
    })
  }

  it('says text as deltas that add up to the answer', () => {
    const text = told('plain answer').map((frame) => frame.content ?? '')
    const ended = scenarioNamed('plain answer').events.findLast((event) => event.type === 'run.ended')

    assert.equal(text.join(''), ended?.data.output)
  })

  it('has no event lines, and an id on every frame', () => {
    const text = textOf(chunksDialect(), scenarioNamed('one tool'))

    for (const block of text.split('\n\n').slice(0, -1))
      assert.match(block, /^id: \d+(\.\d+)?\ndata: \{"type":"[^\n]*\}$/)
  })

  it('sends the same frames as lines of JSON if the request asks for it', () => {
    const lines = textOf(chunksDialect({ framing: 'ndjson' }), scenarioNamed('one tool'))
      .split('\n')
      .slice(0, -1)

    assert.deepEqual(
      lines.map((line) => JSON.parse(line)),
      told('one tool'),
    )
    assert.match(chunksDialect({ framing: 'ndjson' }).headers['content-type'] ?? '', /^application\/x-ndjson/)
  })

  it('keeps an idle SSE stream alive with a comment, which no client takes for a message', () => {
    assert.match(chunksDialect().keepAlive(0, 1) ?? '', /^: .*\n\n$/)
  })

  it('ends a cancelled run with 499 and the code cancelled', () => {
    assert.deepEqual(pick(told('cancelled mid sentence').at(-1), 'status', 'code'), { status: 499, code: 'cancelled' })
  })

  it('ends a failed run with the status that the same error has before a stream', () => {
    assert.equal(told('timed out').at(-1)?.status, httpStatusOf(new AppError('run_timed_out', '')))
    assert.equal(told('model down').at(-1)?.status, 500, 'a code that nobody knows')
  })

  it('puts the card of a call that needs a person into its first output', () => {
    const [start, card, result, end] = told('tool confirmed')

    assert.deepEqual(pick(start, 'tool_name', 'tool_args'), {
      tool_name: 'send_message',
      tool_args: { to: 'bob', text: 'hello' },
    })
    assert.match(String(card?.output), /\/v1\/tool-confirmations\/confirmation-1 /)
    assert.equal(card?.truncated, false)
    assert.match(String(result?.output), /sent-1/)
    assert.equal(end?.status, 'success')
  })

  it('shows the changed arguments of a call that a person edited', () => {
    const [start, , changed] = told('edited while confirming')

    assert.deepEqual(start?.tool_args, { to: 'bob', text: 'hello' })
    assert.match(String(changed?.output), /changed arguments: .*good evening/)
    assert.equal(changed?.tool_call_id, start?.tool_call_id)
    assert.equal(told('tool confirmed').filter(({ type }) => type === 'tool_output').length, 2, 'and only then')
  })

  it('shows calls that wait for a person, and only those, if tools are not shown', () => {
    const frames = told('one confirmed beside one that runs', { toolSteps: false })

    assert.equal(frames.map(({ type }) => short[type]).join(' '), 's o o e c d')
    assert.ok(frames.every((frame) => frame.tool_call_id === undefined || frame.tool_call_id === 'call-1'))
  })

  it('leaves out text or tools if the request asks for it', () => {
    assert.equal(
      told('one tool', { agentSteps: false })
        .map(({ type }) => short[type])
        .join(' '),
      's o e d',
    )
    assert.equal(
      told('one tool', { toolSteps: false })
        .map(({ type }) => short[type])
        .join(' '),
      'c c c c d',
    )
  })

  it('has a name of its own for every set of options, since readers of one name share bytes', () => {
    const names = new Set<string>()
    for (const agentSteps of [true, false])
      for (const toolSteps of [true, false])
        for (const outputChars of [800, 20, null])
          for (const framing of ['sse', 'ndjson'] as const)
            names.add(chunksDialect({ agentSteps, toolSteps, outputChars, framing }).name)

    assert.equal(names.size, 24)
    assert.equal(chunksDialect({ outputChars: null }).name, 'chunks.output-whole')
    assert.equal(chunksDialect().name, 'chunks')
  })

  it('puts a blank line between the text of two steps, and none where the second has no text', () => {
    const text = (name: ScenarioName) => told(name).map((frame) => frame.content ?? '')

    assert.deepEqual(
      text('one tool').filter((content) => content !== ''),
      ['Let me ', 'look.', '\n\nIt is ', '03:04.'],
    )
    assert.equal(text('large truncated output').join(''), 'It is long.')
  })

  it('puts text that a restart replaced after a blank line', () => {
    const text = told('superseded after restart').map((frame) => frame.content ?? '')

    assert.equal(text.join(''), 'Roses are \n\nViolets are blue.')
  })

  it('gives a call that was stopped in the middle the time it took', () => {
    const end = told('cancelled during a tool').findLast((frame) => frame.type === 'tool_end')

    assert.deepEqual(pick(end, 'status', 'duration_ms'), { status: 'cancelled', duration_ms: 20 })
  })

  it('remembers no message by an empty piece of text', () => {
    const quiet = scenario('an empty piece', (journal) =>
      journal
        .accepted('Look.')
        .running()
        .asks(1, 'message-1')
        .says('message-1', '')
        .calls('call-1', 'look', {})
        .stepDone(1, 'message-1', 1)
        .starts('call-1', {})
        .returns('call-1', {})
        .asks(2, 'message-2')
        .says('message-2', 'Seen.')
        .says('message-2', '')
        .message('message-2', 'Seen.', 2)
        .calls('call-2', 'look', {}, { step: 2 })
        .stepDone(2, 'message-2', 1)
        .starts('call-2', {})
        .returns('call-2', {})
        .asks(3, 'message-3')
        .says('message-3', '', 'Done.')
        .message('message-3', 'Done.', 3)
        .stepDone(3, 'message-3')
        .succeeds('message-3', 'Done.'),
    )

    const text = told(quiet).flatMap((frame) => (frame.type === 'chunk' ? [frame.content] : []))

    assert.deepEqual(text, ['', 'Seen.', '', '', '\n\nDone.'])
  })

  it('sends a question as a call of ask_user, with the possible answers and the given one', () => {
    const [, start, card, reply, end] = told('question')

    assert.deepEqual(pick(start, 'tool_call_id', 'tool_name', 'tool_args'), {
      tool_call_id: 'question-1',
      tool_name: 'ask_user',
      tool_args: { prompt: 'For when?', options: [{ id: 'noon' }, { id: 'evening' }], fields: ['time'] },
    })
    assert.equal(card?.output, 'Waiting for an answer (question-1): For when?')
    assert.equal(reply?.output, '{"id":"noon"}')
    assert.deepEqual(pick(end, 'tool_call_id', 'status', 'duration_ms'), {
      tool_call_id: 'question-1',
      status: 'success',
      duration_ms: 20,
    })
  })

  for (const [resolution, status] of [
    ['replied', 'success'],
    ['auto_decided', 'success'],
    ['rejected', 'denied'],
    ['expired', 'denied'],
    ['closed', 'cancelled'],
  ] as const) {
    it(`ends a question that was ${resolution} with ${status}, and says so if nothing was answered`, () => {
      const asked = scenario(`a question ${resolution}`, (journal) =>
        journal
          .accepted('Book a table.')
          .running()
          .answers(1, 'message-1', 'For when?')
          .add('input.required', { interactionId: 'question-1', number: 1, kind: 'question', prompt: 'For when?' })
          .parks()
          .resolved('question-1', resolution)
          .cancelled('waiting_user'),
      )

      const [, start, , output, end] = told(asked)

      assert.deepEqual(start?.tool_args, { prompt: 'For when?', options: [], fields: [] })
      assert.equal(output?.output, resolution)
      assert.equal(end?.status, status)
    })
  }

  it('gives a call whose outcome is unknown the time until it was known to be so, and its own time if it has one', () => {
    const durations = [0, 7].map((durationMs) => {
      const lost = scenario(`lost after ${durationMs}`, (journal) =>
        journal
          .accepted('Send it.')
          .running()
          .asks(1, 'message-1')
          .calls('call-1', 'send', {}, { effect: 'unsafe' })
          .stepDone(1, 'message-1', 1)
          .starts('call-1', {})
          .done('call-1', 'unknown', 'It may have happened.', { durationMs })
          .answers(2, 'message-2', 'Please look.')
          .succeeds('message-2', 'Please look.'),
      )
      return told(lost).find(({ type }) => type === 'tool_end')
    })

    assert.deepEqual(
      durations.map((end) => pick(end, 'status', 'duration_ms')),
      [
        { status: 'unknown', duration_ms: 10 },
        { status: 'unknown', duration_ms: 7 },
      ],
    )
  })

  it('ends with the ids of the answer, or with the sentence of the error or of the cancel', () => {
    assert.deepEqual(told('plain answer').at(-1), {
      type: 'done',
      conversation_id: 'conversation-1',
      message_id: 'message-1',
      trace_id: 'run-plain-answer',
    })
    assert.equal(told('model down').at(-1)?.message, 'The model could not be reached. Try again.')
    assert.equal(told('cancelled mid sentence').at(-1)?.message, 'The answer was cancelled: The user pressed stop.')
    for (const reason of [{}, { reason: '' }]) {
      const silent = scenario('cancelled without a reason', (journal) =>
        journal
          .accepted('Hello?')
          .add('run.state', { from: 'queued', to: 'canceled', trigger: 'run.canceled' })
          .add('run.ended', { status: 'canceled', by: 'ada', ...reason }),
      )
      assert.equal(told(silent).at(-1)?.message, 'The answer was cancelled.')
    }
  })

  describe('cutting outputs', () => {
    const withOutput = (output: string) =>
      scenario('one output', (journal) =>
        journal
          .accepted('Look.')
          .running()
          .asks(1, 'message-1')
          .calls('call-1', 'look', {})
          .stepDone(1, 'message-1', 1)
          .starts('call-1', {})
          .done('call-1', 'succeeded', 'Done.', { output, fullLength: output.length, durationMs: 5 })
          .answers(2, 'message-2', 'Seen.')
          .succeeds('message-2', 'Seen.'),
      )
    const outputOf = (text: string) => told(withOutput(text)).find((frame) => frame.type === 'tool_output')

    it('leaves 800 characters whole, with their true number', () => {
      assert.deepEqual(pick(outputOf('x'.repeat(800)), 'output', 'truncated', 'full_length'), {
        output: 'x'.repeat(800),
        truncated: false,
        full_length: 800,
      })
    })

    it('keeps 797 of more, and three dots', () => {
      assert.deepEqual(pick(outputOf('x'.repeat(801)), 'output', 'truncated', 'full_length'), {
        output: `${'x'.repeat(797)}...`,
        truncated: true,
        full_length: 801,
      })
    })

    it('leaves no blanks before the dots', () => {
      assert.equal(outputOf(`${'x'.repeat(790)}${' '.repeat(50)}y`)?.output, `${'x'.repeat(790)}...`)
    })

    it('never keeps half of a character', () => {
      assert.equal(outputOf(`${'x'.repeat(796)}${'😀'.repeat(10)}`)?.output, `${'x'.repeat(796)}...`)
    })

    it('gives the true length of an output that the journal had to cut', () => {
      const done = scenarioNamed('large truncated output').events.find((event) => event.type === 'tool.done')
      const frame = told('large truncated output').find(({ type }) => type === 'tool_output')

      assert.deepEqual([frame?.truncated, frame?.full_length], [true, done?.data.fullLength])
    })
  })
})

function pick(value: Json | undefined, ...names: string[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, value?.[name]]))
}
