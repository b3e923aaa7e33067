// The stream and the history of FCMP over real sockets, under a clock that the
// tests move: heartbeats, cursors, dirty rows, logs. The routes are mounted on a
// server of their own, on the real store and bus.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import Fastify from 'fastify'
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod'
import { AppError } from '../../src/errors/app-error.ts'
import { installErrorReplies } from '../../src/http/error-reply.ts'
import { eventRoutes } from '../../src/http/jobs-v1/event-routes.ts'
import type { Server, Services } from '../../src/http/routes.ts'
import { Streams } from '../../src/http/stream-reply.ts'
import type { RunEvent } from '../../src/journal/event.ts'
import type { RunRow } from '../../src/stores/run-store.ts'
import type { ToolResult } from '../../src/tools/tool.ts'
import { scenarios } from '../scenarios/scenarios.ts'
import { callServer, type Json } from '../support/test-server.ts'
import { calls, openRig, type Rig, type RigOptions, says, toolOf } from '../support/run-rig.ts'
import { openStream, type SseFrame, type SseStream } from '../support/sse.ts'

type Edge = {
  url: string
  get(path: string): ReturnType<typeof callServer>
  open(path: string, headers?: Record<string, string>): Promise<SseStream>
}

const heartbeatMs = 5000

async function serve(context: TestContext, parts: Pick<Rig, 'store' | 'bus' | 'clock'>): Promise<Edge> {
  const streams = new Streams({
    ...parts,
    metrics: { streamOpened: () => () => {} },
    isUndecided: async () => false,
    keepAliveIntervals: { pingMs: 3 * heartbeatMs, fcmpHeartbeatMs: heartbeatMs, sessionHeartbeatMs: 2 * heartbeatMs },
  })
  const jobs = { interactions: ({ id }: { id: string }) => parts.store.interactionsOf(id) }
  const services = { journal: parts.store, jobs, streams } as unknown as Services
  const server: Server = Fastify({
    forceCloseConnections: true,
  }).withTypeProvider<ZodTypeProvider>()
  server.setValidatorCompiler(validatorCompiler)
  server.setSerializerCompiler(serializerCompiler)
  installErrorReplies(server)
  eventRoutes(server, services, '/v1/jobs', async (request) => {
    const run = await parts.store.readRun((request.params as { request_id: string }).request_id)
    if (run === undefined) throw new AppError('run_not_found', 'There is no such run.')
    return run
  })
  const url = await server.listen({ host: '127.0.0.1', port: 0 })
  context.after(async () => {
    streams.endAll()
    await server.close()
  })
  return {
    url,
    get: (path) => callServer(url, 'GET', `/v1/jobs/${path}`),
    open: (path, headers = {}) => openStream(`${url}/v1/jobs/${path}`, { headers }),
  }
}

async function rigged(context: TestContext, options: RigOptions = {}): Promise<Rig & Edge> {
  const rig = await openRig(options)
  context.after(() => rig.close())
  const edge = await serve(context, rig)
  return { ...rig, ...edge }
}

/** A store that holds one finished journal, and says that some of its rows are dirty. */
function storeWith(events: readonly RunEvent[], dirty: readonly number[] = []): Pick<Rig, 'store' | 'bus' | 'clock'> {
  const row = { id: 'r', status: 'succeeded', lastSeq: events.length, endedAt: 1 } as unknown as RunRow
  const store = {
    readRun: (id: string) => Promise.resolve(id === 'r' ? row : undefined),
    interactionsOf: () => Promise.resolve([]),
    readEvents: (_: string, after: number) => {
      const rest = events.filter(({ seq }) => seq > after)
      return Promise.resolve({
        events: rest.filter(({ seq }) => !dirty.includes(seq)),
        skipped: rest.filter(({ seq }) => dirty.includes(seq)).length,
        nextAfter: events.length,
        atHead: true,
      })
    },
  } as unknown as Rig['store']
  const clock = {
    now: () => 0,
    monotonic: () => 0,
    after: () => ({ cancel: () => {} }),
    advance: () => Promise.resolve(),
    set: () => {},
    waitFor: () => {},
    pending: 0,
  }
  return {
    store,
    clock,
    bus: {
      begin: () => {},
      publish: () => {},
      wake: () => {},
      join: () => ({ after: () => undefined, leave: () => {} }),
    },
  }
}

