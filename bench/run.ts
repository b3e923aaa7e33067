// `npm run bench`: measures the cost of a delta, and in the same run that of a raw
// node:http proxy which forwards the same bytes and stores nothing. The absolute figures
// depend on the machine; compare the ratios.

import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatDialects } from '../src/http/formats.ts'
import { type Child, cpuSeconds, jsonPort, load, polylogPort, residentBytes, startChild } from './processes.ts'

const only = process.argv[2]
const rounds = Number(process.env.BENCH_ROUNDS ?? 3)

const upstream = await startChild('upstream.ts', {}, jsonPort)
const data = mkdtempSync(join(tmpdir(), 'polylog-bench-'))
const upstreamUrl = `http://127.0.0.1:${upstream.port}`

const rows: string[][] = []

async function polylog(extra: Record<string, string> = {}): Promise<Child> {
  return await startChild(
    '../src/app/main.ts',
    {
      PORT: '0',
      POLYLOG_DATA: join(data, String(Date.now())),
      OPENAI_BASE_URL: `${upstreamUrl}/v1`,
      OPENAI_API_KEY: 'bench',
      POLYLOG_LOG: 'info',
      POLYLOG_CONCURRENCY: '10000',
      POLYLOG_QUEUE_MAX: '10000',
      ...extra,
    },
    polylogPort,
  )
}

type Measured = { cpuPerDelta: number; perSecond: number; firstP50: number; firstP99: number; failed: number }

async function measure(child: Child, path: string, streams: number, model: string, marker: string): Promise<Measured> {
  const options = {
    url: `http://127.0.0.1:${child.port}${path}`,
    streams,
    marker,
    body: JSON.stringify({ model, input: 'go %INDEX%', messages: [{ role: 'user', content: 'go %INDEX%' }] }),
  }
  const before = cpuSeconds(child.pid)
  const result = await load(options)
  const cpu = cpuSeconds(child.pid) - before
  return {
    cpuPerDelta: (cpu / result.deltas) * 1e6,
    perSecond: result.deltas / result.seconds,
    firstP50: result.firstP50,
    firstP99: result.firstP99,
    failed: result.failed,
  }
}

function median(values: number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN
}

async function compare(title: string, streams: number, model: string): Promise<void> {
  const proxy = await startChild('raw-proxy.ts', { UPSTREAM: upstreamUrl }, jsonPort)
  const server = await polylog()
  const raw: Measured[] = []
  const ours: Measured[] = []
  // One round warms up both servers. Then they are measured alternately, so that other load on the machine affects both.
  for (let round = 0; round <= rounds; round++) {
    const one = await measure(proxy, '/', streams, model, '"content"')
    const two = await measure(server, '/v1/agent/chat', streams, model, 'event: agent.delta')
    if (round === 0) continue
    raw.push(one)
    ours.push(two)
  }
  const of = (list: Measured[], key: keyof Measured) => median(list.map((item) => item[key]))
  const line = (name: string, list: Measured[]) =>
    rows.push([
      title,
      name,
      of(list, 'cpuPerDelta').toFixed(1),
      (of(list, 'cpuPerDelta') / of(raw, 'cpuPerDelta')).toFixed(2),
      of(list, 'perSecond').toFixed(0),
      of(list, 'firstP50').toFixed(1),
      of(list, 'firstP99').toFixed(1),
      String(of(list, 'failed')),
    ])
  line('raw proxy', raw)
  line('polylog', ours)
  await proxy.stop()
  await server.stop()
}

/** The same load in every format, beside the native one. */
async function formats(): Promise<void> {
  const names = Object.keys(formatDialects)
  const streams = 20
  const deltas = 2000
  const server = await polylog()
  const times = new Map<string, number[]>(names.map((name) => [name, []]))
  // As in `compare`: one round warms up, and all formats are measured in turn.
  for (let round = 0; round <= rounds; round++) {
    for (const name of names) {
      const before = cpuSeconds(server.pid)
      const { failed } = await measure(server, `/v1/agent/chat?format=${name}`, streams, `bench-${deltas}-0`, 'data:')
      if (failed > 0) throw new Error(`${failed} streams with format=${name} failed`)
      // Not every wire has one frame for a delta, so the deltas of the provider are counted.
      if (round > 0) times.get(name)?.push(((cpuSeconds(server.pid) - before) / (streams * deltas)) * 1e6)
    }
  }
  const native = median(times.get('sse') ?? [])
  console.log('| format | CPU µs a delta | ratio to sse |')
  console.log('|---|---|---|')
  for (const [name, list] of times) {
    console.log(`| ${name} | ${median(list).toFixed(1)} | ${(median(list) / native).toFixed(2)} |`)
  }
  console.log()
  await server.stop()
}

