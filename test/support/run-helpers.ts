// Small helpers for tests on the run rig: a model that answers on command, a store that fails on
// command, and waits for something that has to happen or must not happen.

import assert from 'node:assert/strict'
import { AppError } from '../../src/errors/app-error.ts'
import type { EventOf, EventType, RunEvent } from '../../src/journal/event.ts'
import type { Store } from '../../src/stores/store.ts'
import { type Answer, openRig, type Rig, type RigOptions, says } from './run-rig.ts'

export const unavailable = () => new AppError('store_unavailable', 'The disk is full.')

/** Which runs were asked, in their order; each is answered when the test says so. */
export function gate() {
  const asked: string[] = []
  const open = new Map<string, () => void>()
  const answer: Answer = async function* ({ runId }, signal) {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    // A failure after the stream was given up belongs to nobody.
    promise.catch(() => {})
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    // Set together, because a test that sees the run in `asked` may release it at once.
    open.set(runId, resolve)
    asked.push(runId)
    yield [{ type: 'text', text: 'One moment. ' }]
    await promise
    yield* says('Done.')
  }
  return { asked, answer, release: (runId: string) => open.get(runId)?.() }
}

/** The real store, with methods that fail as long as `failing` names them. */
export function flaky() {
  const failing = new Set<keyof Store>()
  const hits: string[] = []
  const wrapStore = (store: Store): Store =>
    new Proxy(store, {
      get(target, name: keyof Store) {
        const method = target[name] as (...args: unknown[]) => unknown
        return (...args: unknown[]) => {
          if (!failing.has(name)) return method.apply(target, args)
          hits.push(name)
          return Promise.reject(unavailable())
        }
      },
    })
  return { failing, hits, wrapStore }
}

export async function withRig(options: RigOptions, work: (rig: Rig) => Promise<void>): Promise<void> {
  const rig = await openRig(options)
  try {
    await work(rig)
  } finally {
    await rig.close()
  }
}

/** For `rig.start`: the run has earlier messages, which it reads from the store. A first turn reads none. */
export const withHistory = { earlier: [{ role: 'user' as const, content: 'Earlier.' }] }

/** For `rig.until`. */
export const ended = ({ endedAt }: { endedAt: number | null }) => endedAt !== null
export const isWaiting = ({ status }: { status: string }) => status === 'waiting_user'

/** Waits for the end of the run, and confirms the call that it may ask about on the way. */
export async function endedWithConsent(rig: Rig, runId: string): Promise<void> {
  await rig.until(runId, (found) => ended(found) || isWaiting(found))
  const [asked] = await rig.store.interactionsOf(runId)
  if (asked?.status === 'pending') await rig.confirm('ada', asked.id, undefined)
  await rig.until(runId, ended)
}

/** The events of one type. */
export function eventsOf<T extends EventType>(events: readonly RunEvent[], type: T): EventOf<T>[] {
  return events.filter((event): event is EventOf<T> => event.type === type)
}

/** Waits until the condition holds. */
export async function reached(fits: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await fits()); tries += 1) {
    assert.ok(tries < 20_000, 'it never came')
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

/** Gives what must not come the time to come, without moving the clock. */
export async function quiet(): Promise<void> {
  for (let turns = 0; turns < 60; turns += 1) await new Promise((resolve) => setTimeout(resolve, 1))
}
