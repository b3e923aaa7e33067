import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../kit/clock.ts'
import { createMetrics } from './metrics.ts'

test('a scrape shows what happened', async () => {
  const metrics = createMetrics(systemClock)
  metrics.runEnded({ family: 'agent', engine: 'local', status: 'succeeded' })
  metrics.runEnded({ family: 'agent', engine: 'local', status: 'succeeded' })
  metrics.runEnded({ family: 'jobs', engine: 'openclaw', status: 'failed' })
  metrics.eventsStored(3)
  metrics.eventsStored(4)
  metrics.requestDone({ method: 'GET', route: '/v1/runs/:id', status: 200, seconds: 0.02 })
  metrics.requestDone({ method: 'GET', route: undefined, status: 404, seconds: 0.001 })

  const text = await metrics.text()

  assert.match(text, /^polylog_runs_total\{family="agent",engine="local",status="succeeded"\} 2$/m)
  assert.match(text, /^polylog_runs_total\{family="jobs",engine="openclaw",status="failed"\} 1$/m)
  assert.match(text, /^polylog_events_total 7$/m)
  assert.match(
    text,
    /^polylog_http_request_duration_seconds_bucket\{le="0.025",method="GET",route="\/v1\/runs\/:id",status="200"\} 1$/m,
  )
  assert.match(text, /^polylog_http_request_duration_seconds_count\{method="GET",route="unmatched",status="404"\} 1$/m)
  assert.match(text, /^process_resident_memory_bytes /m)
  assert.match(metrics.contentType, /^text\/plain/)
})

test('a scrape shows how late the event loop was since the last one, each figure once', async () => {
  let now = 0
  let sample: (() => void) | undefined
  const metrics = createMetrics({
    monotonic: () => now,
    after(_delayMs, fire) {
      sample = fire
      return { cancel: () => void (sample = undefined) }
    },
  })
  /** The timer of the sampler, which is due after 100 ms, fires so late. */
  const late = (ms: number) => {
    now += 100 + ms
    sample?.()
  }
  const figures = async () => {
    const found = (await metrics.text()).matchAll(/^nodejs_eventloop_lag_(?:(\w+)_)?seconds (\S+)$/gm)
    return [...found].map(([, name, value]) => `${name ?? 'now'} ${Math.round(Number(value) * 1000)}`)
  }
  for (const ms of [0, 0, 0, 400]) late(ms)
  assert.deepEqual(await figures(), [
    'now 0',
    'min 0',
    'max 400',
    'mean 100',
    'stddev 173',
    'p50 0',
    'p90 400',
    'p99 400',
  ])
  late(20)
  assert.deepEqual((await figures()).slice(1, 3), ['min 20', 'max 20'], 'each scrape begins anew')
  metrics.close()
  assert.equal(sample, undefined)
})

test('a stream counts while it is open, and closing it twice counts once', async () => {
  const metrics = createMetrics(systemClock)
  const closeFirst = metrics.streamOpened('agent')
  metrics.streamOpened('agent')

  closeFirst()
  closeFirst()

  assert.match(await metrics.text(), /^polylog_stream_connections\{dialect="agent"\} 1$/m)
})

test('open runs are asked for at each scrape, and only those that have not ended are shown', async () => {
  const metrics = createMetrics(systemClock)
  let waiting = 2
  metrics.countOpenRunsWith(async () => ({ waiting_user: waiting, succeeded: 90 }))

  assert.match(await metrics.text(), /^polylog_runs_open\{status="waiting_user"\} 2$/m)
  waiting = 5
  const text = await metrics.text()

  assert.match(text, /^polylog_runs_open\{status="waiting_user"\} 5$/m)
  assert.match(text, /^polylog_runs_open\{status="queued"\} 0$/m)
  assert.doesNotMatch(text, /polylog_runs_open\{status="succeeded"\}/)
})

