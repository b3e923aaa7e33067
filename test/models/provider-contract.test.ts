// One contract for every provider with a wire of its own: the real server against a strict
// stand-in of the provider, which refuses what the real API refuses. What holds for one provider
// in a conversation with reasoning and tools holds for all of them.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { formatDialects } from '../../src/http/formats.ts'
import { withPictureTool } from '../support/picture-server.ts'
import { type AgentFolder, agentFolder } from '../support/agent-folder.ts'
import { type Polylog, startPolylog } from '../support/polylog.ts'
import { dataUrl, pdf, pngOf } from '../support/sample-files.ts'
import { openStream, type SseFrame } from '../support/sse.ts'
import {
  askingStrict,
  type Block,
  startStrictProvider,
  type StrictName,
  type StrictProvider,
  type StrictRequest,
  thinkingOptions,
} from '../support/strict-provider.ts'
import { tokensOf } from '../fakes/strict-server.ts'
import { callServer, endOf, someone, toolStatuses } from '../support/test-server.ts'

const providers: StrictName[] = ['anthropic', 'openai-responses', 'gemini', 'chat-completions']

const clock: Block = { call: 'current_time', input: { timezone: 'UTC' } }
const notes: Block = { call: 'search_notes', input: { query: 'walk' } }

const polylogModel = (name: StrictName) => askingStrict(name, { baseUrl: '' })['POLYLOG_MODEL']

/** A web search in the list of tools of a request, and in the messages that the provider gets back. */
const searchWords: Record<StrictName, { tool: RegExp; block: RegExp }> = {
  anthropic: { tool: /web_search_20250305/, block: /web_search_tool_result/ },
  'openai-responses': { tool: /"web_search"/, block: /web_search_call","id/ },
  gemini: { tool: /googleSearch/, block: /toolResponse/ },
  'chat-completions': { tool: /none/, block: /none/ },
}

