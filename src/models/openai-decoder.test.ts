// The decoded parts are the same for any division of the bytes into reads, and an answer that
// was cut off is never taken for a complete one.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { AppError } from '../errors/app-error.ts'
import { defined } from '../kit/defined.ts'
import type { ModelMessage, ModelPart, ModelRequest } from './model.ts'
import { OpenAiDecoder } from './openai-decoder.ts'
import { toChatBody } from './openai-request.ts'

const request: ModelRequest = { model: 'm', messages: [], tools: [] }
const identity = { provider: 'openai', keyVariable: undefined, secrets: [] }

function decoder(): OpenAiDecoder {
  let count = 0
  return new OpenAiDecoder(identity, request, () => `id${++count}`)
}

function decode(reads: Buffer[]): ModelPart[] {
  const one = decoder()
  const parts: ModelPart[] = []
  for (const read of reads) {
    one.feed(read)
    parts.push(...one.take())
  }
  one.end()
  return [...parts, ...one.take()]
}

function stream(...chunks: unknown[]): Buffer {
  return Buffer.from(
    chunks.map((chunk) => `data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`).join(''),
  )
}

const delta = (value: object) => ({ choices: [{ index: 0, delta: value, finish_reason: null }] })
const finished = (reason: string) => ({ choices: [{ index: 0, delta: {}, finish_reason: reason }] })
const fragment = (index: number | undefined, id: string | undefined, name: string | undefined, text: string) =>
  delta({ tool_calls: [{ index, id, function: { name, arguments: text } }] })

const answer = stream(
  delta({ role: 'assistant', content: '' }),
  delta({ reasoning_content: 'hmm 思考' }),
  delta({ content: 'naïve ' }),
  delta({ content: '世界 🌍' }),
  fragment(0, 'c1', 'add', ''),
  fragment(1, 'c2', 'send', '{"to":'),
  fragment(0, undefined, undefined, '{"ä":1}'),
  fragment(1, undefined, undefined, '"🌍"}'),
  finished('tool_calls'),
  { choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } },
  '[DONE]',
)

const parts: ModelPart[] = [
  { type: 'reasoning', text: 'hmm 思考' },
  { type: 'text', text: 'naïve ' },
  { type: 'text', text: '世界 🌍' },
  { type: 'tool-call', callId: 'c1', name: 'add', rawInput: '{"ä":1}', input: { ä: 1 } },
  { type: 'tool-call', callId: 'c2', name: 'send', rawInput: '{"to":"🌍"}', input: { to: '🌍' } },
  {
    type: 'finish',
    reason: 'tool-calls',
    usage: { inputTokens: 3, outputTokens: 4 },
    // Goes back with the calls, in the field in which it came.
    state: { reasoning_content: 'hmm 思考' },
  },
]

test('what a server sends with a call, such as a thought signature of Gemini, goes back with that call', () => {
  const signed = { google: { thought_signature: 'sig' } }
  const first = { index: 0, id: 'c1', function: { name: 'add', arguments: '{}' }, extra_content: signed }
  const second = { index: 1, id: 'c2', function: { name: 'add', arguments: '{}' } }
  const end = decode([stream(delta({ tool_calls: [first, second] }), finished('tool_calls'), '[DONE]')]).at(-1)
  const state = end?.type === 'finish' ? end.state : undefined
  const toolCalls = ['c1', 'c2'].map((callId) => ({ callId, name: 'add', input: {} }))
  const messages: ModelMessage[] = [{ role: 'assistant', content: '', toolCalls, ...defined({ providerState: state }) }]
  const { tool_calls: sent } = JSON.parse(toChatBody({ model: 'm', messages, tools: [] }, 'http://a')).messages[0]

  assert.deepEqual(
    sent.map((call: { id: string; extra_content?: unknown }) => [call.id, call.extra_content]),
    [
      ['c1', signed],
      ['c2', undefined],
    ],
  )
})

test('one byte at a time gives the same parts', () => {
  assert.deepEqual(decode([answer]), parts)
  assert.deepEqual(decode([...answer].map((byte) => Buffer.from([byte]))), parts)
})

test('any cut of the byte stream gives the same parts, with any line ends', () => {
  const windows = Buffer.from(answer.toString('utf8').replaceAll('\n', '\r\n'))
  const withComments = Buffer.from(answer.toString('utf8').replaceAll('data: {', ': keep-alive\n\ndata: {'))
  fc.assert(
    fc.property(
      fc.constantFrom(answer, windows, withComments),
      fc.array(fc.nat({ max: withComments.length }), { maxLength: 40 }),
      (bytes, cuts) => {
        const at = [...new Set(cuts.filter((cut) => cut < bytes.length))].sort((a, b) => a - b)
        const reads = [0, ...at].map((start, index) => bytes.subarray(start, at[index] ?? bytes.length))

        assert.deepEqual(decode(reads), parts)
      },
    ),
    { numRuns: 500 },
  )
})