test('a store that does not answer does not hide the other metrics', async () => {
  const metrics = createMetrics(systemClock)
  metrics.countOpenRunsWith(() => Promise.reject(new Error('disk gone')))
  metrics.eventsStored(1)

  const text = await metrics.text()

  assert.match(text, /^polylog_events_total 1$/m)
  assert.doesNotMatch(text, /^polylog_runs_open\{/m)
})

test('what the retention removed is counted, and the oldest run that is kept is asked for at each scrape', async () => {
  const metrics = createMetrics(systemClock)
  metrics.retention.removed('runs', 3)
  metrics.retention.removed('runs', 4)
  let oldest: number | null = null
  metrics.retention.reportOldestEndWith(async () => oldest)

  assert.doesNotMatch(await metrics.text(), /^polylog_oldest_run_end/m)
  oldest = 1500
  const text = await metrics.text()

  assert.match(text, /^polylog_oldest_run_end_timestamp_seconds 1.5$/m)
  assert.match(text, /^polylog_retention_removed_total\{kind="runs"\} 7$/m)
})

test('tokens, cost and times of models and tools are counted by provider and model', async () => {
  const { work, text } = createMetrics(systemClock)
  const step = { model: 'openai/gpt-4o', seconds: 3, firstPartSeconds: 0.4 }
  const usage = { inputTokens: 100, cachedTokens: 60, outputTokens: 7 }
  work.stepDone({ ...step, usage, costMicroUsd: 1500 })
  work.stepDone({ ...step, model: 'ollama/dir/llama', usage: undefined, costMicroUsd: undefined })
  work.modelRetried('openai/gpt-4o')
  work.toolDone({ tool: 'add_note', outcome: 'succeeded', seconds: 0.2 })
  work.modelFellBack('openai/gpt-4o', 'model_unavailable')
  work.runStarted(2)

  const shown = await text()

  assert.match(shown, /^polylog_model_tokens_total\{provider="openai",model="gpt-4o",kind="input"\} 100$/m)
  assert.match(shown, /^polylog_model_tokens_total\{provider="openai",model="gpt-4o",kind="cached"\} 60$/m)
  assert.match(shown, /^polylog_model_cost_usd_total\{provider="openai",model="gpt-4o"\} 0.0015$/m)
  assert.doesNotMatch(shown, /^polylog_model_cost_usd_total\{provider="ollama"/m, 'an unknown cost is not 0')
  assert.match(shown, /^polylog_model_unpriced_steps_total\{provider="ollama",model="dir\/llama"\} 1$/m)
  assert.match(shown, /^polylog_model_first_token_seconds_sum\{provider="openai",model="gpt-4o"\} 0.4$/m)
  assert.match(shown, /^polylog_model_step_seconds_sum\{provider="openai",model="gpt-4o"\} 3$/m)
  assert.match(shown, /^polylog_model_retries_total\{provider="openai",model="gpt-4o"\} 1$/m)
  assert.match(shown, /^polylog_tool_seconds_count\{tool="add_note",outcome="succeeded"\} 1$/m)
  assert.match(
    shown,
    /^polylog_model_fallbacks_total\{provider="openai",model="gpt-4o",reason="model_unavailable"\} 1$/m,
  )
  assert.match(shown, /^polylog_queue_seconds_sum 2$/m)
})

test('only the first hundred models and tools have time series of their own', async () => {
  const { work, text } = createMetrics(systemClock)
  for (let index = 0; index < 150; index++) {
    work.modelRetried(`openai/m${index}`)
    work.toolDone({ tool: `t${index}`, outcome: 'failed', seconds: 1 })
  }

  const shown = await text()

  assert.equal(shown.match(/^polylog_model_retries_total\{/gm)?.length, 101)
  assert.match(shown, /^polylog_model_retries_total\{provider="other",model="other"\} 50$/m)
  assert.match(shown, /^polylog_tool_seconds_count\{tool="other",outcome="failed"\} 50$/m)
})
