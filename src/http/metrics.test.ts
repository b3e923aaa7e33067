import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMetrics } from './metrics.ts'

test('what happened is what a scrape shows', async () => {
  const metrics = createMetrics()
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

test('a stream counts while it is open, and closing it twice counts once', async () => {
  const metrics = createMetrics()
  const closeFirst = metrics.streamOpened('agent')
  metrics.streamOpened('agent')

  closeFirst()
  closeFirst()

  assert.match(await metrics.text(), /^polylog_stream_connections\{dialect="agent"\} 1$/m)
})

test('open runs are asked for at each scrape, and only those that have not ended are shown', async () => {
  const metrics = createMetrics()
  let waiting = 2
  metrics.countOpenRunsWith(async () => ({ waiting_user: waiting, succeeded: 90 }))

  assert.match(await metrics.text(), /^polylog_runs_open\{status="waiting_user"\} 2$/m)
  waiting = 5
  const text = await metrics.text()

  assert.match(text, /^polylog_runs_open\{status="waiting_user"\} 5$/m)
  assert.match(text, /^polylog_runs_open\{status="queued"\} 0$/m)
  assert.doesNotMatch(text, /polylog_runs_open\{status="succeeded"\}/)
})

test('a store that does not answer does not take the other metrics with it', async () => {
  const metrics = createMetrics()
  metrics.countOpenRunsWith(() => Promise.reject(new Error('disk gone')))
  metrics.eventsStored(1)

  const text = await metrics.text()

  assert.match(text, /^polylog_events_total 1$/m)
  assert.doesNotMatch(text, /^polylog_runs_open\{/m)
})
