// @polylog/client against the real server, with a proxy between them that breaks things. What the client gives out is
// compared with the frames that a reader with a good connection gets.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import fc from 'fast-check'
import {
  type ClientOptions,
  type ConnectionState,
  createClient,
  foldRun,
  openRequests,
  PolylogError,
  type Run,
  type RunFrame,
} from '../../client/src/index.ts'
import { clientTimers } from '../support/client-timers.ts'
import { type Fault, type NastyProxy, startNastyProxy } from '../support/nasty-proxy.ts'
import { calls, hangsAfter, says, sharedTestServer, someone, until } from '../support/test-server.ts'

const server = sharedTestServer()
let proxy: NastyProxy

before(async () => {
  proxy = await startNastyProxy()
})
after(() => proxy.close())
beforeEach(() => {
  proxy.target = server.polylog.baseUrl
  proxy.faults = []
  proxy.seen.length = 0
})

function clientOf(userId: string, options: ClientOptions = {}) {
  const timers = clientTimers()
  return { timers, client: createClient({ baseUrl: proxy.baseUrl, userId, ...timers, ...options }) }
}

async function allOf(run: Run): Promise<RunFrame[]> {
  const frames: RunFrame[] = []
  for await (const frame of run) frames.push(frame)
  return frames
}

/** The frames of the run as the server sends them to a reader whose connection never breaks. */
async function wholeRun(userId: string, runId: string): Promise<RunFrame[]> {
  return await allOf(createClient({ baseUrl: server.polylog.baseUrl, userId }).attach(runId))
}

async function rejection(promise: Promise<unknown>): Promise<PolylogError> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof PolylogError, String(error))
  return error
}

