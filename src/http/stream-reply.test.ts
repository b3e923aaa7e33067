import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import Fastify from 'fastify'
import { type ManualClock, manualClock } from '../../test/support/manual-clock.ts'
import { createProcessBus, type LiveBus } from '../bus/live-bus.ts'
import { agentDialect } from '../dialects/agent/agent.ts'
import type { Dialect } from '../dialects/dialect.ts'
import type { RunEvent } from '../journal/event.ts'
import type { EventPage } from '../journal/event-pages.ts'
import type { RunRow } from '../stores/run-store.ts'
import { type ByteSource, type StreamOptions, Streams } from './stream-reply.ts'

const keepAliveMs = 15_000
const stalledReaderMs = 120_000

/** A source whose parts the test gives; `next` waits while there is none. */
class Script implements ByteSource {
  asked = 0
  closed = 0
  private readonly parts: ({ text: string; over: boolean } | null | Error)[] = []
  private waiter: (() => void) | undefined
  private readonly endless: string | undefined

  constructor(endless?: string) {
    this.endless = endless
  }

  give(...parts: ({ text: string; over: boolean } | null | Error)[]): void {
    this.parts.push(...parts)
    this.waiter?.()
  }

  async next(): Promise<{ text: string; over: boolean } | null> {
    this.asked += 1
    if (this.endless !== undefined) return this.closed > 0 ? null : { text: this.endless, over: false }
    while (this.parts.length === 0 && this.closed === 0) {
      await new Promise<void>((resolve) => {
        this.waiter = resolve
      })
    }
    const part = this.parts.shift()
    if (part instanceof Error) throw part
    return part ?? null
  }

  close(): void {
    this.closed += 1
    this.waiter?.()
  }
}

type Reply = Parameters<Streams['send']>[0]

type Rig = {
  clock: ManualClock
  streams: Streams
  bus: LiveBus
  /** How the response looks from the server's side. */
  raw(): ServerResponse
  /** Opens the stream and reads nothing of it yet. */
  open(): Promise<IncomingMessage>
}

async function rig(
  context: TestContext,
  start: (streams: Streams, reply: Reply) => Promise<void>,
  events: RunEvent[] = [],
): Promise<Rig> {
  const clock = manualClock()
  const bus = createProcessBus(clock)
  const page = (after: number): EventPage => {
    const rest = events.filter(({ seq }) => seq > after)
    return { events: rest, skipped: 0, nextAfter: rest.at(-1)?.seq ?? after, atHead: true }
  }
  const streams = new Streams({
    store: {
      readEvents: (_run, after) => Promise.resolve(page(after)),
      readRun: () => Promise.resolve({ id: 'r', endedAt: null, lastSeq: events.length } as RunRow),
    },
    bus,
    clock,
    metrics: { streamOpened: () => () => undefined },
    isUndecided: () => Promise.resolve(false),
    keepAliveIntervals: { pingMs: keepAliveMs, fcmpHeartbeatMs: keepAliveMs, sessionHeartbeatMs: keepAliveMs },
  })
  let raw: ServerResponse | undefined
  const server = Fastify()
  server.get('/', async (_request, reply) => {
    raw = reply.raw
    await start(streams, reply)
    return reply
  })
  await server.listen({ host: '127.0.0.1', port: 0 })
  const { port } = server.server.address() as AddressInfo
  context.after(async () => {
    server.server.closeAllConnections()
    await server.close()
  })
  return {
    clock,
    streams,
    bus,
    raw: () => raw as ServerResponse,
    async open() {
      const request = httpRequest({ host: '127.0.0.1', port, agent: false }).end()
      request.on('error', () => undefined)
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      response.on('error', () => undefined)
      return response
    },
  }
}

const sending =
  (source: ByteSource, options: StreamOptions = {}, dialect: Dialect = agentDialect) =>
  (streams: Streams, reply: Reply) =>
    streams.send(reply, source, dialect, options)

async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  try {
    for await (const part of response.setEncoding('utf8')) text += String(part)
  } catch {
    // Cut off: what came so far is the answer, and `complete` says the rest.
  }
  return text
}