const events = (frames: readonly SseFrame[]): Json[] =>
  frames.filter(({ event }) => event === 'chat_event').map(({ json }) => json as unknown as Json)
const is = (type: string) => (frame: SseFrame) => (frame.json as unknown as Json).type === type
const asks = (): RigOptions => ({
  answer: (request) =>
    request.messages.length > 3 ? says('Done.') : calls({ callId: 'c1', name: 'send', text: 'May I?' }),
  tools: [
    toolOf({
      name: 'send',
      effect: 'unsafe',
      confirm: 'always',
      run: () => Promise.resolve({ ok: true, output: 'sent', summary: 'Sent.' }),
    }),
  ],
})

for (const scenario of scenarios) {
  test(`for every cursor of “${scenario.name}” the stream is the rest of the history`, async (context) => {
    const edge = await serve(context, storeWith(scenario.events))
    const { body: history } = await edge.get('r/events/history')
    assert.equal(history.count, history.events.length)

    for (let cursor = 0; cursor <= history.count; cursor++) {
      const stream = await edge.open(`r/events?cursor=${cursor}`)
      await stream.ended()
      assert.deepEqual(events(stream.frames), history.events.slice(cursor))
      assert.deepEqual(
        stream.frames.map(({ id }) => id),
        [undefined, ...history.events.slice(cursor).map(({ seq }: Json) => String(seq))],
      )
    }
    const reconnect = await edge.open('r/events', { 'last-event-id': String(history.count) })
    await reconnect.ended()
    assert.equal(reconnect.status, 204)
    assert.equal((await edge.get(`r/events?cursor=${history.count + 1}`)).status, 400)
  })
}

test('a stream opens with a snapshot without an id, and closes after the terminal events', async (context) => {
  const rig = await rigged(context)
  const { run } = await rig.start()

  const stream = await rig.open(`${run.id}/events`)
  const { cut } = await stream.ended()

  assert.equal(cut, false)
  assert.match(stream.headers['content-type'] ?? '', /^text\/event-stream/)
  assert.deepEqual([stream.frames[0]?.event, stream.frames[0]?.id], ['snapshot', undefined])
  assert.deepEqual(
    events(stream.frames).map(({ type }) => type),
    [
      'conversation.state.changed',
      'conversation.started',
      'assistant.message.final',
      'conversation.state.changed',
      'conversation.completed',
    ],
  )
})

test('a stream sends a heartbeat if nothing was sent for the interval, which starts again with every event', async (context) => {
  const gate = Promise.withResolvers<void>()
  const found = Promise.withResolvers<ToolResult>()
  const rig = await rigged(context, {
    async *answer() {
      await gate.promise
      yield* calls({ callId: 'c1', name: 'look', text: 'Looking.' })
    },
    tools: [toolOf({ name: 'look', run: () => found.promise })],
  })
  const { run } = await rig.start()
  const stream = await rig.open(`${run.id}/events`)
  await stream.waitFor(is('conversation.started'))
  const beats = () => stream.frames.filter(({ event }) => event === 'heartbeat')

  await rig.clock.advance(heartbeatMs - 1000)
  assert.equal(beats().length, 0)
  gate.resolve()
  await stream.waitFor(is('assistant.message.final'))
  await rig.clock.advance(heartbeatMs - 1)
  assert.equal(beats().length, 0, 'an event was sent in between')
  await rig.clock.advance(1)
  const beat = await stream.waitFor(({ event }) => event === 'heartbeat')

  assert.equal(beat.id, undefined)
  assert.deepEqual(beat.json, { ts: new Date(rig.clock.now()).toISOString() })
  stream.leave()
  await rig.service.cancel('ada', run.id, null)
  found.resolve({ ok: true, output: 'late', summary: 'Late.' })
})