for (const name of providers) {
  describe(`the provider ${name}`, () => {
    let provider: StrictProvider
    let polylog: Polylog
    let agents: AgentFolder

    before(async () => {
      provider = await startStrictProvider(name)
      agents = agentFolder()
      agents.agent('short', {
        memory: { strategy: 'summary', maxTokens: 1000 },
        tools: { mode: 'denylist', allowedTools: [] },
        validation: undefined,
      })
      polylog = await startPolylog({
        ...askingStrict(name, provider),
        ...withPictureTool(),
        POLYLOG_AGENTS_DIR: agents.path,
      })
    })
    beforeEach(() => provider.reset())
    after(async () => {
      await polylog?.dispose()
      await provider?.stop()
      agents?.dispose()
    })

    async function chat(body: Record<string, unknown>): Promise<SseFrame[]> {
      const stream = await openStream(`${polylog.baseUrl}/v1/agent/chat`, { method: 'POST', body })
      await stream.ended()
      assert.equal(stream.status, 200, stream.text())
      return stream.frames
    }

    async function ask(answers: Block[][], fields: Record<string, unknown> = {}) {
      await provider.script(...answers)
      const frames = await chat({
        userId: someone(),
        input: 'What now?',
        providerOptions: thinkingOptions[name],
        ...fields,
      })
      return { end: endOf(frames), frames, requests: await provider.requests() }
    }

    const textOf = (frames: SseFrame[]) =>
      frames.map(({ json }) => (json.event === 'agent.delta' ? String(json.data.delta) : '')).join('')

    function assertAccepted(requests: StrictRequest[], count: number): void {
      assert.deepEqual(
        requests.map(({ refused }) => refused),
        Array.from({ length: count }, () => null),
      )
    }

    it('is asked once more with fewer messages if it refuses the prompt as too long', async () => {
      const user = someone()
      const conversation = { userId: user, conversationId: user }
      const long = (what: string) => `${what} ${'and so on '.repeat(200)}`
      for (let turn = 1; turn <= 6; turn += 1)
        await ask([[{ text: [long(`Answer ${turn}.`)] }]], { ...conversation, input: long(`Question ${turn}?`) })
      // More than the tools and the instructions, less than the six turns.
      await provider.limitWindow(tokensOf((await provider.requests()).at(-1)?.body))

      const { end, requests } = await ask([[{ text: ['Fine.'] }]], { ...conversation, input: 'And now?' })

      assert.equal(end.status, 'succeeded')
      const [refused, accepted] = requests.slice(-2)
      assert.match(refused?.refused ?? '', /context|too long|token count/)
      assert.equal(accepted?.refused, null)
      const given = JSON.stringify(accepted?.body)
      assert.doesNotMatch(given, /Question [123]\?/)
      assert.match(given, /Question 6\?/)
    })

    it('accepts prompts in which a summary stands for older turns with tools and reasoning', async () => {
      const user = someone()
      const conversation = { userId: user, conversationId: user, agentId: 'short' }
      await provider.always('You write the memory', [{ text: ['They talked about the time.'] }])
      for (let turn = 1; turn <= 8; turn += 1) {
        const { end } = await ask([[{ think: 'Hm.' }, clock], [{ text: [`It is ${'late '.repeat(60)}`] }]], {
          ...conversation,
          input: `Question ${turn}? ${'why '.repeat(60)}`,
        })
        assert.equal(end.status, 'succeeded')
      }

      const requests = await provider.requests()
      assertAccepted(requests, requests.length)
      const given = JSON.stringify(requests.at(-1)?.body)
      assert.match(given, /They talked about the time\./)
      assert.doesNotMatch(given, /Question 1\?/)
      assert.match(given, /Question 8\?/)
    })

    it('answers with text', async () => {
      const { end, frames, requests } = await ask([[{ text: ['Hello ', 'you.'] }]], { providerOptions: null })

      assertAccepted(requests, 1)
      assert.equal(end.status, 'succeeded')
      assert.equal(textOf(frames), 'Hello you.')
    })

    it('keeps its reasoning apart from its text', async () => {
      const { end, frames, requests } = await ask([[{ think: 'Let me see.' }, { text: ['Noon.'] }]])

      assertAccepted(requests, 1)
      assert.equal(end.status, 'succeeded')
      assert.equal(textOf(frames), 'Noon.')
      assert.equal(
        frames.map(({ json }) => (json.event === 'agent.reasoning' ? String(json.data.delta) : '')).join(''),
        'Let me see.',
      )
      assert.doesNotMatch(JSON.stringify(frames), /sig_/)
    })

    it('calls two tools at once, and gets both results', async () => {
      const { end, frames, requests } = await ask([
        [{ think: 'I need two things.' }, clock, notes],
        [{ text: ['Both done.'] }],
      ])

      assertAccepted(requests, 2)
      assert.equal(end.status, 'succeeded')
      assert.equal(toolStatuses(frames).filter((status) => status === 'succeeded').length, 2)
    })

    it('gets its reasoning back in each of three steps, and nobody else sees it', async () => {
      const user = someone()
      const { end, frames, requests } = await ask(
        [
          [{ think: 'First the time.' }, { text: ['I look. '] }, clock],
          [{ think: 'Now the notes.' }, notes],
          [{ think: 'Once more.', redacted: true }, clock],
          [{ text: ['All is done.'] }],
        ],
        { userId: user },
      )

      assertAccepted(requests, 4)
      assert.equal(end.status, 'succeeded')
      assert.equal(textOf(frames), 'I look. All is done.')
      const runId = String(frames[0]?.json.data.runId)
      const timeline = await callServer(polylog.baseUrl, 'GET', `/v1/agent/runs/${runId}/timeline`, { user })
      assert.equal(timeline.status, 200)
      assert.match(timeline.text, /step\.done/)
      for (const shown of [timeline.text, JSON.stringify(frames)]) assert.doesNotMatch(shown, /sig_/)
      const paths = Object.keys(formatDialects).map((format) => `stream?format=${format}`)
      for (const path of [...paths, 'events']) {
        const url = new URL(`/v1/agent/runs/${runId}/${path}`, polylog.baseUrl)
        url.searchParams.set('userId', user)
        const shown = await fetch(url)
        assert.equal(shown.status, 200, path)
        assert.doesNotMatch(await shown.text(), /sig_/, path)
      }
    })

    it('goes on in the next turn of the conversation', async () => {
      const conversationId = someone()
      const userId = someone()
      await ask([[{ think: 'Hm.' }, clock], [{ text: ['Noon.'] }]], { conversationId, userId })

      const { end, requests } = await ask([[{ think: 'Again?' }, notes], [{ text: ['No notes.'] }]], {
        conversationId,
        userId,
        input: 'And my notes?',
      })

      assertAccepted(requests, 4)
      assert.equal(end.status, 'succeeded')
    })

    const searches = name !== 'chat-completions'
    it(
      'searches the web itself: the search is shown as a call, its pages as sources, and the provider gets it back',
      { skip: !searches },
      async () => {
        const user = someone()
        const pages = [
          { url: 'https://walks.example/hills', title: 'Hills' },
          { url: 'https://walks.example/lakes', title: 'Lakes' },
        ]
        const { end, frames, requests } = await ask(
          [
            [{ think: 'I search.' }, { search: 'walks', pages }, { text: ['I found two. '] }, clock],
            [{ text: ['Go now.'] }],
          ],
          { userId: user, providerTools: ['web_search'] },
        )

        assertAccepted(requests, 2)
        assert.equal(end.status, 'succeeded', JSON.stringify(end))
        const states = frames.filter(({ json }) => json.event === 'tool.state').map(({ json }) => json.data)
        assert.deepEqual(
          states.filter((state) => state.name === 'web_search').map(({ status }) => status),
          ['queued', 'running', 'succeeded'],
        )
        const sources = frames.filter(({ json }) => json.event === 'agent.source').map(({ json }) => json.data.url)
        assert.deepEqual(
          sources,
          pages.map(({ url }) => url),
        )
        const [message] = frames.filter(({ json }) => json.event === 'agent.message').map(({ json }) => json.data)
        assert.deepEqual(
          (message?.references as { url: string }[] | undefined)?.map(({ url }) => url),
          sources,
        )
        const runId = String(frames[0]?.json.data.runId)
        const timeline = await callServer(polylog.baseUrl, 'GET', `/v1/agent/runs/${runId}/timeline`, { user })
        for (const shown of [timeline.text, JSON.stringify(frames)]) assert.doesNotMatch(shown, /sig_/)
        const { tool, block } = searchWords[name]
        assert.match(JSON.stringify(requests[0]?.body['tools']), tool)
        assert.match(JSON.stringify(requests[1]?.body), block)
      },
    )

    /** How often the bytes are in a request, as base64. */
    const timesIn = (request: StrictRequest | undefined, bytes: Buffer) =>
      JSON.stringify(request?.body).split(bytes.toString('base64')).length - 1

    for (const [what, mediaType, bytes] of [
      ['an image', 'image/png', pngOf(3)],
      ['a PDF', 'application/pdf', pdf],
    ] as const) {
      it(`gets ${what}, and again in the next turn`, async () => {
        const [userId, conversationId] = [someone(), someone()]
        const file = { type: 'file', filename: 'it.bin', data: dataUrl(mediaType, bytes), mediaType }
        const messages = [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, file] }]
        const first = await ask([[{ text: ['A thing.'] }]], { userId, conversationId, input: null, messages })
        const second = await ask([[{ text: ['Still.'] }]], { userId, conversationId, input: 'Sure?' })

        assertAccepted(second.requests, 2)
        assert.deepEqual([first.end.status, second.end.status], ['succeeded', 'succeeded'])
        assert.deepEqual(
          second.requests.map((request) => timesIn(request, bytes)),
          [1, 1],
        )
        assert.doesNotMatch(JSON.stringify(second.requests[0]?.body), /\[it\.bin/)
      })
    }

    it('gets a text file as text', async () => {
      const file = { type: 'file', filename: 'a.csv', data: dataUrl('text/csv', Buffer.from('a,b\n1,ü\n')) }
      const messages = [{ role: 'user', content: [file, { type: 'text', text: 'Sum it.' }] }]
      const { end, requests } = await ask([[{ text: ['1'] }]], { input: null, messages })

      assertAccepted(requests, 1)
      assert.equal(end.status, 'succeeded')
      assert.match(JSON.stringify(requests[0]?.body), /\[a\.csv, text\/csv, 9 B\]\\na,b\\n1,ü/)
    })

    it('gets the image and the PDF that a tool returned, in this turn and the next', async () => {
      const [userId, conversationId] = [someone(), someone()]
      const { end, frames, requests } = await ask(
        [[{ think: 'I look.' }, { call: 'take_picture', input: {} }], [{ text: ['Nice.'] }]],
        { userId, conversationId },
      )
      assertAccepted(requests, 2)
      assert.equal(end.status, 'succeeded', JSON.stringify(end))
      assert.deepEqual(
        [pngOf(7), pdf].map((bytes) => timesIn(requests[1], bytes)),
        [1, 1],
      )
      assert.equal(timesIn({ body: frames } as never, pngOf(7)), 0, 'bytes are never in a stream')
      const next = await ask([[{ text: ['Yes.'] }]], { userId, conversationId, input: 'Really?' })
      assertAccepted(next.requests, 3)
      assert.equal(timesIn(next.requests[2], pngOf(7)), 1)
    })

    it('calls a tool whose arguments have names as in OData, and gets its call back in this turn and the next', async () => {
      const user = someone()
      const conversation = { userId: user, conversationId: user }
      const given = { $filter: "name eq 'Bo'", paging: { $top: 3 } }
      const renamed = { _filter: given.$filter, paging: { _top: 3 } }
      const sent = name === 'anthropic' ? renamed : given
      const { end, frames } = await ask(
        [[{ think: 'I ask.' }, { call: 'query_records', input: sent }], [{ text: ['Bo.'] }]],
        conversation,
      )
      assert.equal(end.status, 'succeeded', JSON.stringify(end))
      const told = JSON.stringify(frames.map(({ json }) => json))
      assert.ok(told.includes(JSON.stringify(given)), told)
      assert.ok(!told.includes('_filter'), told)

      const { requests } = await ask([[{ text: ['Yes.'] }]], { ...conversation, input: 'Sure?' })

      assertAccepted(requests, 3)
      for (const { body } of requests.slice(1)) {
        const text = JSON.stringify(body).replaceAll('\\', '')
        assert.ok(text.includes(JSON.stringify(sent)), text)
        // The result is what the tool said.
        assert.ok(text.includes(JSON.stringify(given)), text)
      }
    })

    it('goes on with calls that another model made, whatever their ids and texts are', async () => {
      const callOf = (id: string) => ({ id, type: 'function', function: { name: 'current_time', arguments: '{}' } })
      const turn = (...ids: string[]) => [
        {
          role: 'user',
          content: [
            { type: 'text', text: ' ' },
            { type: 'text', text: 'And now?' },
          ],
        },
        { role: 'assistant', content: '\n\n', tool_calls: ids.map(callOf) },
        ...ids.map((id) => ({ role: 'tool', tool_call_id: id, content: `Result of ${id.slice(-3)}` })),
      ]
      const messages = [
        ...turn('functions.current_time:0', 'long'.repeat(40)),
        { role: 'assistant', content: 'Noon.' },
        ...turn('functions.current_time:0'),
      ]
      // The list ends with results: the provider has to go on in a turn that it did not begin.
      const { end, requests } = await ask([[{ text: ['One.'] }]], { input: null, messages })
      assertAccepted(requests, 1)
      assert.equal(end.status, 'succeeded')
      const body = JSON.stringify(requests[0]?.body)
      assert.equal(body.split('Result of e:0').length, 3)

      const next = await ask([[{ text: ['One.'] }]], {
        input: null,
        messages: [...messages, { role: 'assistant', content: ' ' }, { role: 'user', content: 'Sure?' }],
      })
      assertAccepted(next.requests, 2)
    })

    it('goes on after calls of tools that do not exist, and with arguments that are no object', async () => {
      const user = someone()
      const conversation = { userId: user, conversationId: user }
      const odd: Block[] = [
        { call: 'functions.search “notes”', input: { query: 'walk' } },
        { call: 'x'.repeat(100), input: {} },
        { call: 'search_notes', input: ['walk'] },
      ]
      const { end, frames, requests } = await ask([odd, [{ text: ['I was wrong.'] }]], conversation)
      assertAccepted(requests, 2)
      assert.equal(end.status, 'succeeded')
      assert.deepEqual(toolStatuses(frames, 'search_notes'), ['queued', 'failed'])
      assert.deepEqual(toolStatuses(frames, 'functions.search “notes”'), ['queued', 'failed'])

      const next = await ask([[{ text: ['Fine.'] }]], { ...conversation, input: 'And now?' })
      assertAccepted(next.requests, 3)
    })

    const families = {
      anthropic: 'anthropic/claude-haiku-4-5',
      'openai-responses': 'openai/gpt-5.4',
      gemini: 'google/gemini-3-flash-preview',
      'chat-completions': undefined,
    }[name]
    it('takes over from another model in the middle of its tool loop', { skip: families === undefined }, async () => {
      const models = [polylogModel(name), families]
      const { end, requests } = await ask(
        [[{ think: 'I look.' }, clock], [{ overloaded: true }], [{ think: 'I see.' }, notes], [{ text: ['Noon.'] }]],
        { model: models },
      )

      assertAccepted(requests, 4)
      assert.equal(end.status, 'succeeded', JSON.stringify(end))
    })

    it('gives an answer that fits a schema, after reasoning and tools', async () => {
      const schema = {
        type: 'object',
        properties: { hour: { type: 'string' } },
        required: ['hour'],
        additionalProperties: false,
      }
      const answers: Block[][] = [
        [{ think: 'I look.' }, clock],
        [{ think: 'Noon.' }, { text: ['At noon'] }],
        [{ think: 'JSON, then.' }, { text: ['{"hour":', '"noon"}'] }],
      ]
      const { end, frames, requests } = await ask(answers, { output: { schema } })

      assertAccepted(requests, 3)
      assert.equal(end.status, 'succeeded', JSON.stringify(end))
      assert.deepEqual(end.data, { hour: 'noon' })
      assert.match(textOf(frames), /\{"hour":"noon"\}$/)

      const plain = await ask([[{ text: ['{"hour":"one"}'] }]], {
        output: { schema },
        context: { composer: { enabledTools: [] } },
      })
      assertAccepted(plain.requests, 4)
      assert.deepEqual(plain.end.data, { hour: 'one' })
      const body = plain.requests[3]?.body as Record<string, Record<string, unknown>>
      const native = {
        anthropic: body['output_config']?.['format'],
        'openai-responses': body['text']?.['format'],
        gemini: body['generationConfig']?.['responseJsonSchema'] ?? body['generationConfig']?.['responseSchema'],
        'chat-completions': body['response_format'],
      }[name]
      assert.match(JSON.stringify(native), /"hour":\{"type":"string"/i)
    })

    it('reads most of the second turn from its cache, and the usage of the run says so', async () => {
      const [userId, conversationId] = [someone(), someone()]
      const long = 'and so on '.repeat(600)
      await ask([[{ text: [`Once upon a time ${long}`] }]], { userId, conversationId, input: `A story, ${long}` })
      const { end } = await ask([[{ think: 'Hm.' }, clock], [{ text: ['Noon.'] }]], { userId, conversationId })

      const { inputTokens, cachedTokens } = end.usage as { inputTokens: number; cachedTokens: number }
      assert.ok(cachedTokens > 0.6 * inputTokens, `${cachedTokens} of ${inputTokens}`)
      assert.ok(cachedTokens < inputTokens)
    })

    it('is cut off in the middle: the run fails and may be tried again', async () => {
      const { end, frames } = await ask([[{ text: ['Half an '] }, { cut: true }]])

      assert.equal(end.status, 'failed')
      assert.equal(end.error.code, 'model_stream_incomplete')
      assert.equal(textOf(frames), 'Half an ')
    })

    it('is overloaded: the run says so', async () => {
      const { end } = await ask([[{ overloaded: true }]])

      assert.equal(end.status, 'failed')
      assert.equal(end.error.code, 'model_unavailable')
      assert.equal(end.error.retryable, true)
    })

    it('becomes overloaded in the middle of an answer', async () => {
      const { end } = await ask([[{ text: ['Half'] }, { overloaded: true }]])

      assert.equal(end.status, 'failed')
      assert.match(String(end.error.code), /^model_(?:error|unavailable|stream_incomplete)$/)
    })

    it('reaches its output limit: the text so far is the answer', async () => {
      const { end, frames, requests } = await ask([[{ text: ['Far too '] }, { finish: 'length' }]])

      assertAccepted(requests, 1)
      assert.equal(end.status, 'succeeded')
      assert.equal(textOf(frames), 'Far too ')
    })

    it('refuses to answer: the run fails with a code of its own', async () => {
      const { end } = await ask([[{ text: ['I '] }, { finish: 'refusal' }]])

      assert.equal(end.status, 'failed')
      assert.equal(end.error.code, 'model_content_filtered')
    })

    it('reports the tokens of an answer that it refused: they are counted like those of any other', async () => {
      const answered = await ask([[{ text: ['I '] }, { finish: 'stop' }]])
      const refused = await ask([[{ text: ['I '] }, { finish: 'refusal' }]])

      assert.equal(refused.end.status, 'failed')
      assert.equal(refused.end.usage.steps, 1)
      assert.ok(refused.end.usage.inputTokens > 0)
      assert.equal(refused.end.usage.outputTokens, answered.end.usage.outputTokens)
    })

    it(
      'reports the tokens of the prompt at the start: they are counted if the answer fails or is cancelled',
      { skip: name !== 'anthropic' && 'it reports tokens only at the end' },
      async () => {
        const whole = (await ask([[{ text: ['Whole.'] }]])).end.usage.inputTokens
        for (const failure of [{ overloaded: true }, { cut: true }] as const) {
          const { end } = await ask([[{ text: ['Half'] }, failure]])
          assert.equal(end.status, 'failed')
          assert.equal(end.usage.inputTokens, whole, JSON.stringify(failure))
        }
        await provider.script([{ text: ['Half'] }, { stall: true }])
        const stream = await openStream(`${polylog.baseUrl}/v1/agent/chat`, {
          method: 'POST',
          body: { userId: someone(), input: 'What now?', providerOptions: thinkingOptions[name] },
        })
        await stream.waitFor(({ json }) => json.event === 'agent.delta')
        const runId = String(stream.frames[0]?.json.data.runId)
        await callServer(polylog.baseUrl, 'POST', `/v1/agent/runs/${runId}/cancel`, {})
        await stream.ended()
        assert.equal(endOf(stream.frames).status, 'cancelled')
        assert.equal(endOf(stream.frames).usage.inputTokens, whole)
      },
    )

    const unknown = {
      anthropic: { fields: { anthropic: { nonsense: 1, seed: 3, topK: 4 } }, ignored: ['seed', 'nonsense'] },
      'openai-responses': {
        fields: { openai: { nonsense: 1, reasoningEffort: 'low' } },
        ignored: ['temp', 'nonsense'],
      },
      gemini: { fields: { google: { nonsense: 1, topK: 4 } }, ignored: ['nonsense'] },
      'chat-completions': undefined,
    }[name]
    it(
      'does not have a setting: the timeline of the run says once that it had no effect',
      {
        skip: unknown === undefined,
      },
      async () => {
        const userId = someone()
        const { frames, requests } = await ask([[clock], [{ text: ['Noon.'] }]], {
          userId,
          temperature: 0.5,
          providerOptions: unknown?.fields,
        })

        assertAccepted(requests, 2)
        const runId = String(frames[0]?.json.data.runId)
        const timeline = await callServer(polylog.baseUrl, 'GET', `/v1/agent/runs/${runId}/timeline`, { user: userId })
        const ignored = [...timeline.text.matchAll(/"code":"setting_ignored".*?"setting":"([^"]*)"/g)].map(
          ([, one]) => one,
        )
        assert.equal(ignored.length, unknown?.ignored.length, ignored.join())
        for (const words of unknown?.ignored ?? []) assert.match(ignored.join(), new RegExp(words))
      },
    )

    it('gets an option that it does not understand: the request fails at once', async () => {
      const wrong = {
        anthropic: { anthropic: { thinking: 'much' } },
        'openai-responses': { openai: { reasoningEffort: 7 } },
        gemini: { google: { thinkingConfig: 'much' } },
        'chat-completions': { deep: { thinking: 'much' } },
      }[name]
      const { end, requests } = await ask([], { providerOptions: wrong })

      assert.equal(end.status, 'failed')
      assert.equal(end.error.code, 'model_error')
      assert.notEqual(end.error.retryable, true)
      // Our own client knows no options, so the server refuses them; the adapters do it before they send anything.
      const sent = name === 'chat-completions'
      assert.match(String(end.error.message), sent ? /refused the request/ : /cannot be sent/)
      assert.equal(requests.length, sent ? 1 : 0)
    })
  })
}

