// Limits failed logins per address, to slow down guessing: an address with too many
// failures in a minute is refused before its credentials are checked. The table is bounded.
// An IPv6 /64 network counts as one address, because one machine can use all of them.

import { isIPv6 } from 'node:net'
import { AppError } from '../errors/app-error.ts'
import type { Clock } from '../kit/clock.ts'

const windowMs = 60_000
/** If the table is full, the oldest entry is removed. */
const addressesMax = 10_000

export class FailedLogins {
  private readonly clock: Clock
  private readonly perMinute: number
  /** In the order of the first failure. */
  private readonly counts = new Map<string, { since: number; failures: number }>()

  /** If `perMinute` is 0, nothing is counted. */
  constructor(clock: Clock, perMinute: number) {
    this.clock = clock
    this.perMinute = perMinute
  }

  /** Throws `rate_limited` if the address has too many failures. */
  refuseTooMany(ip: string): void {
    const known = this.counts.get(addressKey(ip))
    if (known === undefined || known.failures < this.perMinute) return
    const leftMs = known.since + windowMs - this.clock.monotonic()
    if (leftMs <= 0) return
    const seconds = Math.ceil(leftMs / 1000)
    throw new AppError(
      'rate_limited',
      `More than ${this.perMinute} logins failed from this address in a minute. Wait ${seconds} s.`,
      { details: { retryAfterSeconds: seconds } },
    )
  }

  count(ip: string): void {
    if (this.perMinute === 0) return
    const key = addressKey(ip)
    const now = this.clock.monotonic()
    const known = this.counts.get(key)
    if (known !== undefined && now < known.since + windowMs) {
      known.failures++
      return
    }
    this.counts.delete(key)
    const [oldest] = this.counts.keys()
    if (this.counts.size >= addressesMax && oldest !== undefined) this.counts.delete(oldest)
    this.counts.set(key, { since: now, failures: 1 })
  }

  /** The number of addresses in the table. */
  get size(): number {
    return this.counts.size
  }
}

/** The key under which a client is counted: its IPv4 address, or the first 64 bits of its IPv6 address. */
export function addressKey(ip: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(ip)?.[1]
  if (mapped !== undefined) return mapped
  if (!isIPv6(ip)) return ip
  const groupsOf = (text: string) => (text === '' ? [] : text.split(':'))
  const [head = '', tail] = ip.replace(/%.*/, '').split('::')
  const front = groupsOf(head)
  const back = groupsOf(tail ?? '')
  // A dotted quad at the end stands for two groups.
  const backGroups = back.length + (back.at(-1)?.includes('.') === true ? 1 : 0)
  const groups =
    tail === undefined ? front : [...front, ...Array(Math.max(0, 8 - front.length - backGroups)).fill('0'), ...back]
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
