// Traces: the real server, a provider and a collector in processes of their own, and the spans that
// the collector decoded.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, test } from 'node:test'
import type { CollectedSpan } from '../fakes/otlp-decoder.ts'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts'
import { type Polylog, startPolylog } from '../support/polylog.ts'
import { spawnFake } from '../support/spawn-fake.ts'
import { openStream, type SseFrame } from '../support/sse.ts'
import { endOf, someone } from '../support/test-server.ts'

type Collector = { baseUrl: string; stop(): Promise<void> }

let provider: FakeProvider
let collector: Collector
let polylog: Polylog

before(async () => {
  provider = await startFakeProvider()
})
beforeEach(async () => {
  await provider.reset()
  collector = await spawnFake('otlp-collector.ts')
})
after(() => provider?.stop())

async function start(more: Record<string, string> = {}): Promise<void> {
  polylog = await startPolylog({
    OPENAI_BASE_URL: provider.baseUrl,
    POLYLOG_MODEL: 'openai/gpt-4o-mini',
    POLYLOG_PROVIDER_RETRIES: '0',
    OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.baseUrl}/`,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-team=walks%20%26%20talks',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    ...more,
  })
}

async function ask(input: string, headers: Record<string, string> = {}): Promise<SseFrame[]> {
  const stream = await openStream(`${polylog.baseUrl}/v1/agent/chat`, {
    method: 'POST',
    headers,
    body: { userId: someone(), input, temperature: 0.5 },
  })
  await stream.ended()
  return stream.frames
}

/** Stops the server, which sends what is left, and returns the spans. */
async function collected(count: number): Promise<CollectedSpan[]> {
  await polylog.dispose()
  const response = await fetch(`${collector.baseUrl}/control/wait?spans=${count}`)
  const spans = (await response.json()) as CollectedSpan[]
  await collector.stop()
  return spans
}

const secret = 'the words of the prompt'
const callsClock = [
  { toolCalls: [{ id: 'c1', name: 'current_time', arguments: '{"timezone":"UTC"}' }] },
  { finish: 'tool_calls' },
]
const answers = [{ text: 'the words of the answer' }, { finish: 'stop' }]

test('a run, its steps and its tools are spans of one trace, without any text', async () => {
  await start()
  await provider.script([callsClock, answers])

  const frames = await ask(secret)
  assert.equal(endOf(frames).status, 'succeeded')
  const requests = await provider.requests()
  const spans = await collected(4)

  const runId = String(frames[0]?.json.data.runId)
  const named = (name: string) => spans.filter((span) => span.name === name)
  const [run] = named('invoke_agent chat_conversation')
  const steps = named('chat gpt-4o-mini')
  const [tool] = named('execute_tool current_time')
  assert.equal(spans.length, 4)
  assert.ok(run !== undefined && tool !== undefined && steps.length === 2)
  assert.equal(run.parentSpanId, '')
  for (const span of [...steps, tool]) {
    assert.deepEqual([span.traceId, span.parentSpanId], [run.traceId, run.spanId])
    assert.equal(span.attributes['polylog.run.id'], runId)
    assert.ok(span.startMs >= run.startMs && span.endMs <= run.endMs && span.startMs <= span.endMs)
  }
  assert.deepEqual([run.kind, steps[0]?.kind, tool.kind], [2, 3, 1])
  assert.deepEqual([run.resource['service.name'], run.resource['deployment.environment.name']], ['polylog', 'test'])
  const { 'polylog.cost_usd': cost, 'gen_ai.response.time_to_first_chunk': first, ...step } = steps[1]?.attributes ?? {}
  assert.equal(typeof cost, 'number')
  assert.equal(typeof first, 'number')
  assert.deepEqual(step, {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'gpt-4o-mini',
    'gen_ai.request.temperature': 0.5,
    'gen_ai.response.finish_reasons': ['stop'],
    'gen_ai.usage.input_tokens': 11,
    'gen_ai.usage.output_tokens': 7,
    'polylog.run.id': runId,
    'polylog.step': 2,
    'polylog.tool_calls': 0,
  })
  assert.deepEqual(tool.attributes, {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'current_time',
    'gen_ai.tool.call.id': 'c1',
    'gen_ai.tool.type': 'function',
    'polylog.run.id': runId,
    'polylog.tool.source': 'built-in',
    'polylog.tool.outcome': 'succeeded',
  })
  assert.deepEqual(
    [run.attributes['polylog.run.status'], run.attributes['gen_ai.usage.input_tokens']],
    ['succeeded', 22],
  )
  assert.doesNotMatch(JSON.stringify(spans), /the words of/)
  assert.deepEqual(
    requests.map(({ headers }) => headers['traceparent']),
    steps.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`),
    'each request to the provider has the context of its step',
  )
})

