import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Histogram, Registry } from 'prom-client'
import { QuickHistogram } from './quick-histogram.ts'

const about = { name: 'polylog_test_seconds', help: 'A test.', buckets: [0.5, 1, 2.5] }
const value = fc.oneof(
  fc.constantFrom(0, 0.5, 1, 2.5, 3),
  fc.integer({ min: 0, max: 4000 }).map((ms) => ms / 1000),
)

test('prints what prom-client prints for the same values', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(value), async (values) => {
      const [expected, registry] = [new Registry(), new Registry()]
      const slow = new Histogram({ ...about, registers: [expected] })
      const quick = new QuickHistogram({ ...about, registry })
      for (const one of values) {
        slow.observe(one)
        quick.observe(one)
      }
      assert.equal(await registry.metrics(), await expected.metrics())
    }),
  )
})