async function replay(): Promise<void> {
  const server = await polylog()
  const base = `http://127.0.0.1:${server.port}`
  const first = await fetch(`${base}/v1/agent/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'bench-2000-0', input: 'go' }),
  })
  const runId = first.headers.get('x-run-id')
  await first.text()
  const times: number[] = []
  const again = async (rounds: number) => {
    for (let index = 0; index < rounds; index++) {
      const at = performance.now()
      await (await fetch(`${base}/v1/agent/runs/${runId}/stream`)).text()
      times.push(performance.now() - at)
    }
  }
  // A server that has just started has not compiled its hot code yet.
  await again(50)
  times.length = 0
  const cpuBefore = cpuSeconds(server.pid)
  const count = 200
  await again(count)
  const cpuMs = ((cpuSeconds(server.pid) - cpuBefore) / count) * 1000
  console.log(
    `replay of a run of 2,000 deltas: median ${median(times).toFixed(1)} ms, server CPU ${cpuMs.toFixed(1)} ms`,
  )
  await server.stop()
}

async function idle(): Promise<void> {
  const streams = 5000
  const { Agent, request } = await import('node:http')
  for (const name of ['raw proxy', 'polylog'] as const) {
    const child =
      name === 'raw proxy' ? await startChild('raw-proxy.ts', { UPSTREAM: upstreamUrl }, jsonPort) : await polylog()
    const agent = new Agent({ keepAlive: true, maxSockets: streams })
    const before = residentBytes(child.pid)
    const opened = { count: 0 }
    for (let index = 0; index < streams; index++) {
      const call = request(
        {
          port: child.port,
          host: '127.0.0.1',
          path: name === 'polylog' ? '/v1/agent/chat' : '/',
          method: 'POST',
          agent,
          headers: { 'content-type': 'application/json' },
        },
        (response) => {
          opened.count += 1
          response.on('data', () => {})
          response.on('error', () => {})
        },
      )
      call.on('error', () => {})
      call.end(
        JSON.stringify({ model: 'bench-stall', input: `go ${index}`, messages: [{ role: 'user', content: 'go' }] }),
      )
      if (index % 200 === 199) await new Promise((resolve) => setTimeout(resolve, 50))
    }
    while (opened.count < streams) await new Promise((resolve) => setTimeout(resolve, 100))
    await new Promise((resolve) => setTimeout(resolve, 3000))
    const bytes = (residentBytes(child.pid) - before) / streams
    console.log(
      `idle streams, ${name}: ${streams} open, ${(bytes / 1024).toFixed(1)} KiB each (resident ${(residentBytes(child.pid) / 1048576).toFixed(0)} MiB)`,
    )
    agent.destroy()
    await child.stop()
  }
}

if (only === undefined || only === 'full') await compare('full speed, 50 streams', 50, 'bench-2000-0')
if (only === undefined || only === 'paced') await compare('paced, 500 streams x 50/s', 500, 'bench-500-20')
if (rows.length > 0) {
  console.log(
    `\n${cpus()[0]?.model.trim()}, ${cpus().length} cores, Node ${process.version}; medians of ${rounds} rounds\n`,
  )
  console.log('| load | server | CPU µs a delta | ratio | deltas/s | first delta p50 ms | p99 ms | failed |')
  console.log('|---|---|---|---|---|---|---|---|')
  for (const row of rows) console.log(`| ${row.join(' | ')} |`)
  console.log()
}
if (only === undefined || only === 'formats') await formats()
if (only === undefined || only === 'replay') await replay()
if (only === undefined || only === 'idle') await idle()
await upstream.stop()
rmSync(data, { recursive: true, force: true })
