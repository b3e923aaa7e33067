import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pool } from 'pg'
import { AppError } from '../../errors/app-error.ts'
import { checkFacts, startError, waitForDatabase } from './first-connection.ts'

const good = { version: 180_000, encoding: 'UTF8', standby: false }

function failure(code: string, message = 'it says why'): Error {
  return Object.assign(new Error(message), { code })
}

/** A pool whose queries fail one after the other with these errors, and then work. */
function poolThatFails(...errors: Error[]): Pool {
  const query = async () => {
    const error = errors.shift()
    if (error !== undefined) throw error
    return { rows: [good] }
  }
  return { query } as unknown as Pool
}

async function waiting(pool: Pool, waitMs = 10_000) {
  let now = 0
  const reasons: string[] = []
  const outcome = await waitForDatabase(pool, {
    clock: { monotonic: () => now },
    waitMs,
    pause: async (ms) => {
      now += ms
    },
    onWait: (reason) => reasons.push(reason),
  }).catch((error: unknown) => error)
  return { outcome, reasons, now }
}

test('a database that is starting is waited for, and the log says so once', async () => {
  const { outcome, reasons, now } = await waiting(poolThatFails(failure('ECONNREFUSED'), failure('57P03')))
  assert.equal(outcome, undefined)
  assert.deepEqual(reasons, ['nothing listens at its address'])
  assert.equal(now, 1000)
})

test('the wait has an end, with a sentence that says what to do', async () => {
  const { outcome, now } = await waiting(poolThatFails(...Array.from({ length: 100 }, () => failure('ECONNREFUSED'))))
  assert.ok(outcome instanceof AppError)
  assert.equal(outcome.code, 'store_unavailable')
  assert.match(outcome.message, /cannot be reached: nothing listens at its address\. Start PostgreSQL/)
  assert.equal(now, 10_000)
})

test('what waiting cannot change is refused at once', async () => {
  for (const [code, sentence] of [
    ['28P01', /password/],
    ['28000', /pg_hba\.conf/],
    ['3D000', /CREATE DATABASE/],
    ['42501', /GRANT CREATE/],
    ['25006', /primary/],
  ] as const) {
    const { outcome, reasons } = await waiting(poolThatFails(failure(code)))
    assert.ok(outcome instanceof AppError)
    assert.equal(outcome.code, 'config_invalid')
    assert.match(outcome.message, sentence)
    assert.deepEqual(reasons, [])
  }
})

test('a host with several addresses that all refuse is one that is not up yet', async () => {
  const both = new AggregateError([failure('ECONNREFUSED'), failure('ECONNREFUSED')])
  assert.equal((await waiting(poolThatFails(both))).outcome, undefined)
})

test('a database that cannot hold the store is named by what is wrong with it', () => {
  checkFacts(good)
  assert.throws(() => checkFacts({ ...good, version: 130_012 }), /is PostgreSQL 13; this server needs version 14/)
  assert.throws(() => checkFacts({ ...good, encoding: 'SQL_ASCII' }), /SQL_ASCII.*ENCODING 'UTF8'/)
  assert.throws(() => checkFacts({ ...good, standby: true }), /standby/)
})

test('passwords, certificates and unknown errors have a sentence without the URL', () => {
  assert.match(startError(new Error('SASL: client password must be a string')).message, /asks for a password/)
  assert.match(startError(new Error('The server does not support SSL connections')).message, /sslmode/)
  assert.match(startError(failure('DEPTH_ZERO', 'self-signed certificate')).message, /sslrootcert/)
  const unknown = startError(new Error('postgres://u:s3cret@h/d is odd'))
  assert.equal(unknown.code, 'config_invalid')
  assert.doesNotMatch(unknown.message, /s3cret/)
})
