// Limits failed logins per address, to slow down guessing: an address with too many
// failures in a minute is refused before its credentials are checked. The table is bounded.
// An IPv6 /64 network counts as one address, because one machine can use all of them.
//
// With several nodes the failures are counted over all of them. A node learns the sum with each
// failure that it sees, so an address may fail once more at each node that has not seen it yet.

import { isIPv6 } from 'node:net'
import { AppError } from '../errors/app-error.ts'
import type { Clock } from '../kit/clock.ts'
import { type RateCounter, rateWindowMs } from './rate-windows.ts'

/** If the table is full, the oldest entry is removed. */
const addressesMax = 10_000

export class FailedLogins {
  private readonly clock: Clock
  private readonly perMinute: number
  private readonly shared: RateCounter | undefined
  /** In the order of the first failure. */
  private readonly counts = new Map<string, { since: number; failures: number }>()

  /** If `perMinute` is 0, nothing is counted. `shared` counts over all nodes. */
  constructor(clock: Clock, perMinute: number, shared?: RateCounter) {
    this.clock = clock
    this.perMinute = perMinute
    this.shared = shared
  }

  /** Throws `rate_limited` if the address has too many failures. */
  refuseTooMany(ip: string): void {
    // Called for every request, and finding the key of an address takes longer than all other checks of a request.
    if (this.counts.size === 0) return
    const known = this.counts.get(addressKey(ip))
    if (known === undefined || known.failures < this.perMinute) return
    const leftMs = known.since + rateWindowMs - this.clock.monotonic()
    if (leftMs <= 0) return
    const seconds = Math.ceil(leftMs / 1000)
    throw new AppError(
      'rate_limited',
      `More than ${this.perMinute} logins failed from this address in a minute. Wait ${seconds} s.`,
      { details: { retryAfterSeconds: seconds } },
    )
  }

  /** Throws `rate_limited` if other nodes have counted too many failures before this one. */
  async count(ip: string): Promise<void> {
    if (this.perMinute === 0) return
    const key = addressKey(ip)
    const window = this.countHere(key)
    if (this.shared === undefined) return
    const { current, ttl } = await this.shared.count(`login:${key}`)
    if (current <= window.failures) return
    window.failures = current
    window.since = this.clock.monotonic() + ttl - rateWindowMs
    if (current > this.perMinute) this.refuseTooMany(ip)
  }

  private countHere(key: string): { since: number; failures: number } {
    const now = this.clock.monotonic()
    const known = this.counts.get(key)
    if (known !== undefined && now < known.since + rateWindowMs) {
      known.failures++
      return known
    }
    this.counts.delete(key)
    const [oldest] = this.counts.keys()
    if (this.counts.size >= addressesMax && oldest !== undefined) this.counts.delete(oldest)
    const window = { since: now, failures: 1 }
    this.counts.set(key, window)
    return window
  }

  /** The number of addresses in the table. */
  get size(): number {
    return this.counts.size
  }
}

/** The key under which a client is counted: its IPv4 address, or the first 64 bits of its IPv6 address. */
export function addressKey(address: string): string {
  // Some proxies append the port of the client, which is another one for each connection.
  const ip = address.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1').replace(/^\[(.*)\](?::\d+)?$/, '$1')
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
