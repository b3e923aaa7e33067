import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { manualClock } from '../../test/support/manual-clock.ts'
import { chunksOf, createDemoModel, demoPhrases } from './demo-model.ts'
import { type ModelMessage, type ModelPart, type ModelRequest, summaryTask } from './model.ts'

const allTools = ['current_time', 'remember_note', 'search_notes', 'send_feishu_message', 'lookup']

async function ask(said: string | ModelMessage[], tools: string[] = allTools, more: Partial<ModelRequest> = {}) {
  let count = 0
  const model = createDemoModel({ clock: manualClock(), ids: () => `id${++count}`, paceMs: 0 })
  const request: ModelRequest = {
    model: 'demo',
    messages: typeof said === 'string' ? [{ role: 'user', content: said }] : said,
    tools: tools.map((name) => ({ name, description: name, inputSchema: { type: 'object' } })),
    ...more,
  }
  const parts: ModelPart[] = []
  for await (const some of model.stream(request, new AbortController().signal)) parts.push(...some)
  const joined = (type: 'text' | 'reasoning') => parts.map((part) => (part.type === type ? part.text : '')).join('')
  return {
    parts,
    text: joined('text'),
    reasoning: joined('reasoning'),
    calls: parts.flatMap((part) => (part.type === 'tool-call' ? [{ name: part.name, input: part.input }] : [])),
    finish: parts.at(-1),
  }
}

/** A conversation in which one tool was called and answered. */
function afterTool(name: string, content: string, isError: boolean, said = 'please'): ModelMessage[] {
  return [
    { role: 'user', content: said },
    { role: 'assistant', content: '', toolCalls: [{ callId: 'c1', name, input: {} }] },
    { role: 'tool', callId: 'c1', name, content, isError },
  ]
}

test('the first answer of a conversation says what it is and how to get a real model', async () => {
  const { text } = await ask('tell me a joke')

  assert.match(text, /built-in demo model/)
  for (const name of [
    'POLYLOG_MODEL',
    'OPENAI_API_KEY',
    'ANTHROPIC_API_KEY',
    'GOOGLE_GENERATIVE_AI_API_KEY',
    'OLLAMA_BASE_URL',
  ]) {
    assert.ok(text.includes(name), name)
  }
})

test('later answers do not repeat the introduction', async () => {
  const { text } = await ask([
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'Hello!' },
    { role: 'user', content: 'tell me a joke' },
  ])

  assert.doesNotMatch(text, /demo model/)
  assert.match(text, /tell me a joke/)
})

test('a summary lists what the user said, and what the summary before has', async () => {
  const first: ModelMessage[] = [
    { role: 'system', content: `${summaryTask}\nAnd so on.` },
    { role: 'user', content: 'User: remember that I like tea\n\nAssistant: Noted.\n\nUser: what time is it?' },
  ]
  const { text, calls } = await ask(first, [])
  const { text: next } = await ask(
    [
      first[0] as ModelMessage,
      { role: 'user', content: `Summary of the messages before these:\n${text}\n\nUser: bye` },
    ],
    [],
  )

  assert.equal(text, 'The user said:\n- remember that I like tea\n- what time is it?')
  assert.deepEqual(calls, [])
  assert.equal(next, `${text}\n- bye`)
})

test('Chinese is answered in Chinese', async () => {
  assert.match((await ask('讲个笑话')).text, /我是内置的演示模型/)
})

test('the same request gives the same answer', async () => {
  assert.deepEqual(await ask('think about parallel tools'), await ask('think about parallel tools'))
})