test('the trace of the caller is continued, also by the server that ends the run after a restart', async () => {
  await start()
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  await provider.script([[{ text: 'Half ' }, { stall: true }], answers], undefined)
  const stream = await openStream(`${polylog.baseUrl}/v1/agent/chat`, {
    method: 'POST',
    headers: { traceparent: `00-${traceId}-b7ad6b7169203331-01` },
    body: { userId: 'ada', input: secret },
  })
  await stream.waitFor(({ json }) => json.event === 'agent.delta')
  const runId = String(stream.frames[0]?.json.data.runId)
  await polylog.stop()

  polylog = await polylog.restart()
  const rest = await openStream(`${polylog.baseUrl}/v1/agent/runs/${runId}/stream?userId=ada`)
  await rest.ended()
  assert.equal(endOf(rest.frames).status, 'succeeded')
  const spans = await collected(3)

  const [run] = spans.filter(({ name }) => name.startsWith('invoke_agent'))
  assert.deepEqual(
    [run?.traceId, run?.parentSpanId, run?.attributes['polylog.run.attempts']],
    [traceId, 'b7ad6b7169203331', 2],
  )
  const steps = spans.filter(({ name }) => name.startsWith('chat'))
  assert.deepEqual(
    steps.map((step) => [step.traceId, step.parentSpanId]),
    steps.map(() => [traceId, run?.spanId]),
  )
  assert.equal(steps.length, 2)
})

test('a failed run is an error with the code of its error', async () => {
  await start()
  await provider.script([[{ status: 400, body: { error: { message: secret } } }]])
  assert.equal(endOf(await ask('Hi')).status, 'failed')

  const spans = await collected(2)

  assert.deepEqual(
    spans.map(({ status, attributes }) => [status, attributes['error.type']]),
    [
      [2, 'model_error'],
      [2, 'model_error'],
    ],
  )
  assert.doesNotMatch(JSON.stringify(spans), /the words of/)
})

test('without a collector the context of the caller is only passed on, and a caller that is not sampled stays so', async () => {
  await start({ OTEL_SDK_DISABLED: 'true' })
  const given = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await provider.script([answers, answers])
  await ask('Hi', { traceparent: given })
  await ask('Hi', { traceparent: 'nonsense' })
  assert.deepEqual(
    (await provider.requests()).map(({ headers }) => headers['traceparent']),
    [given, undefined],
  )
  await polylog.dispose()

  await start()
  await provider.script([answers, answers])
  await ask('Hi', { traceparent: given.replace(/01$/, '00') })
  await ask('Hi')
  const spans = await collected(2)
  assert.equal(spans.filter(({ traceId }) => traceId.startsWith('0af')).length, 0)
  assert.equal(spans.length, 2)
})

test('a collector that is gone does not hold up anything', async () => {
  await collector.stop()
  await start()
  await provider.script([answers])

  assert.equal(endOf(await ask('Hi')).status, 'succeeded')
  await polylog.dispose()
})

test('a collector that takes spans and does not answer holds up a stop for two seconds at most', async () => {
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  await start({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(silent.address() as AddressInfo).port}` })
  await provider.script([answers])
  assert.equal(endOf(await ask('Hi')).status, 'succeeded')

  const startedAt = performance.now()
  await polylog.stop()
  const stopMs = performance.now() - startedAt

  // The export itself gives up after ten seconds.
  assert.ok(stopMs < 8000, `${stopMs} ms`)
  await polylog.dispose()
  await collector.stop()
  silent.closeAllConnections()
  silent.close()
})
