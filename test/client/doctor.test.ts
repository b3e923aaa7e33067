// The stream doctor over real sockets, with proxies that do to a stream what proxies do. The clock of the server is the
// test's, and the client reads the same clock, so no verdict depends on the speed of the machine.

import assert from 'node:assert/strict'
import { createServer, request as httpRequest, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { createGzip, constants as zlib, type Gzip } from 'node:zlib'
import fc from 'fast-check'
import Fastify from 'fastify'
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod'
import { diagnoseStream, doctorStream, type ReceivedFrame, type StreamReport } from '../../client/src/doctor.ts'
import { PolylogError } from '../../client/src/index.ts'
import { createProcessBus } from '../../src/bus/live-bus.ts'
import { doctorRoute } from '../../src/http/operations/doctor-route.ts'
import type { Server } from '../../src/http/routes.ts'
import { Streams } from '../../src/http/stream-reply.ts'
import { type ManualClock, manualClock } from '../support/manual-clock.ts'
import { sharedTestServer, until } from '../support/test-server.ts'

const intervalMs = 250
const frames = 12

/** What a proxy does with the frames of a response, one by one. */
type Meddling = {
  headers?: Record<string, string>
  frame(text: string, index: number, client: ServerResponse): unknown
  end?(client: ServerResponse): void
}

const passes: Meddling = { frame: (text, _index, client) => void client.write(text) }

async function listen(context: TestContext, server: ReturnType<typeof createServer>): Promise<string> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  context.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** The route alone, with the clock of the test. */
async function serve(context: TestContext, clock: ManualClock): Promise<string> {
  const server: Server = Fastify().withTypeProvider<ZodTypeProvider>()
  server.setValidatorCompiler(validatorCompiler)
  server.setSerializerCompiler(serializerCompiler)
  const streams = new Streams({
    store: {
      readRun: () => Promise.resolve(undefined),
      readEvents: () => Promise.resolve({ events: [], skipped: 0, nextAfter: 0, atHead: true }),
    },
    bus: createProcessBus(clock),
    clock,
    metrics: { streamOpened: () => () => {} },
    isUndecided: () => Promise.resolve(false),
    keepAliveIntervals: { pingMs: 15_000, fcmpHeartbeatMs: 15_000, sessionHeartbeatMs: 15_000 },
  })
  doctorRoute(server, { streams, clock })
  context.after(() => server.close())
  return await server.listen({ host: '127.0.0.1', port: 0 })
}

/** Runs the doctor through a proxy that meddles, frame by frame. */
async function examine(context: TestContext, meddling: Meddling): Promise<StreamReport> {
  const clock = manualClock()
  const upstream = await serve(context, clock)
  let arrived = 0
  let readings = 0
  const proxy = createServer((incoming, outgoing) => {
    const call = httpRequest(new URL(incoming.url ?? '/', upstream), { agent: false }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, { ...response.headers, ...meddling.headers })
      outgoing.flushHeaders()
      outgoing.on('error', () => {})
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        text += part
        for (let at = text.indexOf('\n\n'); at !== -1; at = text.indexOf('\n\n')) {
          meddling.frame(text.slice(0, at + 2), arrived, outgoing)
          text = text.slice(at + 2)
          arrived += 1
        }
      })
      response.on('end', () => (meddling.end === undefined ? outgoing.end() : meddling.end(outgoing)))
      response.on('error', () => {})
    })
    call.on('error', () => outgoing.destroy())
    outgoing.on('close', () => call.destroy())
    call.end()
  })
  const baseUrl = await listen(context, proxy)
  const monotonic = () => {
    readings += 1
    return clock.monotonic()
  }
  const state = { done: false }
  const examining = doctorStream({ baseUrl, frames, intervalMs, monotonic }).finally(() => (state.done = true))
  for (let index = 0; index < frames && !state.done; index++) {
    await until(`frame ${index}`, () => (arrived > index || state.done ? true : undefined))
    // A proxy that passes frames on has them read before time goes on.
    if (meddling === passes || meddling.headers !== undefined) {
      await until(`frame ${index} to be read`, () => (readings > index ? true : undefined))
    }
    await clock.advance(intervalMs)
  }
  return await examining
}