/** Turns of the event loop until `holds`. */
async function eventually(what: string, holds: () => boolean): Promise<void> {
  for (let turn = 0; turn < 100_000; turn++) {
    if (holds()) return
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.fail(`waited in vain for ${what}`)
}

const part = (text: string, over = false) => ({ text, over })
const large = 'x'.repeat(1024 * 1024)

test('a stream that its source ends is complete', async (context) => {
  for (const end of [
    [part('a'), part('b', true)],
    [part('a'), part('b'), null],
  ]) {
    const source = new Script()
    source.give(...end)
    const { open } = await rig(context, sending(source))

    const response = await open()

    assert.equal(await textOf(response), 'ab')
    assert.equal(response.complete, true)
    assert.ok(source.closed > 0)
  }
})

test('a stream whose source fails is cut off: it never looks complete', async (context) => {
  const source = new Script()
  source.give(part('a'))
  const { open } = await rig(context, sending(source))
  const response = await open()
  await once(response.setEncoding('utf8'), 'readable')
  source.give(new Error('the store is gone'))

  assert.equal(await textOf(response), 'a')
  assert.equal(response.complete, false)
  assert.ok(source.closed > 0)
})

test('a reader that takes nothing is given no more than a few parts, and gets the rest when it reads', async (context) => {
  const source = new Script(large)
  const { open, clock } = await rig(context, sending(source))
  const response = await open()
  // The keep-alive and the bound on the stalled reader.
  await eventually('the socket to be full', () => clock.pending === 2)
  const asked = source.asked
  for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve))

  assert.equal(source.asked, asked)
  assert.ok(asked < 16, `${asked} parts were taken`)
  response.resume()
  await eventually('more parts', () => source.asked > asked + 50)
  response.destroy()
})

test('a reader that takes nothing is cut off after its bound, and not before', async (context) => {
  let gone = 0
  const source = new Script(large)
  const { open, clock, raw } = await rig(context, sending(source, { onGone: () => (gone += 1) }))
  await open()
  await eventually('the socket to be full', () => clock.pending === 2)

  await clock.advance(stalledReaderMs - 1)
  assert.deepEqual([raw().destroyed, source.closed], [false, 0])
  await clock.advance(1)
  await eventually('the stream to be given up', () => source.closed > 0 && gone === 1)

  assert.equal(raw().destroyed, true)
  assert.equal(clock.pending, 0)
})

