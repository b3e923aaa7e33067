// Contract: windows of rate limits, if the store has them.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Store } from '../../src/stores/store.ts'
import type { OpenStore } from './open-store.ts'
import { start } from './store-fixtures.ts'

const windowMs = 60_000

export function rateContract(open: OpenStore<Pick<Store, 'sharedRates'>>): void {
  describe('rate windows', () => {
    const withRates =
      (body: (rates: NonNullable<Store['sharedRates']>, set: (now: number) => Promise<void>) => Promise<void>) =>
      async (context: { skip(reason: string): void }): Promise<void> => {
        const { store, time, cleanup } = await open()
        try {
          if (store.sharedRates === undefined) context.skip('only one process can use this store')
          else await body(store.sharedRates, (now) => time.set(now))
        } finally {
          await cleanup()
        }
      }

    test(
      'begin with their first hit and count until they are over, by the clock of the store',
      withRates(async (rates, set) => {
        assert.deepEqual(await rates.addHits([{ key: 'a', count: 1 }], windowMs), [
          { key: 'a', current: 1, leftMs: windowMs },
        ])
        await set(start + 59_999)
        assert.deepEqual(await rates.addHits([{ key: 'a', count: 2 }], windowMs), [{ key: 'a', current: 3, leftMs: 1 }])
        await set(start + windowMs)
        assert.deepEqual(await rates.addHits([{ key: 'a', count: 1 }], windowMs), [
          { key: 'a', current: 1, leftMs: windowMs },
        ])
      }),
    )

    test(
      'of many callers are counted by one call, whatever their names are',
      withRates(async (rates) => {
        const keys = ['user:\u0000', 'ip:2001:db8::/64', 'user:zoë', 'user:a']
        await rates.addHits([{ key: 'user:a', count: 1 }], windowMs)

        const counted = await rates.addHits(
          keys.map((key, index) => ({ key, count: index + 1 })),
          windowMs,
        )

        const currents = new Map(counted.map(({ key, current }) => [key, current]))
        assert.deepEqual(
          keys.map((key) => currents.get(key)),
          [1, 2, 3, 5],
        )
      }),
    )

    test(
      'count exactly when many nodes add to them at once, in any order of the keys',
      withRates(async (rates) => {
        const keys = Array.from({ length: 20 }, (_, index) => `key ${index}`)
        const orders = Array.from({ length: 30 }, (_, index) => (index % 2 === 0 ? keys : keys.toReversed()))

        const answers = await Promise.all(
          orders.map((order) =>
            rates.addHits(
              order.map((key) => ({ key, count: 1 })),
              windowMs,
            ),
          ),
        )

        for (const key of keys) {
          const seen = answers.map((windows) => windows.find((window) => window.key === key)?.current ?? 0)
          assert.deepEqual(
            seen.toSorted((a, b) => a - b),
            Array.from({ length: 30 }, (_, index) => index + 1),
          )
        }
      }),
    )

    test(
      'are removed when they are over, as many as were asked for',
      withRates(async (rates, set) => {
        const hits = (prefix: string) =>
          Array.from({ length: 5 }, (_, index) => ({ key: `${prefix}${index}`, count: 1 }))
        await rates.addHits(hits('old'), windowMs)
        await set(start + 30_000)
        await rates.addHits(hits('new'), windowMs)
        await set(start + windowMs)

        assert.equal(await rates.removeOldWindows(3), 3)
        assert.equal(await rates.removeOldWindows(3), 2)
        assert.equal(await rates.removeOldWindows(3), 0)
        assert.equal((await rates.addHits([{ key: 'new0', count: 1 }], windowMs))[0]?.current, 2)
      }),
    )
  })
}