const phrases: { said: string; calls: { name: string; input: unknown }[] }[] = [
  { said: 'What time is it?', calls: [{ name: 'current_time', input: {} }] },
  {
    said: 'what is the time in Asia/Shanghai',
    calls: [{ name: 'current_time', input: { timezone: 'Asia/Shanghai' } }],
  },
  { said: '现在几点了?', calls: [{ name: 'current_time', input: {} }] },
  { said: 'Remember that the time is five.', calls: [{ name: 'remember_note', input: { text: 'the time is five' } }] },
  {
    said: 'remember my dog is called Rex',
    calls: [{ name: 'remember_note', input: { text: 'my dog is called Rex' } }],
  },
  { said: '记住:周五交报告', calls: [{ name: 'remember_note', input: { text: '周五交报告' } }] },
  { said: 'search notes for dog', calls: [{ name: 'search_notes', input: { query: 'dog' } }] },
  { said: 'What did I note about Rex?', calls: [{ name: 'search_notes', input: { query: 'Rex' } }] },
  { said: 'what did I note', calls: [{ name: 'search_notes', input: { query: ' ' } }] },
  {
    said: 'search my notes for black dogs and what is the time',
    calls: [
      { name: 'search_notes', input: { query: 'black dogs' } },
      { name: 'current_time', input: {} },
    ],
  },
  {
    said: '同时查笔记 报告和现在几点',
    calls: [
      { name: 'search_notes', input: { query: '报告' } },
      { name: 'current_time', input: {} },
    ],
  },
  {
    said: '发飞书给 ou_abc：晚上见，别忘了',
    calls: [{ name: 'send_feishu_message', input: { recipientId: 'ou_abc', message: '晚上见，别忘了' } }],
  },
  { said: '记住：周五，交报告。谢谢', calls: [{ name: 'remember_note', input: { text: '周五，交报告' } }] },
  { said: '查笔记 报告', calls: [{ name: 'search_notes', input: { query: '报告' } }] },
  {
    said: 'Send "see you at five" to ou_abc on Feishu',
    calls: [{ name: 'send_feishu_message', input: { recipientId: 'ou_abc', message: 'see you at five' } }],
  },
  {
    said: 'send a feishu message to ann@example.com saying good morning',
    calls: [{ name: 'send_feishu_message', input: { recipientId: 'ann@example.com', message: 'good morning' } }],
  },
  {
    said: '发飞书给 ou_abc:晚上见',
    calls: [{ name: 'send_feishu_message', input: { recipientId: 'ou_abc', message: '晚上见' } }],
  },
  {
    said: '给 oc_1 发飞书消息:开会',
    calls: [{ name: 'send_feishu_message', input: { recipientId: 'oc_1', message: '开会' } }],
  },
  { said: 'use the tool lookup with {"key": {"a": "}"}}', calls: [{ name: 'lookup', input: { key: { a: '}' } } }] },
  { said: '使用工具 lookup {"key":1}', calls: [{ name: 'lookup', input: { key: 1 } }] },
  { said: 'use the tool lookup', calls: [{ name: 'lookup', input: {} }] },
  {
    said: 'use the tool lookup with {"n":1} and use the tool lookup with {"n":2}',
    calls: [
      { name: 'lookup', input: { n: 1 } },
      { name: 'lookup', input: { n: 2 } },
    ],
  },
  {
    said: 'search notes for dog and what time is it, in parallel',
    calls: [
      { name: 'search_notes', input: { query: 'dog' } },
      { name: 'current_time', input: {} },
    ],
  },
  {
    said: 'two tools in parallel please',
    calls: [
      { name: 'current_time', input: {} },
      { name: 'search_notes', input: { query: ' ' } },
    ],
  },
]

for (const { said, calls } of phrases) {
  test(`“${said}” is understood`, async () => {
    const answer = await ask(said)

    assert.deepEqual(answer.calls, calls)
    assert.equal(answer.finish?.type === 'finish' && answer.finish.reason, 'tool-calls')
  })
}

test('a tool that is not offered is not called, and the answer says how to get it', async () => {
  const { calls, text, finish } = await ask('send hello to ou_1 on feishu', [])

  assert.deepEqual(calls, [])
  assert.match(text, /send_feishu_message is not available.*FEISHU_APP_ID/s)
  assert.equal(finish?.type === 'finish' && finish.reason, 'stop')
})