test('a stream stays open while a person is awaited, and goes on after the decision', async (context) => {
  const rig = await rigged(context, asks())
  const { run } = await rig.start()
  const stream = await rig.open(`${run.id}/events`)
  const asked = (await stream.waitFor(is('user.input.required'))).json as unknown as Json
  await rig.clock.advance(heartbeatMs)
  await stream.waitFor(({ event }) => event === 'heartbeat')
  const late = await rig.open(`${run.id}/events?cursor=${asked.seq}`)
  await late.waitFor(({ event }) => event === 'snapshot')

  const [row] = await rig.store.interactionsOf(run.id)
  await rig.confirm('ada', row?.id ?? '', undefined)
  await stream.ended()
  await late.ended()

  assert.deepEqual(late.frames[0]?.json, { status: 'waiting_user', cursor: asked.seq, pending_interaction_id: 1 })
  assert.deepEqual(
    events(late.frames)
      .map(({ type }) => type)
      .slice(0, 3),
    ['interaction.reply.accepted', 'conversation.state.changed', 'conversation.state.changed'],
  )
  assert.deepEqual(events(stream.frames).slice(asked.seq), events(late.frames))
})

test('of cursor and Last-Event-ID the larger counts', async (context) => {
  const rig = await rigged(context)
  const { run } = await rig.start()
  await rig.until(run.id, ({ endedAt }) => endedAt !== null)

  for (const [query, header, first] of [
    ['1', '3', 4],
    ['3', '1', 4],
    ['', '2', 3],
  ] as const) {
    const stream = await rig.open(`${run.id}/events?cursor=${query}`, { 'last-event-id': header })
    await stream.ended()
    assert.equal(events(stream.frames)[0]?.seq, first)
    assert.deepEqual(stream.frames[0]?.json, { status: 'succeeded', cursor: first - 1 })
  }
})

test('a cursor that this run never gave out is 400, and says where the run stands', async (context) => {
  const rig = await rigged(context)
  const { run } = await rig.start()
  await rig.until(run.id, ({ endedAt }) => endedAt !== null)

  for (const cursor of ['6', '999999', '-1', 'x', '1.2', '1e3']) {
    const answer = await rig.get(`${run.id}/events?cursor=${cursor}`)
    assert.deepEqual([answer.status, answer.body.code], [400, 'unknown_cursor'], cursor)
  }
  assert.match((await rig.get(`${run.id}/events?cursor=6`)).body.message, /stands at 5/)
  assert.equal((await rig.get('nobody/events')).status, 404)
})

test('the history can be cut by seq and by time, both ends included', async (context) => {
  const { events: stored } = scenarios.find(({ name }) => name === 'one tool') ?? { events: [] }
  const edge = await serve(context, storeWith(stored))
  const all = (await edge.get('r/events/history')).body
  const seqs = async (query: string) =>
    (await edge.get(`r/events/history?${query}`)).body.events.map(({ seq }: Json) => seq)
  const at = (seq: number) => encodeURIComponent(all.events[seq - 1].ts)

  assert.deepEqual(Object.keys(all), ['request_id', 'count', 'events'])
  assert.deepEqual(await seqs('from_seq=2&to_seq=4'), [2, 3, 4])
  assert.deepEqual(await seqs('from_seq=5&to_seq=4'), [])
  assert.deepEqual(await seqs(`from_ts=${at(3)}&to_ts=${at(4)}`), [3, 4])
  assert.deepEqual(await seqs(`from_ts=${at(3).replace('Z', '+00:00')}&to_seq=3`), [3], 'a plus that was not encoded')
  assert.deepEqual(await seqs(`from_ts=${at(3).replace('Z', '')}&to_seq=3`), [3], 'without a zone')
  for (const query of ['from_seq=-1', 'from_seq=x', 'from_ts=yesterday', 'to_ts=2026-13-45T00:00:00Z']) {
    assert.deepEqual([(await edge.get(`r/events/history?${query}`)).status], [400], query)
  }
})

