import assert from 'node:assert/strict'
import { test } from 'node:test'
import { trustedProxies } from './trust-proxy.ts'

test('a number trusts so many proxies, and only if the connection comes from a private network', () => {
  const trust = trustedProxies(2)
  assert.ok(typeof trust === 'function')

  for (const near of ['127.0.0.1', '10.1.2.3', '172.16.0.1', '192.168.1.1', '::1', 'fd00::1', '::ffff:10.0.0.1'])
    assert.equal(trust(near, 0), true, near)
  for (const far of ['203.0.113.1', '172.32.0.1', '2001:db8::1', '::ffff:203.0.113.1', 'nonsense'])
    assert.equal(trust(far, 0), false, far)
  assert.equal(trust('203.0.113.1', 1), true)
  assert.equal(trust('10.0.0.1', 2), false)
})

test('a list is passed on, and false trusts no proxy', () => {
  assert.deepEqual(trustedProxies(['10.0.0.0/8']), ['10.0.0.0/8'])
  assert.equal(trustedProxies(false), false)
})