test('arguments that are not JSON are not sent to a tool', async () => {
  const { calls, text } = await ask('use the tool lookup with {"key": oops}')

  assert.deepEqual(calls, [])
  assert.match(text, /not a JSON object/)
})

test('a Feishu message without a recipient is asked for', async () => {
  const { calls, text } = await ask('send something on feishu')

  assert.deepEqual(calls, [])
  assert.match(text, /send <text> to <id> on feishu/)
})

test('thinking comes before the answer', async () => {
  const { parts, reasoning } = await ask('think about life')

  assert.match(reasoning, /think about life/)
  assert.equal(parts[0]?.type, 'reasoning')
  assert.equal((await ask('about life')).reasoning, '')
})

test('it counts, talks long and wishes well', async () => {
  assert.match((await ask('count to 12')).text, /\b1 2 3 4 5 6 7 8 9 10 11 12$/)
  assert.ok((await ask('count to 999999999')).text.length < 40_000)
  assert.ok((await ask('a long answer please')).text.length > 5_000)
  assert.match((await ask('帮我想一句给老朋友的新年祝福')).text, /新年快乐/)
  assert.match((await ask('a wish for the new year')).text, /Happy New Year/)
})

test('help lists every phrase', async () => {
  const english = (await ask('help')).text
  const chinese = (await ask('帮助')).text

  for (const phrase of demoPhrases) {
    assert.ok(english.includes(phrase.en), phrase.en)
    assert.ok(chinese.includes(phrase.zh), phrase.zh)
  }
})

test('results of tools are put into words, each kind in its own way', async () => {
  const told = async (content: string, isError: boolean) =>
    (await ask(afterTool('remember_note', content, isError))).text

  assert.match(await told('saved', false), /remember_note answered: saved/)
  assert.match(await told('The tool failed: unknown host', true), /remember_note failed/)
  assert.match(await told('The user did not allow this call, so it was not run. No.', true), /not allowed to run/)
  assert.match(
    await told('The outcome of this call is unknown: it may or may not have happened.', true),
    /Nobody knows/,
  )
  assert.match((await ask(afterTool('current_time', '12:00', false, '几点'))).text, /current_time 的结果：12:00/)
})

test('results of parallel tools are all reported, and no tool is called again', async () => {
  const { text, calls } = await ask([
    { role: 'user', content: 'what time is it, in parallel' },
    {
      role: 'assistant',
      content: '',
      toolCalls: [
        { callId: 'a', name: 'current_time', input: {} },
        { callId: 'b', name: 'search_notes', input: {} },
      ],
    },
    { role: 'tool', callId: 'a', name: 'current_time', content: 'noon', isError: false },
    { role: 'tool', callId: 'b', name: 'search_notes', content: 'nothing', isError: false },
  ])

  assert.match(text, /noon/)
  assert.match(text, /nothing/)
  assert.deepEqual(calls, [])
})

test('an answer ends with its usage, and at the limit of tokens', async () => {
  const whole = await ask('hi')
  const cut = await ask('hi', [], { maxTokens: 3 })

  assert.ok(whole.finish?.type === 'finish' && (whole.finish.usage?.outputTokens ?? 0) > 3)
  assert.deepEqual(
    cut.parts.map((part) => part.type),
    ['text', 'text', 'text', 'finish'],
  )
  assert.equal(cut.finish?.type === 'finish' && cut.finish.reason, 'length')
})

test('chunks are small and joined they are the text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (text) => {
      assert.equal(chunksOf(text).join(''), text)
    }),
  )
  assert.ok(chunksOf('一二三四五六七八').length >= 4)
  assert.deepEqual(chunksOf('one two three'), ['one', ' two', ' three'])
})

