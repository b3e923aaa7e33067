import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonValue } from '../journal/event.ts'
import { withPlainArguments } from './argument-names.ts'
import type { Model, ModelPart, ModelRequest } from './model.ts'

type Schema = Record<string, unknown>

/** What the model inside is asked if it calls the tool with `answer`, and the call that comes out. */
async function asked(inputSchema: Schema, { answer = {}, earlier }: { answer?: JsonValue; earlier?: JsonValue } = {}) {
  const requests: ModelRequest[] = []
  const inner: Model = {
    async *stream(request) {
      requests.push(request)
      yield [{ type: 'tool-call', callId: 'c', name: 'find', input: answer, rawInput: JSON.stringify(answer) }]
    },
  }
  const parts: ModelPart[] = []
  const history = earlier === undefined ? [] : [{ callId: 'b', name: 'find', input: earlier }]
  const request: ModelRequest = {
    model: 'm',
    messages: [{ role: 'assistant', content: '', toolCalls: history }],
    tools: [{ name: 'find', description: '', inputSchema }],
  }
  for await (const some of withPlainArguments(inner).stream(request, new AbortController().signal)) parts.push(...some)
  const [call] = parts
  assert.ok(requests[0] !== undefined && call?.type === 'tool-call')
  const [message] = requests[0].messages
  return {
    request,
    sent: requests[0],
    schema: requests[0].tools[0]?.inputSchema ?? {},
    earlier: message?.role === 'assistant' ? message.toolCalls?.[0]?.input : undefined,
    input: call.input,
    rawInput: call.rawInput,
  }
}

describe('the names of arguments', () => {
  it('that Anthropic accepts stay as they are, with the whole request', async () => {
    const schema = { type: 'object', properties: { 'a-b.c_1': { enum: ['$x'], default: { $y: 1 } } } }
    const { request, sent } = await asked(schema)

    assert.equal(sent, request)
  })

  it('that it refuses are sent as others, at any depth, and told in the description', async () => {
    const text = { type: 'string' }
    const { schema } = await asked({
      type: 'object',
      properties: {
        $filter: { ...text, description: 'What to find.' },
        list: { type: 'array', items: { anyOf: [{ properties: { '@odata.type': text }, required: ['@odata.type'] }] } },
        same: { $ref: '#/properties/$filter' },
        kept: { enum: ['$filter'], default: { $filter: 1 }, additionalProperties: true },
      },
      required: ['$filter', 'list'],
      dependentRequired: { $filter: ['$filter', 'same'] },
      $defs: { $own: { properties: { $top: true } } },
    })

    const sentText = { ...text, description: 'Stands for "$filter". What to find.' }
    const type = { ...text, description: 'Stands for "@odata.type".' }
    assert.deepEqual(schema, {
      type: 'object',
      properties: {
        _filter: sentText,
        list: { type: 'array', items: { anyOf: [{ properties: { '_odata.type': type }, required: ['_odata.type'] }] } },
        same: { $ref: '#/properties/_filter' },
        kept: { enum: ['$filter'], default: { $filter: 1 }, additionalProperties: true },
      },
      required: ['_filter', 'list'],
      dependentRequired: { _filter: ['_filter', 'same'] },
      $defs: { $own: { properties: { _top: true } } },
    })
  })

  it('come back in the calls of the model, and are sent with its earlier calls', async () => {
    const schema = { properties: { $filter: {}, page: { properties: { $top: {} } } } }
    const own = { $filter: 'a', page: { $top: 1 }, list: [{ $top: 2 }], text: '_top' }
    const plain = { _filter: 'a', page: { _top: 1 }, list: [{ _top: 2 }], text: '_top' }
    const { input, rawInput, earlier } = await asked(schema, { answer: plain, earlier: own })

    assert.deepEqual([input, JSON.parse(rawInput), earlier], [own, own, plain])
  })

  it('never collide, whatever the names are', async () => {
    const names = [
      '$a',
      '_a',
      '@a',
      '',
      ' ',
      '_',
      '名前',
      '住所',
      '__',
      'x'.repeat(65),
      'x'.repeat(66),
      '😀',
      '__proto__',
    ]
    const own = Object.fromEntries(names.map((name, at) => [name, at]))
    const { schema } = await asked({ properties: Object.fromEntries(names.map((name) => [name, {}])) })
    const sent = Object.keys(schema['properties'] as object)

    assert.equal(new Set(sent).size, names.length)
    for (const name of sent) assert.match(name, /^[a-zA-Z0-9_.-]{1,64}$/)
    for (const name of ['_a', '_', '__', '__proto__']) assert.ok(sent.includes(name), name)
    const answer = Object.fromEntries(sent.map((name, at) => [name, at]))
    const { input } = await asked({ properties: Object.fromEntries(names.map((name) => [name, {}])) }, { answer })
    assert.deepEqual(input, own)
  })
})