const problems = ({ findings }: StreamReport) => findings.map(({ problem }) => problem)

describe('the stream doctor', () => {
  test('finds nothing wrong with a stream that is passed on as it is', async (context) => {
    const report = await examine(context, passes)
    assert.deepEqual([report.ok, report.findings, report.delayMs], [true, [], { median: 0, max: 0 }])
    assert.equal(report.observation.received.length, frames)
    assert.deepEqual(report.observation.request, {
      httpVersion: '1.1',
      via: null,
      forwarded: false,
      acceptEncoding: null,
    })
  })

  test('finds a proxy that collects the whole response, and names its setting', async (context) => {
    let held = ''
    const report = await examine(context, {
      frame: (text) => (held += text),
      end: (client) => void client.end(held),
    })
    assert.deepEqual(problems(report), ['buffered'])
    assert.match(report.findings[0]?.message ?? '', /11 of 12 frames came together/)
    assert.match(report.findings[0]?.advice ?? '', /proxy_buffering off/)
  })

  test('finds a proxy that passes on full buffers only', async (context) => {
    let held = ''
    const report = await examine(context, {
      frame: (text, _index, client) => {
        held += text
        if (held.length < 500) return
        client.write(held)
        held = ''
      },
      end: (client) => void client.end(held),
    })
    assert.deepEqual(problems(report), ['buffered'])
  })

  test('finds a proxy that compresses, and one that also buffers while it does', async (context) => {
    let gzip: Gzip | undefined
    const open = (client: ServerResponse): Gzip => {
      const made = createGzip()
      made.pipe(client)
      return made
    }
    const headers = { 'content-encoding': 'gzip', server: 'nginx/1.26' }
    const flushing = await examine(context, {
      headers,
      frame: (text, _index, client) => {
        gzip ??= open(client)
        gzip.write(text)
        gzip.flush(zlib.Z_SYNC_FLUSH)
      },
      end: () => void gzip?.end(),
    })
    assert.deepEqual(problems(flushing), ['compressed'])
    assert.match(flushing.findings[0]?.advice ?? '', /gzip_types/)
  })

  test('finds a proxy that breaks the connection, or ends it', async (context) => {
    for (const end of [(client: ServerResponse) => client.destroy(), (client: ServerResponse) => client.end()]) {
      const report = await examine(context, {
        frame: (text, index, client) => {
          if (index < 5) client.write(text)
          if (index === 5) end(client)
        },
        end: () => {},
      })
      assert.ok(problems(report).includes('cut'), JSON.stringify(report.findings))
      assert.match(report.findings.at(-1)?.message ?? '', /after 5 of 12 frames/)
    }
  })

  test('finds frames that are reordered, repeated or lost', async (context) => {
    const swaps: Meddling = {
      headers: {},
      frame: (text, index, client) => {
        if (index === 3) client.write(text.replace('"index":3', '"index":4'))
        else client.write(index === 4 ? text.replace('"index":4', '"index":3') : text)
      },
    }
    assert.deepEqual(problems(await examine(context, swaps)), ['reordered'])
    const repeats: Meddling = {
      headers: {},
      frame: (text, index, client) => void client.write(index === 4 ? text + text : text),
    }
    assert.deepEqual(problems(await examine(context, repeats)), ['repeated'])
    const loses: Meddling = { frame: (text, index, client) => index !== 4 && void client.write(text) }
    assert.ok(problems(await examine(context, loses)).includes('lost'))
  })
})