test('chunks are paced by the clock, and an abort ends the wait', async () => {
  const clock = manualClock()
  const abort = new AbortController()
  const model = createDemoModel({ clock, ids: () => 'id', paceMs: 15 })
  const request: ModelRequest = { model: 'demo', messages: [{ role: 'user', content: 'hi' }], tools: [] }
  const iterator = model.stream(request, abort.signal)[Symbol.asyncIterator]()

  let arrived = false
  const first = iterator.next().then(() => (arrived = true))
  await clock.advance(14)
  assert.equal(arrived, false)
  await clock.advance(1)
  await first
  const second = assert.rejects(iterator.next(), /enough/)
  abort.abort(new Error('enough'))

  await second
  assert.equal(clock.pending, 0)
})

test('arguments are parsed once, however many braces follow a call', async (t) => {
  const parse = t.mock.method(JSON, 'parse')
  const braces = '}'.repeat(500_000)

  const broken = await ask(`use the tool lookup with {"a": [1, ${braces}`)
  const open = await ask(`use the tool lookup with ${'{"a":'.repeat(200_000)}`)
  const whole = await ask(`use the tool lookup with {"a": "}\\"}"} ${braces}`)

  assert.deepEqual(broken.calls, [])
  assert.match(broken.text, /not a JSON object/)
  assert.deepEqual(open.calls, [])
  assert.deepEqual(whole.calls, [{ name: 'lookup', input: { a: '}"}' } }])
  assert.equal(parse.mock.callCount(), 2)
  assert.ok(parse.mock.calls.every((call) => call.arguments[0].length < 1000))
})

test('a message asks for a bounded number of calls', async () => {
  const { calls } = await ask('use the tool lookup '.repeat(50_000))

  assert.equal(calls.length, 16)
})

// Each of these kept a backtracking pattern busy so long that the whole test run would time out.
const slow: [what: string, text: string][] = [
  ['blanks behind a tool', `use the tool lookup${' '.repeat(1_000_000)}x`],
  ['blanks in a search', `search notes for a${' '.repeat(1_000_000)}x`],
  ['blanks in a Feishu message', `feishu send ${' '.repeat(1_000_000)}to ${' '.repeat(1_000_000)}x`],
  ['many beginnings of a Feishu message', 'feishu send x to '.repeat(60_000)],
  ['many new years', '新年'.repeat(500_000)],
  ['quotes in a Feishu message', `send ${"'".repeat(500_000)}x to you on feishu`],
]
for (const [what, text] of slow) {
  test(`a long message is answered in bounded work: ${what}`, async () => {
    assert.equal((await ask(text)).finish?.type, 'finish')
  })
}

test('a long error of a tool is answered in bounded work', async () => {
  const { text } = await ask(afterTool('lookup', 'outcome '.repeat(100_000), true))

  assert.match(text, /lookup failed/)
})

test('if code has computed the answer, that is the answer, also in the repair round', async () => {
  const computed = { title: '天气😀', points: Array.from({ length: 40 }, (_, index) => `第 ${index} 点 😀`) }
  const answer = { schema: { type: 'object' }, computed }
  const { text, calls, parts } = await ask('use tool lookup', allTools, { answer })

  assert.deepEqual(JSON.parse(text), computed)
  assert.deepEqual(calls, [])
  assert.ok(parts.length > 5, 'it is streamed')
  assert.ok(parts.every((part) => part.type !== 'text' || part.text.isWellFormed()))
})

test('an answer that has to fit a schema is filled in from the request', async () => {
  const schema = {
    type: 'object',
    properties: { title: { type: 'string' }, mood: { enum: ['calm', 'angry'] }, tags: { type: 'array' } },
    required: ['title', 'mood', 'tags'],
  }
  for (const said of ['{"text":"The ship sails at noon."}', 'The ship sails at noon.']) {
    const { text } = await ask(said, [], { answer: { schema } })
    const value = JSON.parse(text) as Record<string, unknown>

    assert.match(String(value['title']), /ship/)
    assert.equal(value['mood'], 'calm')
  }
})
