import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/support/manual-clock.ts'
import { LoadSeries, sampleEveryMs } from './load-series.ts'

test('commits are counted from sample to sample, and old samples are dropped', async () => {
  const clock = manualClock()
  const load = new LoadSeries()
  const sources = { clock, streams: () => 3, runs: async () => ({ running: 2 }) }
  load.commitStarted()
  load.commitStarted()
  load.commitDone(10)
  load.commitDone(30)
  load.commitStarted()
  await load.sample(sources)
  load.commitDone(5)
  await load.sample({ ...sources, runs: () => Promise.reject(new Error('gone')) })

  const numbers = load.samples.map((sample) => [
    sample.commits,
    sample.commitMs,
    sample.commitMsMax,
    sample.commitQueue,
  ])
  assert.deepEqual(numbers, [
    [2, 20, 30, 2],
    [1, 5, 5, 1],
  ])
  assert.deepEqual([load.samples[0]?.streams, load.samples[0]?.runs, load.samples[1]?.runs], [3, { running: 2 }, null])
  for (let count = 0; count < 300; count += 1) await load.sample(sources)
  assert.equal((load.samples.length * sampleEveryMs) / 60_000, 15)
})