describe('diagnoseStream', () => {
  const steady = (count: number, lateMs: (index: number) => number): ReceivedFrame[] =>
    Array.from({ length: count }, (_, index) => ({
      index,
      sentMs: index * intervalMs,
      receivedMs: 5000 + index * intervalMs + lateMs(index),
      chars: 120,
    }))
  const observed = (received: readonly ReceivedFrame[], count = received.length) => ({
    frames: count,
    received,
    endedMs: received.at(-1)?.receivedMs ?? 0,
    headers: {},
    request: null,
  })

  test('accepts any jitter that is smaller than the time between two frames', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(intervalMs / 2), { minLength: 2, maxLength: 40 }), (late) => {
        assert.deepEqual(diagnoseStream(observed(steady(late.length, (index) => late[index] ?? 0))).findings, [])
      }),
    )
  })

  test('finds any buffer that holds two frames or more', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 20 }), fc.integer({ min: 20, max: 60 }), (held, count) => {
        // Each frame waits for the last one of its bufferful.
        const late = (index: number) => (held - 1 - (index % held)) * intervalMs
        const report = diagnoseStream(observed(steady(count - (count % held), late)))
        assert.deepEqual(problems(report), ['buffered'])
        assert.ok((report.findings[0]?.message ?? '').includes(`up to ${held * 120} bytes`))
      }),
    )
  })

  test('names the proxy that the headers tell of', () => {
    const all = steady(12, (index) => (12 - index) * intervalMs)
    const advice = (headers: Record<string, string>) =>
      diagnoseStream({ ...observed(all), headers }).findings[0]?.advice ?? ''
    assert.match(advice({ server: 'nginx' }), /^nginx/)
    assert.match(advice({ via: '1.1 Caddy' }), /^Caddy/)
    assert.match(advice({ server: 'cloudflare', 'cf-ray': '1' }), /^Cloudflare/)
  })

  test('bears a stream without any frame', () => {
    assert.deepEqual(problems(diagnoseStream(observed([], 12))), ['cut'])
  })
})

describe('GET /v1/doctor/stream', () => {
  const server = sharedTestServer()

  test('sends the frames that were asked for, with the headers of every stream', async () => {
    const path = '/v1/doctor/stream?frames=3&intervalMs=10&paddingBytes=100'
    const { status, text, headers } = await server.call('GET', path, { headers: { via: '1.1 proxy' } })
    assert.equal(status, 200)
    assert.equal(headers.get('x-accel-buffering'), 'no')
    assert.match(headers.get('cache-control') ?? '', /no-transform/)
    const data = [...text.matchAll(/^data: (.*)$/gm)].map(([, json = '']) => JSON.parse(json).data)
    assert.deepEqual(
      data.map(({ index, frames: count, padding }) => [index, count, padding.length]),
      [0, 1, 2].map((index) => [index, 3, 100]),
    )
    assert.equal(data[0].request.via, '1.1 proxy')
    assert.ok(data[0].sentMs <= data[1].sentMs && data[1].sentMs <= data[2].sentMs)
  })

  test('refuses streams that are too long', async () => {
    for (const query of ['frames=1001', 'intervalMs=1', 'paddingBytes=99999', 'frames=1000&intervalMs=1000']) {
      const { status, body } = await server.call('GET', `/v1/doctor/stream?${query}`)
      assert.deepEqual([status, body.code], [400, 'invalid_request'], query)
    }
    await assert.rejects(doctorStream({ baseUrl: server.polylog.baseUrl, frames: 1 }), PolylogError)
  })

  test('counts as a stream, and ends when its reader leaves', async () => {
    const baseUrl = server.polylog.baseUrl
    const open = async () =>
      Number(
        /polylog_stream_connections\{[^}]*"doctor"[^}]*\} (\d+)/.exec((await server.call('GET', '/metrics')).text)?.[1],
      )
    const controller = new AbortController()
    const response = await fetch(`${baseUrl}/v1/doctor/stream?frames=9&intervalMs=60000`, { signal: controller.signal })
    assert.equal(await open(), 1)
    controller.abort()
    await assert.rejects(response.text())
    await until('the stream to be closed', async () => ((await open()) === 0 ? true : undefined))
  })
})
