import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/support/manual-clock.ts'
import { addressKey, FailedLogins } from './failed-logins.ts'
import { RateWindows } from './rate-windows.ts'

test('an address with too many failed logins is refused until the minute is over; others are not', async () => {
  const clock = manualClock()
  const failed = new FailedLogins(clock, 3)
  for (let login = 0; login < 3; login++) {
    failed.refuseTooMany('192.0.2.1')
    await failed.count('192.0.2.1')
    await clock.advance(10_000)
  }

  assert.throws(() => failed.refuseTooMany('192.0.2.1'), { code: 'rate_limited', details: { retryAfterSeconds: 30 } })
  assert.throws(() => failed.refuseTooMany('::ffff:192.0.2.1'), { code: 'rate_limited' })
  failed.refuseTooMany('192.0.2.2')
  await clock.advance(30_000)
  for (let login = 0; login < 3; login++) {
    failed.refuseTooMany('192.0.2.1')
    await failed.count('192.0.2.1')
  }
  assert.throws(() => failed.refuseTooMany('192.0.2.1'), { code: 'rate_limited', details: { retryAfterSeconds: 60 } })
})

test('the addresses of one IPv6 network are one address, those of another are not', async () => {
  const failed = new FailedLogins(manualClock(), 2)
  await failed.count('2001:db8:1:2:a::1')
  await failed.count('2001:db8:1:2:b:c:d:e')

  assert.throws(() => failed.refuseTooMany('2001:db8:1:2::ffff'), { code: 'rate_limited' })
  failed.refuseTooMany('2001:db8:1:3::ffff')
  assert.deepEqual(
    [
      '::1',
      '2001:DB8::',
      'fe80::1%eth0',
      '64:ff9b::192.0.2.1',
      '1:2:3:4:5:6:7:8',
      '::2:3:4:5:6:192.0.2.1',
      '10.0.0.1',
    ].map(addressKey),
    [
      '0:0:0:0::/64',
      '2001:db8:0:0::/64',
      'fe80:0:0:0::/64',
      '64:ff9b:0:0::/64',
      '1:2:3:4::/64',
      '0:2:3:4::/64',
      '10.0.0.1',
    ],
  )
})

test('the table is bounded: the oldest addresses are forgotten first', async () => {
  const failed = new FailedLogins(manualClock(), 1)
  for (let index = 0; index < 10_001; index++)
    await failed.count(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`)

  assert.equal(failed.size, 10_000)
  failed.refuseTooMany('10.0.0.0')
  assert.throws(() => failed.refuseTooMany('10.0.0.1'), { code: 'rate_limited' })
})

test('without a rate limit nothing is counted', async () => {
  const failed = new FailedLogins(manualClock(), 0)
  await failed.count('192.0.2.1')

  failed.refuseTooMany('192.0.2.1')
  assert.equal(failed.size, 0)
})

test('the failures at other nodes count: the sum is learnt with the next failure', async () => {
  const clock = manualClock()
  const sum = new RateWindows(clock)
  const here = new FailedLogins(clock, 3, sum)
  const there = new FailedLogins(clock, 3, sum)
  for (let login = 0; login < 3; login++) await there.count('192.0.2.1')
  await clock.advance(10_000)

  here.refuseTooMany('192.0.2.1')
  await assert.rejects(here.count('192.0.2.1'), { code: 'rate_limited', details: { retryAfterSeconds: 50 } })
  assert.throws(() => here.refuseTooMany('192.0.2.1'), { code: 'rate_limited' })
  await clock.advance(50_000)
  here.refuseTooMany('192.0.2.1')
  await here.count('192.0.2.1')
})