test('contents are read as the parser of events reads them, whatever is between them and however they are cut', () => {
  const often = <T>(usual: T, ...others: T[]) =>
    fc.oneof({ arbitrary: fc.constant(usual), weight: 5 }, { arbitrary: fc.constantFrom(...others), weight: 1 })
  const event = fc.record({
    before: often('', 'event: x\n', ': note\n', 'id: 1\n\n', '\ufeff', 'data: \n'),
    field: often('data: ', 'data:', 'data:  '),
    content: fc.oneof(fc.constantFrom('a', '\n\n', 'data: ', '🌍', '"'), fc.string()),
    end: often('\n\n', '\r\n\r\n', '\r\r', '\n\r\n', '\n', '\r', '\n\n\n', ''),
    /** Where reads end besides the random cuts. */
    cuts: fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()),
  })
  const outcome = (reads: Buffer[]): unknown => {
    const one = decoder()
    const seen: ModelPart[] = []
    try {
      for (const read of reads) {
        one.feed(read)
        seen.push(...one.take())
      }
      one.end()
      return [...seen, ...one.take()]
    } catch (error) {
      return [...seen, ...one.take(), (error as AppError).code]
    }
  }
  fc.assert(
    fc.property(fc.array(event, { maxLength: 8 }), fc.array(fc.nat(1000), { maxLength: 4 }), (events, cuts) => {
      let text = ''
      const places = [...cuts]
      for (const { before, field, content, end, cuts: wanted } of events) {
        for (const [index, piece] of [before, field + JSON.stringify(delta({ content })), end].entries()) {
          if (wanted[index] === true) places.push(Buffer.byteLength(text))
          text += piece
        }
      }
      const bytes = Buffer.concat([Buffer.from(text), stream(finished('stop'), '[DONE]')])
      const at = [...new Set(places.filter((place) => place < bytes.length))].sort((a, b) => a - b)
      const reads = [0, ...at].map((start, index) => bytes.subarray(start, at[index] ?? bytes.length))
      assert.deepEqual(outcome(reads), outcome([...bytes].map((byte) => Buffer.from([byte]))))
    }),
    { numRuns: 500 },
  )
})

test('a stream that stops anywhere before its finish reason is incomplete', () => {
  const finishAt = answer.indexOf('"finish_reason":"tool_calls"')
  const finishFrame = answer.lastIndexOf('data: ', finishAt)
  const finishEnd = answer.indexOf('\n\n', finishAt)
  for (let length = 0; length < answer.length; length += 1) {
    let outcome: string
    try {
      outcome = decode([answer.subarray(0, length)]).at(-1)?.type ?? 'nothing'
    } catch (error) {
      outcome = (error as AppError).code
    }
    // The finish frame counts once its JSON is whole, even if its blank line is missing.
    const expected = length >= finishEnd ? 'finish' : 'model_stream_incomplete'
    assert.equal(outcome, expected, `cut after ${length} bytes (the finish frame begins at ${finishFrame})`)
  }
})

test('usage that never arrives costs only the usage', () => {
  const torn = Buffer.concat([
    stream(delta({ content: 'a' }), finished('stop')),
    Buffer.from('data: {"choices":[],"usa'),
  ])

  assert.deepEqual(decode([torn]), [
    { type: 'text', text: 'a' },
    { type: 'finish', reason: 'stop' },
  ])
})

test('a count of tokens that cannot be true is left out, because it would break every sum over it', () => {
  const usageOf = (usage: object) => {
    const last = decode([stream(delta({ content: 'a' }), finished('stop'), { choices: [], usage }, '[DONE]')]).at(-1)
    return last?.type === 'finish' ? last.usage : assert.fail()
  }

  for (const wrong of [1e308, Number.MAX_SAFE_INTEGER, 1_000_000_001, -1, 1.5, '7', null]) {
    assert.deepEqual(usageOf({ prompt_tokens: wrong, completion_tokens: 4 }), { outputTokens: 4 })
  }
  assert.deepEqual(usageOf({ prompt_tokens: 1_000_000_000 }), { inputTokens: 1_000_000_000 })
})

