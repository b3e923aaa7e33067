// Contract: API keys, of which only hashes are stored.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { KeyStore } from '../../src/stores/key-store.ts'
import type { OpenStore } from './open-store.ts'
import { beforeAndAfter, owner, start, withStore } from './store-fixtures.ts'

export function keyContract(open: OpenStore<KeyStore>): void {
  const opened = withStore(open)
  const key = (id: string, changes: Partial<Parameters<KeyStore['addKey']>[0]> = {}) => ({
    id,
    owner,
    name: null,
    hash: id.repeat(4).padEnd(64, '0'),
    createdAt: start,
    expiresAt: null,
    ...changes,
  })

  describe('API keys', () => {
    test(
      'are found by their hash, listed newest first without it, and one owner has only their own',
      opened(async ({ store, reopen }) => {
        await store.addKey(key('k1', { name: 'laptop \u0000 "x"', expiresAt: start + 9 }))
        await store.addKey(key('k2', { createdAt: start + 1 }))
        await store.addKey(key('k3', { owner: 'bob', createdAt: start + 2 }))

        for await (const from of beforeAndAfter(store, reopen)) {
          assert.deepEqual(await from.findKey(key('k1').hash), {
            id: 'k1',
            owner,
            name: 'laptop \u0000 "x"',
            createdAt: start,
            expiresAt: start + 9,
            revokedAt: null,
            lastUsedAt: null,
          })
          assert.equal(await from.findKey(key('k9').hash), undefined)
          const ids = async (filter: { owner?: string; limit: number }) =>
            (await from.listKeys(filter)).map(({ id }) => id)
          assert.deepEqual(await ids({ limit: 2 }), ['k3', 'k2'])
          assert.deepEqual(await ids({ owner, limit: 9 }), ['k2', 'k1'])
          assert.equal('hash' in ((await from.listKeys({ limit: 1 }))[0] ?? {}), false)
        }
      }),
    )

    test(
      'are revoked once, and their last use only grows',
      opened(async ({ store }) => {
        await store.addKey(key('k1'))
        await store.addKey(key('k2'))
        assert.equal((await store.revokeKey('k1', start + 5))?.revokedAt, start + 5)
        assert.equal((await store.revokeKey('k1', start + 9))?.revokedAt, start + 5)
        assert.equal(await store.revokeKey('missing', start), undefined)
        assert.equal((await store.findKey(key('k1').hash))?.revokedAt, start + 5)

        await store.recordKeyUse(['k2', 'missing', 'k1'], start + 7)
        await store.recordKeyUse(['k2'], start + 6)
        assert.equal((await store.findKey(key('k2').hash))?.lastUsedAt, start + 7)
      }),
    )

    test(
      'with the same hash or id are refused',
      opened(async ({ store }) => {
        await store.addKey(key('k1'))
        await assert.rejects(store.addKey(key('k2', { hash: key('k1').hash })))
        await assert.rejects(store.addKey(key('k1', { hash: key('k3').hash })))
        assert.equal((await store.listKeys({ limit: 9 })).length, 1)
      }),
    )
  })
}