test('a reader that does not take the end of a stream is cut off, too', async (context) => {
  const source = new Script()
  let done = false
  const { open, clock, raw } = await rig(context, async (streams, reply) => {
    await streams.send(reply, source, agentDialect, {})
    done = true
  })
  const response = await open()
  // Small parts until one stays behind, so that the last one is not waited for before the end.
  const small = 'x'.repeat(1024)
  const asked = () => source.asked
  while (raw().writableLength === 0) {
    const before = asked()
    source.give(part(small))
    await eventually('the part to be taken', () => asked() > before)
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  source.give(part(small, true))
  await eventually('the end to be written', () => raw().writableEnded)
  assert.equal(done, false)

  await clock.advance(stalledReaderMs)
  await eventually('the stream to be given up', () => done)

  assert.equal(raw().destroyed, true)
  assert.equal(clock.pending, 0)
  response.destroy()
})

test('pings come at their interval from the first bytes on, numbered', async (context) => {
  const source = new Script()
  const { open, clock } = await rig(context, sending(source))
  const response = await open()
  const text = textOf(response)
  await clock.advance(3 * keepAliveMs)
  source.give(part('first'))
  await eventually('the first bytes', () => clock.pending === 1)

  await clock.advance(keepAliveMs - 1)
  source.give(part('second'))
  await clock.advance(1)
  await clock.advance(keepAliveMs)
  source.give(part('last', true))

  const names = (await text).match(/first|second|last|event: ping/g)
  assert.deepEqual(names, ['first', 'second', 'event: ping', 'event: ping', 'last'])
})

test('if only an idle stream is kept alive, every byte restarts the interval', async (context) => {
  const source = new Script()
  const native: Dialect = agentDialect
  const idleOnly: Dialect = { ...native, keepAliveTiming: { interval: 'pingMs', whenIdle: true } }
  const { open, clock } = await rig(context, sending(source, { opening: 'open' }, idleOnly))
  const response = await open()
  const text = textOf(response)
  await eventually('the opening', () => clock.pending === 1)

  await clock.advance(keepAliveMs - 1)
  source.give(part('busy'))
  await clock.advance(keepAliveMs - 1)
  source.give(part('idle'))
  await clock.advance(keepAliveMs)
  source.give(part('last', true))

  assert.deepEqual((await text).match(/open|busy|idle|last|event: ping/g), [
    'open',
    'busy',
    'idle',
    'event: ping',
    'last',
  ])
})

test('a socket that is full is not filled further with pings', async (context) => {
  const source = new Script(large)
  const { open, clock, raw } = await rig(context, sending(source))
  await open()
  await eventually('the socket to be full', () => clock.pending === 2)
  const waiting = raw().writableLength

  await clock.advance(5 * keepAliveMs)

  assert.ok(waiting > 0)
  assert.equal(raw().writableLength, waiting)
})

test('a client that leaves is reported once; one that has read everything, or whose server stops, is not', async (context) => {
  let gone = 0
  const onGone = () => (gone += 1)
  const leaving = new Script()
  leaving.give(part('a'))
  const first = await rig(context, sending(leaving, { onGone }))
  const response = await first.open()
  await once(response, 'readable')
  response.destroy()
  await eventually('the client to be missed', () => gone === 1)
  assert.ok(leaving.closed > 0)

  const whole = new Script()
  whole.give(part('a', true))
  const second = await rig(context, sending(whole, { onGone }))
  await textOf(await second.open())

  const stopped = new Script()
  stopped.give(part('a'))
  const third = await rig(context, sending(stopped, { onGone }))
  const cut = await third.open()
  await once(cut, 'readable')
  third.streams.endAll()
  assert.equal(await textOf(cut), 'a')
  assert.equal(cut.complete, true)

  // A stream that cannot be written to its end while the server stops: its connection is closed by force.
  const stuck = new Script(large)
  const fourth = await rig(context, sending(stuck, { onGone }))
  await fourth.open()
  await eventually('the socket to be full', () => fourth.clock.pending === 2)
  fourth.streams.endAll()
  fourth.raw().destroy()
  await eventually('the stream to end', () => fourth.clock.pending === 0)

  assert.equal(gone, 1)
})

test('a stream that is opened while the server stops ends at once', async (context) => {
  const source = new Script()
  const { open, streams } = await rig(context, sending(source))
  streams.endAll()

  const response = await open()

  assert.equal(await textOf(response), '')
  assert.equal(response.complete, true)
})

const delta = (seq: number): RunEvent => ({
  seq,
  at: 1000 + seq,
  attempt: 1,
  type: 'text.delta',
  data: { messageId: 'm', text: `[${seq}]` },
})

test('readers at one place share the bytes, a resumed one gets only what follows its cursor, in whichever order they connect', async (context) => {
  for (const resumedFirst of [true, false]) {
    let encoded = 0
    const native: Dialect = agentDialect
    const counting: Dialect = {
      ...native,
      name: 'counting',
      encodeDelta: (state, event) => {
        encoded += 1
        return native.encodeDelta(state, event)
      },
      step: (state, event) => {
        encoded += 1
        return native.step(state, event)
      },
    }
    const cursors = resumedFirst ? [2, 0, 0, 0] : [0, 0, 0, 2]
    let at = 0
    const run = { id: 'r', conversationId: null } as RunRow
    const { open, bus } = await rig(context, async (streams, reply) => {
      const seq = cursors[at++] ?? 0
      await streams.reply(reply, { run, dialect: counting, cursor: { seq, index: null } })
    })
    const readers: { response: IncomingMessage; text: string }[] = []
    for (const _ of cursors) {
      const reader = { response: await open(), text: '' }
      reader.response.setEncoding('utf8').on('data', (piece: string) => (reader.text += piece))
      readers.push(reader)
    }
    // One batch, in which the cursor of the resumed reader lies.
    bus.publish('r', [delta(1), delta(2), delta(3), delta(4)])
    await eventually('the last delta', () => readers.every(({ text }) => text.includes('[4]')))

    for (const [index, { text, response }] of readers.entries()) {
      const expected = cursors[index] === 0 ? ['[1]', '[2]', '[3]', '[4]'] : ['[3]', '[4]']
      assert.deepEqual(text.match(/\[\d\]/g), expected)
      response.destroy()
    }
    const whole = readers.filter((_, index) => cursors[index] === 0).map(({ text }) => text)
    assert.equal(new Set(whole).size, 1)
    // Once for all that read everything, once for the one that resumed.
    assert.ok(encoded <= 8, `${encoded} events were encoded`)
  }
})

test('readers at the head are written to in the call that publishes, and one that fails hurts neither the others nor the writer', async (context) => {
  const failing: Dialect = {
    ...(agentDialect as Dialect),
    name: 'failing',
    encodeDelta(state, event) {
      if (event.seq === 3) throw new Error('cannot be encoded')
      return (agentDialect as Dialect).encodeDelta(state, event)
    },
  }
  const dialects = [failing, agentDialect, agentDialect]
  const sockets: Socket[] = []
  const run = { id: 'r', conversationId: null } as RunRow
  const { open, bus } = await rig(context, async (streams, reply) => {
    const dialect = dialects[sockets.length] as Dialect
    sockets.push(reply.raw.socket as Socket)
    await streams.reply(reply, { run, dialect, cursor: { seq: 0, index: null } })
  })
  const readers: { response: IncomingMessage; text: string }[] = []
  for (const _ of dialects) {
    const reader = { response: await open(), text: '' }
    reader.response.setEncoding('utf8').on('data', (piece: string) => (reader.text += piece))
    readers.push(reader)
  }
  bus.publish('r', [delta(1)])
  await eventually('the first delta', () => readers.every(({ text }) => text.includes('[1]')))

  const before = sockets.map(({ bytesWritten }) => bytesWritten)
  bus.publish('r', [delta(2)])
  assert.ok(sockets.every(({ bytesWritten }, index) => bytesWritten > (before[index] ?? 0)))
  bus.publish('r', [delta(3)])
  bus.publish('r', [delta(4)])

  const [failed, ...others] = readers
  await eventually('the last delta', () => others.every(({ text }) => text.includes('[4]')))
  await eventually('the end of the stream that failed', () => failed?.response.closed === true)
  assert.deepEqual(failed?.text.match(/\[\d\]/g), ['[1]', '[2]'])
  for (const { text, response } of others) {
    assert.deepEqual(text.match(/\[\d\]/g), ['[1]', '[2]', '[3]', '[4]'])
    response.destroy()
  }
})

test('a reader at the head that stops taking is given nothing more, and the others get everything', async (context) => {
  const sockets: Socket[] = []
  const run = { id: 'r', conversationId: null } as RunRow
  const { open, bus } = await rig(context, async (streams, reply) => {
    sockets.push(reply.raw.socket as Socket)
    await streams.reply(reply, { run, dialect: agentDialect, cursor: { seq: 0, index: null } })
  })
  const stalled = await open()
  const reading = await open()
  let last = 0
  let received = ''
  reading.setEncoding('utf8').on('data', (piece: string) => (received = (received + piece).slice(-large.length)))
  const publish = async () => {
    last += 1
    bus.publish('r', [
      { ...delta(last), data: { messageId: 'm', text: `[${last}]${large.slice(0, 200_000)}` } } as RunEvent,
    ])
    await eventually('the delta at the reader that takes it', () => received.includes(`[${last}]`))
  }
  const [socket] = sockets
  const isFull = () => socket?.writableNeedDrain !== false
  while (!isFull()) await publish()

  const held = socket?.writableLength ?? 0
  for (let count = 0; count < 10; count++) await publish()

  assert.ok(held > 0 && (socket?.writableLength ?? 0) <= held)
  stalled.destroy()
  reading.destroy()
})