test('rows that cannot be read, and rows that do not fit FCMP, are left out and counted; the rest has no hole', async (context) => {
  const { events: stored } = scenarios.find(({ name }) => name === 'one tool') ?? { events: [] }
  const first = stored.findIndex(({ type }) => type === 'message.done')
  const second = stored.findLastIndex(({ type }) => type === 'message.done')
  // Fits the journal, and no client of FCMP.
  const odd = stored.map((event, index) => (index === second ? { ...event, attempt: 0 } : event))
  const edge = await serve(context, storeWith(odd, [first + 1]))

  const { status, body } = await edge.get('r/events/history')
  const stream = await edge.open('r/events')
  await stream.ended()

  assert.equal(status, 200)
  assert.deepEqual(
    body.events.map(({ seq }: Json) => seq),
    [1, 2, 3, 4],
  )
  assert.deepEqual(
    body.diagnostics.map(({ code, count }: Json) => [code, count]),
    [
      ['HISTORY_ROW_UNREADABLE', 1],
      ['SCHEMA_INTERNAL_INVALID', 1],
    ],
  )
  assert.deepEqual(events(stream.frames), body.events)
  const rules = (await edge.get('r/invariants')).body
  assert.deepEqual([rules.kept, rules.skipped], [false, 1])
  assert.deepEqual(
    rules.rules.filter(({ kept }: Json) => kept === false).map(({ id }: Json) => id),
    ['OR-04', 'OR-08'],
  )
})

test('the rules of a run that is in order are all kept', async (context) => {
  const rig = await rigged(context)
  const { run } = await rig.start()
  await rig.until(run.id, ({ endedAt }) => endedAt !== null)

  const { body } = await rig.get(`${run.id}/invariants`)

  assert.deepEqual([body.request_id, body.kept, body.skipped], [run.id, true, 0])
  assert.ok(body.rules.every(({ kept, broken }: Json) => kept === true && broken.length === 0))
})

test('the log has the prompt, what was said, what tools gave, and what went wrong', async (context) => {
  const edge = await serve(
    context,
    storeWith(scenarios.find(({ name }) => name === 'tool failed politely')?.events ?? []),
  )

  const { body } = await edge.get('r/logs')

  assert.deepEqual(body, {
    request_id: 'r',
    prompt: 'Look into my notes.',
    stdout: '{"found":false}\nThere is no such note.\n',
    stderr: 'tool_failed: There is no note “nothing”.\n',
  })
})

test('a range of the log is clamped, and never half of a character', async (context) => {
  const edge = await serve(context, storeWith(scenarios.find(({ name }) => name === 'plain answer')?.events ?? []))
  const text = 'Grüße, 世界 🙂\nand "bye".\n'
  const range = async (query: string) => (await edge.get(`r/logs/range?${query}`)).body
  const { length } = Buffer.from(text)

  assert.deepEqual(await range('stream=stdout&byte_from=0&byte_to=99999'), {
    stream: 'stdout',
    byte_from: 0,
    byte_to: length,
    chunk: text,
  })
  assert.deepEqual(await range('stream=stdout'), { stream: 'stdout', byte_from: 0, byte_to: 0, chunk: '' })
  assert.deepEqual(await range('stream=stdout&byte_from=99999&byte_to=999999'), {
    stream: 'stdout',
    byte_from: length,
    byte_to: length,
    chunk: '',
  })
  assert.deepEqual(await range('stream=stderr&byte_to=10'), { stream: 'stderr', byte_from: 0, byte_to: 0, chunk: '' })
  assert.equal((await range('stream=pty&byte_to=99999')).chunk, text)
  for (let size = 1; size < 6; size++) {
    let read = ''
    for (let from = 0; from < length;) {
      const part = await range(`stream=stdout&byte_from=${from}&byte_to=${from + size}`)
      assert.equal(part.byte_from, from)
      read += String(part.chunk)
      from = part.byte_to
    }
    assert.equal(read, text, `in pieces of ${size}`)
  }
  for (const query of ['stream=other', '', 'stream=stdout&byte_from=5&byte_to=3', 'stream=stdout&byte_from=-1']) {
    assert.equal((await edge.get(`r/logs/range?${query}`)).status, 400, query)
  }
})