describe('a stream of the client', () => {
  test('gives every frame of a run, typed, and ends with it', async () => {
    const user = someone()
    await server.provider.script([says('Hel', 'lo')], user)
    const { client } = clientOf(user)

    const run = await client.chat({ input: user })
    const frames = await allOf(run)

    assert.deepEqual(frames, await wholeRun(user, run.id))
    assert.equal(frames.at(-1)?.event, 'agent.end')
    const state = foldRun(frames)
    assert.equal(state.status, 'succeeded')
    assert.equal(state.output, 'Hello')
    assert.equal(state.start?.conversationId, run.conversationId)
  })

  test('is the same for every byte at which its connection breaks', async () => {
    const user = someone()
    await server.provider.script([says('Grüße ', 'an ', 'alle 👋')], user)
    const { client } = clientOf(user)
    const run = await client.chat({ input: user })
    const whole = await allOf(run)
    const bytes = Buffer.byteLength((await server.call('GET', `/v1/agent/runs/${run.id}/stream`, { user })).text)
    assert.ok(bytes > 500)

    for (let at = 0; at < bytes; at += 7) {
      proxy.faults = [{ cutAfterBytes: at, chunkBytes: 5 }, { endAfterBytes: Math.floor((bytes - at) / 2) }]
      assert.deepEqual(await allOf(client.attach(run.id)), whole, `cut after ${at} bytes`)
    }
  })

  test('is the same over any sequence of faults', async () => {
    const user = someone()
    await server.provider.script([calls(['current_time', {}]), says('It is ', 'late. ', '🕛')], user)
    const { client } = clientOf(user)
    const run = await client.chat({ input: user })
    const whole = await allOf(run)
    const anyFault: fc.Arbitrary<Fault> = fc.oneof(
      fc.record({ cutAfterBytes: fc.nat(3000), chunkBytes: fc.integer({ min: 1, max: 700 }) }),
      fc.record({ endAfterBytes: fc.nat(3000) }),
      fc.constant({ refuses: true }),
      fc.constant({ losesAnswer: true }),
      fc.constantFrom(429, 502, 503, 504).map((status) => ({ answers: { status, body: 'busy' } })),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(anyFault, { maxLength: 8 }), async (faults) => {
        proxy.faults = [...faults]
        assert.deepEqual(await allOf(client.attach(run.id)), whole)
      }),
      { numRuns: 60 },
    )
  })

  test('asks only for what it does not have', async () => {
    const user = someone()
    await server.provider.script([hangsAfter('one ', 'two ')], user)
    const { client } = clientOf(user)
    const run = await client.chat({ input: user })
    const ids: string[] = []
    for await (const frame of run) {
      ids.push(frame.id)
      if (frame.event === 'agent.delta' && frame.data.delta === 'two ') {
        proxy.cutAll()
        await client.cancel(run.id)
      }
    }
    const attached = proxy.seen.filter(({ method }) => method === 'GET').map(({ url }) => new URL(url, 'http://x'))
    assert.ok(attached.length > 0)
    for (const url of attached) assert.ok(ids.includes(url.searchParams.get('after') ?? ''), url.href)
    assert.deepEqual(
      ids,
      (await wholeRun(user, run.id)).map(({ id }) => id),
    )
  })

  test('waits longer after each failure, as long as the server asks, and starts again after a success', async () => {
    const user = someone()
    await server.provider.script([says('Hello')], user)
    const { client, timers } = clientOf(user)
    const run = await client.chat({ input: user })
    const whole = await allOf(run)
    const states: ConnectionState[] = []

    proxy.faults = [
      { refuses: true },
      { answers: { status: 503, body: '<html>restarting</html>' } },
      { answers: { status: 429, headers: { 'retry-after': '7' }, body: '{"code":"rate_limited","message":"Wait."}' } },
      { cutAfterBytes: 600 },
      { refuses: true },
    ]
    timers.waits.length = 0
    const again = await allOf(client.attach(run.id, { onConnection: (state) => states.push(state) }))

    assert.deepEqual(again, whole)
    assert.deepEqual(timers.waits, [500, 1000, 7000, 500, 1000])
    assert.deepEqual(
      states.map((state) => (state.state === 'open' ? 'open' : `${state.attempt} ${state.error.code}`)),
      ['1 network_error', '2 unexpected_response', '3 rate_limited', 'open', '1 stream_cut', '2 network_error', 'open'],
    )
  })

  test('obeys the reconnection time that a stream sets', async () => {
    const user = someone()
    await server.provider.script([says('Hello')], user)
    const { client, timers } = clientOf(user)
    const run = await client.chat({ input: user })
    const whole = await allOf(run)
    const headers = { 'content-type': 'text/event-stream' }
    proxy.faults = [{ answers: { status: 200, headers, body: 'retry: 4000\n\n' } }]
    timers.waits.length = 0

    assert.deepEqual(await allOf(client.attach(run.id)), whole)
    assert.deepEqual(timers.waits, [4000])
  })

  test('opens a connection again that was silent for too long, also while the machine slept', async () => {
    const user = someone()
    await server.provider.script([says('one ', 'two ')], user)
    const { client, timers } = clientOf(user)
    const run = await client.chat({ input: user })
    const whole = await allOf(run)
    proxy.faults = [{ silentAfterBytes: 600 }]
    const got: RunFrame[] = []
    const states: ConnectionState[] = []
    const reading = (async () => {
      for await (const frame of client.attach(run.id, { onConnection: (state) => states.push(state) })) got.push(frame)
    })()
    await until('a frame', () => (got.length > 0 ? true : undefined))
    timers.sleep(44_000)
    assert.equal(states.length, 1)
    timers.sleep(1000)
    await reading

    assert.deepEqual(got, whole)
    assert.deepEqual(
      states.map(({ state }) => state),
      ['open', 'waiting', 'open'],
    )
  })

  test('reads damaged frames again', async () => {
    const user = someone()
    await server.provider.script([says('Hello')], user)
    const { client } = clientOf(user)
    const run = await client.chat({ input: user })
    const whole = await allOf(run)
    const headers = { 'content-type': 'text/event-stream' }
    proxy.faults = [{ answers: { status: 200, headers, body: 'id: 1\nevent: agent.start\ndata: {"event":"age\n\n' } }]

    assert.deepEqual(await allOf(client.attach(run.id)), whole)
  })

  test('says nothing twice if the server repeats frames', async () => {
    const user = someone()
    await server.provider.script([says('Hello')], user)
    const { client } = clientOf(user)
    const run = await client.chat({ input: user })
    const whole = await allOf(run)
    const { text } = await server.call('GET', `/v1/agent/runs/${run.id}/stream`, { user })
    const part = text.slice(0, text.indexOf('event: agent.message'))
    const headers = { 'content-type': 'text/event-stream' }
    const body = part.slice(0, part.lastIndexOf('id: '))
    proxy.faults = [1, 2].map(() => ({ answers: { status: 200, headers, body } }))

    assert.deepEqual(await allOf(client.attach(run.id)), whole)
  })

  test('ends at once if the run has ended and everything was read', async () => {
    const user = someone()
    await server.provider.script([says('Hello')], user)
    const { client } = clientOf(user)
    const run = await client.chat({ input: user })
    const last = (await allOf(run)).at(-1)
    assert.deepEqual(await allOf(client.attach(run.id, { after: last?.id ?? '' })), [])
  })

  test('can be read again from the beginning', async () => {
    const user = someone()
    await server.provider.script([says('Hello')], user)
    const { client } = clientOf(user)
    const run = await client.chat({ input: user })
    assert.deepEqual(await allOf(run), await allOf(run))
    assert.equal((await run.result()).output, 'Hello')
  })

  test('gives up after as many failures as the options allow', async () => {
    const { client, timers } = clientOf('someone', { streamRetries: 3 })
    proxy.faults = Array.from({ length: 10 }, () => ({ refuses: true }))
    const error = await rejection(allOf(client.attach('some-run')))
    assert.equal(error.code, 'network_error')
    assert.equal(error.retryable, true)
    assert.equal(timers.waits.length, 3)
  })

  test('does not repeat what can never succeed', async () => {
    const { client, timers } = clientOf(someone())
    const missing = await rejection(allOf(client.attach('no-such-run')))
    assert.deepEqual([missing.code, missing.status, missing.retryable], ['run_not_found', 404, false])
    proxy.faults = [{ answers: { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>log in</html>' } }]
    assert.equal((await rejection(allOf(client.attach('some-run')))).code, 'unexpected_response')
    assert.deepEqual(timers.waits, [])
  })

  test('stops reading when it is aborted, in every state, and the run goes on', async () => {
    const user = someone()
    await server.provider.script([hangsAfter('one ')], user)
    const { client } = clientOf(user)
    const controller = new AbortController()
    const run = await client.chat({ input: user }, { signal: controller.signal })
    const reason = new Error('the user left')
    await assert.rejects(async () => {
      for await (const frame of run) if (frame.event === 'agent.delta') controller.abort(reason)
    }, reason)
    await assert.rejects(allOf(run), reason)
    await assert.rejects(client.getRun(run.id, { signal: controller.signal }), reason)

    assert.equal((await client.getRun(run.id)).status, 'running')
    const waiting = new AbortController()
    proxy.faults = [{ refuses: true }]
    const real = createClient({ baseUrl: proxy.baseUrl, userId: user })
    const onConnection = ({ state }: ConnectionState) => {
      if (state === 'waiting') waiting.abort(reason)
    }
    await assert.rejects(allOf(real.attach(run.id, { signal: waiting.signal, onConnection })), reason)

    assert.equal((await client.cancel(run.id, { reason: 'enough' })).status, 'cancelled')
    const state = await client.attach(run.id).result()
    assert.deepEqual([state.status, state.reason], ['cancelled', 'enough'])
  })

  test('closes its connection when the loop is left', async () => {
    const user = someone()
    await server.provider.script([hangsAfter('one ')], user)
    const { client } = clientOf(user)
    const run = await client.chat({ input: user })
    for await (const frame of run) if (frame.event === 'agent.delta') break
    await until('no open connection', () => (proxy.openConnections() === 0 ? true : undefined))
    assert.equal((await client.getRun(run.id)).status, 'running')
    await client.cancel(run.id)
  })
})

describe('a request of the client', () => {
  test('starts one run, also if its answer is lost again and again', async () => {
    const user = someone()
    await server.provider.script([says('Hello')], user)
    const { client } = clientOf(user)
    proxy.faults = [{ refuses: true }, { losesAnswer: true }, { losesAnswer: true }]

    const run = await client.chat({ input: user })
    const { output } = await run.result()

    assert.equal(output, 'Hello')
    assert.equal(proxy.seen.filter(({ method }) => method === 'POST').length, 4)
    const { body } = await server.call('GET', '/v1/agent/runs', { user })
    assert.equal((body as unknown as unknown[]).length, 1)
    assert.equal((await server.asked(user)).length, 1)
  })

  test('with a key of its own finds the run again', async () => {
    const user = someone()
    await server.provider.script([says('Hello')], user)
    const { client } = clientOf(user)
    const first = await client.chat({ input: user }, { idempotencyKey: `key-${user}` })
    const second = await client.chat({ input: user }, { idempotencyKey: `key-${user}` })
    assert.equal(second.id, first.id)
    assert.deepEqual(await allOf(second), await allOf(first))
    const error = await rejection(client.chat({ input: 'other' }, { idempotencyKey: `key-${user}` }))
    assert.deepEqual([error.code, error.status], ['idempotency_key_reused', 409])
  })

  test('fails with the code and the sentence of the server', async () => {
    const { client, timers } = clientOf(someone())
    const error = await rejection(client.chat({ input: '' }))
    assert.deepEqual([error.code, error.status, error.retryable], ['messages_or_prompt_required', 400, false])
    assert.match(error.message, /Send messages/)
    assert.deepEqual(timers.waits, [])
  })

  test('gives up after some attempts', async () => {
    const { client, timers } = clientOf(someone(), { requestRetries: 2 })
    proxy.faults = Array.from({ length: 9 }, () => ({ refuses: true }))
    const error = await rejection(client.chat({ input: 'hello' }))
    assert.deepEqual([error.code, error.status, error.retryable], ['network_error', 0, true])
    assert.deepEqual(timers.waits, [500, 1000])
  })

  test('runs an agent once, with the parts of its answer', async () => {
    const user = someone()
    await server.provider.script([says('Hello')], user)
    const { client } = clientOf(user)
    const run = await client.run({ agentId: 'chat_conversation', input: { input: user } })
    assert.equal((await run.result()).output, 'Hello')
  })

  test('asks for its headers at each attempt', async () => {
    let asked = 0
    const { client } = clientOf(someone(), { headers: async () => ({ 'x-token': String((asked += 1)) }) })
    proxy.faults = [{ refuses: true }]
    await client.conversations.list()
    assert.deepEqual(
      proxy.seen.map(({ headers }) => headers['x-token']),
      ['1', '2'],
    )
  })

  test('decides a confirmation once, and never sends the decision again by itself', async () => {
    const user = someone()
    await server.provider.script([calls(['remember_note', { text: 'milk' }]), says('Noted.')], user)
    const { client } = clientOf(user)
    const run = await client.chat({ input: user })
    const frames: RunFrame[] = []
    for await (const frame of run) {
      frames.push(frame)
      const [request] = openRequests(foldRun(frames))
      if (request?.type !== 'tool') continue
      assert.equal(foldRun(frames).status, 'awaiting_input')
      proxy.faults = [{ losesAnswer: true }]
      const id = request.confirmationId ?? ''
      const lost = await rejection(client.confirm(id))
      assert.deepEqual([lost.code, lost.retryable], ['network_error', true])
      const again = await rejection(client.reject(id))
      assert.deepEqual([again.code, again.status], ['tool_confirmation_resolved', 409])
    }
    const { blocks, status } = foldRun(frames)
    assert.equal(status, 'succeeded')
    const [tool] = blocks.filter((block) => block.type === 'tool')
    assert.deepEqual([tool?.name, tool?.status], ['remember_note', 'succeeded'])
  })

  test('repeats a decision that a busy server has refused', async () => {
    const { client, timers } = clientOf(someone())
    proxy.faults = [{ answers: { status: 503, headers: { 'retry-after': '2' }, body: '' } }]
    assert.equal((await rejection(client.confirm('no-such'))).code, 'tool_confirmation_not_found')
    assert.deepEqual(timers.waits, [2000])
  })

  test('executes tools of the client, also if the answer to its result is lost', async () => {
    const user = someone()
    await server.provider.script([calls(['locate', { precise: true }]), says('Nice place.')], user)
    const { client } = clientOf(user)
    const locate = { name: 'locate', description: 'Where the user is.', inputSchema: { type: 'object' } }
    const run = await client.chat({ input: user, clientTools: [locate] })
    const frames: RunFrame[] = []
    for await (const frame of run) {
      frames.push(frame)
      const [request] = openRequests(foldRun(frames))
      if (request?.type !== 'tool' || request.source !== 'client') continue
      assert.deepEqual([request.name, request.input], ['locate', { precise: true }])
      proxy.faults = [{ losesAnswer: true }]
      const stored = await client.toolResults(run.id, [{ toolCallId: request.id, output: 'Vienna' }])
      assert.deepEqual(stored.waiting, [])
    }
    const state = foldRun(frames)
    assert.equal(state.output, 'Nice place.')
    const tool = state.blocks.find((block) => block.type === 'tool')
    assert.deepEqual([tool?.status, tool?.output, tool?.interactionId], ['succeeded', 'Vienna', undefined])
  })

  test('uploads files, also if the answer is lost, and messages refer to them', async () => {
    const user = someone()
    await server.provider.script([says('A dot.')], user)
    const { client } = clientOf(user)
    const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const bytes = Buffer.from(dot, 'base64')
    proxy.faults = [{ losesAnswer: true }]
    const file = await client.files.upload(new File([bytes], 'dot.png', { type: 'image/png' }))
    assert.deepEqual([file.name, file.mediaType, file.size], ['dot.png', 'image/png', bytes.length])
    assert.deepEqual(await client.files.upload(new Uint8Array(bytes), { name: 'dot.png' }), file)
    assert.deepEqual(await client.files.get(file.id), file)
    const stored = await fetch(client.files.url(file.id))
    assert.deepEqual(Buffer.from(await stored.arrayBuffer()), bytes)

    const content = [
      { type: 'text', text: user },
      { type: 'file', fileId: file.id },
    ]
    const run = await client.chat({ messages: [{ role: 'user', content }] })
    assert.equal((await run.result()).output, 'A dot.')
    const [message] = await client.conversations.messages(run.conversationId ?? '')
    assert.equal(message?.parts?.[1]?.type === 'file' && message.parts[1].fileId, file.id)
    assert.equal((await rejection(clientOf(someone()).client.files.get(file.id))).code, 'file_not_found')
  })

  test('manages conversations', async () => {
    const user = someone()
    await server.provider.script([says('Hello')], user)
    const { client } = clientOf(user)
    const { id } = await client.conversations.create({ title: 'Plans' })
    await (await client.chat({ input: user, conversationId: id })).result()

    assert.deepEqual(
      (await client.conversations.messages(id)).map(({ role, content }) => [role, content]),
      [
        ['user', user],
        ['assistant', 'Hello'],
      ],
    )
    assert.equal((await client.conversations.update(id, { title: 'Other plans' })).title, 'Other plans')
    assert.deepEqual(
      (await client.conversations.list({ limit: 1 })).map((conversation) => conversation.id),
      [id],
    )
    assert.equal((await client.conversations.get(id)).activeRun, null)
    assert.equal(await client.conversations.delete(id), undefined)
    assert.equal((await rejection(client.conversations.get(id))).code, 'conversation_not_found')
  })

  test('of two tabs: both read the same run, and one decides for both', async () => {
    const user = someone()
    await server.provider.script([calls(['remember_note', { text: 'milk' }]), says('Noted.')], user)
    const here = clientOf(user).client
    const there = clientOf(user).client
    const run = await here.chat({ input: user })
    const other = (async () => {
      const frames: RunFrame[] = []
      for await (const frame of there.attach(run.id)) {
        frames.push(frame)
        const [request] = openRequests(foldRun(frames))
        if (request?.type === 'tool') await there.confirm(request.confirmationId ?? '', { payload: { text: 'tea' } })
      }
      return frames
    })()
    const frames = await allOf(run)
    assert.deepEqual(await other, frames)
    const tool = foldRun(frames).blocks.find((block) => block.type === 'tool')
    assert.deepEqual(tool?.input, { text: 'tea' })
  })
})