describe('the provider anthropic pauses a long answer', () => {
  let provider: StrictProvider
  let polylog: Polylog

  before(async () => {
    provider = await startStrictProvider('anthropic')
    polylog = await startPolylog(askingStrict('anthropic', provider))
  })
  after(async () => {
    await polylog?.dispose()
    await provider?.stop()
  })

  it('and is asked to go on, within the same step', async () => {
    const pages = [{ url: 'https://a.example/', title: 'A' }]
    await provider.script(
      [{ text: ['I search. '] }, { search: 'one', pages }, { finish: 'pause' }],
      [{ text: ['And '] }, { search: 'two', pages }, { finish: 'pause' }],
      [{ text: ['done.'] }],
    )
    const stream = await openStream(`${polylog.baseUrl}/v1/agent/chat`, {
      method: 'POST',
      body: { userId: someone(), input: 'Go.', providerTools: ['web_search'] },
    })
    await stream.ended()

    const end = endOf(stream.frames)
    assert.equal(end.status, 'succeeded', JSON.stringify(end))
    assert.equal(end.output, 'I search. And done.')
    assert.equal(end.usage.steps, 1)
    assert.equal(end.usage.outputTokens, 21)
    const requests = await provider.requests()
    assert.deepEqual(
      requests.map(({ refused }) => refused),
      [null, null, null],
    )
  })
})
