import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/support/manual-clock.ts'
import { apiKeyText, hashOfApiKey } from '../kit/api-key.ts'
import type { ApiKeyRow } from '../stores/key-store.ts'
import { StoredKeys } from './stored-keys.ts'

const keyOf = (number: number) => apiKeyText(Buffer.alloc(32, number))

function rig(rows: Record<string, Partial<ApiKeyRow>>) {
  const clock = manualClock()
  const asked: string[] = []
  const uses: [readonly string[], number][] = []
  let failure: Error | undefined
  const keys = new StoredKeys({
    clock,
    store: {
      async findKey(hash) {
        asked.push(hash)
        if (failure !== undefined) throw failure
        const row = rows[hash]
        if (row === undefined) return undefined
        return {
          id: 'k',
          owner: 'ada',
          name: null,
          createdAt: 0,
          expiresAt: null,
          revokedAt: null,
          lastUsedAt: null,
          ...row,
        }
      },
      recordKeyUse: async (ids, at) => void uses.push([ids, at]),
    },
    onError: () => {},
  })
  return { keys, clock, asked, uses, rows, fail: (error?: Error) => (failure = error) }
}

test('a key is asked for once in two seconds, so a revocation is effective after that', async () => {
  const { keys, clock, asked, rows } = rig({ [hashOfApiKey(keyOf(1))]: {} })
  for (let request = 0; request < 20; request += 1) assert.equal(await keys.find(keyOf(1)), 'ada')
  assert.equal(asked.length, 1)
  rows[hashOfApiKey(keyOf(1))] = { revokedAt: 1 }
  await clock.advance(2000)

  assert.equal(await keys.find(keyOf(1)), undefined)
})

test('expired keys, unknown keys and other texts are nobody; texts that are no keys do not reach the database', async () => {
  const { keys, clock, asked } = rig({ [hashOfApiKey(keyOf(1))]: { expiresAt: Date.UTC(2026, 0, 1) + 1500 } })
  assert.equal(await keys.find(keyOf(1)), 'ada')
  await clock.advance(1500)
  assert.equal(await keys.find(keyOf(1)), undefined, 'judged at each request')
  assert.equal(await keys.find(keyOf(2)), undefined)
  const before = asked.length
  for (const text of ['', 'plk_', 'eyJhbGciOiJIUzI1NiJ9.e30.x', `${keyOf(1)}x`, keyOf(1).slice(1)])
    assert.equal(await keys.find(text), undefined)

  assert.equal(asked.length, before)
})

test('a database that does not answer is not remembered as an unknown key', async () => {
  const { keys, fail } = rig({ [hashOfApiKey(keyOf(1))]: {} })
  fail(new Error('away'))
  await assert.rejects(keys.find(keyOf(1)), /away/)
  fail()

  assert.equal(await keys.find(keyOf(1)), 'ada')
})

test('the last use is recorded soon after the first one, then once a minute, and at the end', async () => {
  const { keys, clock, uses } = rig({ [hashOfApiKey(keyOf(1))]: { id: 'k1' }, [hashOfApiKey(keyOf(2))]: { id: 'k2' } })
  const start = clock.now()
  await keys.find(keyOf(1))
  await keys.find(keyOf(2))
  await clock.advance(1000)
  for (let second = 0; second < 30; second += 1) {
    await keys.find(keyOf(1))
    await clock.advance(1000)
  }
  assert.deepEqual(uses, [[['k1', 'k2'], start + 1000]])
  await clock.advance(60_000)
  await keys.find(keyOf(1))
  await keys.close()

  assert.deepEqual(uses[1]?.[0], ['k1'])
  assert.equal(clock.pending, 0)
})