test('arguments with more values than can be handled at once are not parsed, whichever call has them', () => {
  const values = (count: number) => `{"list":[${'0,'.repeat(count)}0]}`
  const inputs = (...texts: string[]) =>
    decode([stream(...texts.map((text, index) => fragment(index, `c${index}`, 'add', text)), finished('tool_calls'))])
      .filter((part) => part.type === 'tool-call')
      .map(({ input }) => input !== undefined)

  assert.deepEqual(inputs(values(40_000), values(40_000), values(40_000), '{}'), [true, true, false, false])
  assert.deepEqual(inputs('{}', values(2_000_000)), [true, false])
  assert.deepEqual(inputs(`{"file":${JSON.stringify('a,b\n'.repeat(50_000))}}`), [true])
})

test('an id that clients could not send back is replaced', () => {
  const idFor = (length: number) => {
    const [call] = decode([stream(fragment(0, 'c'.repeat(length), 'add', '{}'), finished('tool_calls'))])
    return call?.type === 'tool-call' ? call.callId : assert.fail()
  }

  assert.deepEqual([idFor(200), idFor(201)], ['c'.repeat(200), 'call_id1'])
})

test('nothing after the end is read', () => {
  const late = stream(delta({ content: 'ghost' }), { error: { message: 'late' } }, '[DONE]')

  assert.deepEqual(decode([answer, late]), parts)
  assert.deepEqual(decode([Buffer.concat([answer, late])]), parts)
})

test('calls that all have the index 0 are distinguished by their ids', () => {
  const calls = decode([
    stream(fragment(0, 'c1', 'add', '{"a":1}'), fragment(0, 'c2', 'add', '{"a":2}'), finished('tool_calls')),
  ])

  assert.deepEqual(
    calls.flatMap((part) => (part.type === 'tool-call' ? [[part.callId, part.input]] : [])),
    [
      ['c1', { a: 1 }],
      ['c2', { a: 2 }],
    ],
  )
})

test('calls without an index are distinguished by their ids', () => {
  const calls = decode([
    stream(
      fragment(undefined, 'c1', 'add', '{"a":'),
      fragment(undefined, undefined, undefined, '1}'),
      fragment(undefined, 'c2', 'add', '{"a":2}'),
      finished('tool_calls'),
    ),
  ])

  assert.deepEqual(
    calls.flatMap((part) => (part.type === 'tool-call' ? [part.rawInput] : [])),
    ['{"a":1}', '{"a":2}'],
  )
})

test('a call whose id and name are repeated in every fragment is one call', () => {
  const calls = decode([
    stream(fragment(0, 'c1', 'add', '{"a"'), fragment(0, 'c1', 'add', ':1}'), finished('tool_calls')),
  ])

  assert.deepEqual(calls[0], { type: 'tool-call', callId: 'c1', name: 'add', rawInput: '{"a":1}', input: { a: 1 } })
})

test('a call without a name is refused', () => {
  assert.throws(() => decode([stream(fragment(0, 'c1', undefined, '{}'), finished('tool_calls'))]), {
    code: 'model_error',
  })
})

test('arguments without an end are refused', () => {
  const one = decoder()
  const read = stream(fragment(0, 'c1', 'add', 'x'.repeat(1024 * 1024)))

  assert.throws(
    () => {
      for (let round = 0; round < 10; round += 1) one.feed(read)
    },
    { code: 'model_error', message: /8 MiB/ },
  )
})

test('what came before a broken frame is still handed over', () => {
  const one = decoder()

  assert.throws(() => one.feed(stream(delta({ content: 'kept' }), '{"choices":[{')), {
    code: 'model_stream_incomplete',
  })
  assert.deepEqual(one.take(), [{ type: 'text', text: 'kept' }])
})

test('a finish reason that means an error is an error', () => {
  assert.throws(() => decode([stream(delta({ content: 'a' }), finished('error'))]), { code: 'model_error' })
})

test('of several answers, only the first one is read', () => {
  const choice = (index: number, content: string, finish_reason: string | null = null) => ({
    index,
    delta: { content },
    finish_reason,
  })
  const bytes = stream(
    { choices: [choice(0, 'One ')] },
    { choices: [choice(1, 'Two ')] },
    { choices: [choice(1, 'two', 'length'), choice(0, 'one')] },
    { choices: [choice(0, '.', 'stop')] },
    '[DONE]',
  )
  assert.deepEqual(decode([bytes]), [
    { type: 'text', text: 'One ' },
    { type: 'text', text: 'one' },
    { type: 'text', text: '.' },
    { type: 'finish', reason: 'stop' },
  ])
})

test('an id of a call that is far too long is replaced, and such a name is cut', () => {
  const bytes = stream(fragment(0, 'i'.repeat(1000), 'n'.repeat(1000), '{}'), finished('tool_calls'), '[DONE]')
  const [call] = decode([bytes])
  assert.deepEqual(call, { type: 'tool-call', callId: 'call_id1', name: 'n'.repeat(256), rawInput: '{}', input: {} })
})
