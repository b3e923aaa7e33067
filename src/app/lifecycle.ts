// The order in which the parts start and stop. A stop first makes the server not ready and, if so
// configured, serves on for a moment; then it refuses new runs, gives
// running tools time to finish, then ends the streams. The store is closed last, even if an
// earlier part of the stop failed.

import type { Clock } from '../kit/clock.ts'
import type { Log } from './log.ts'

export type App = {
  /** Listens, then resumes unfinished runs. Resolves with the address. If it fails, everything is closed. */
  start(): Promise<string>
  /** Refuses new runs and ends streams cleanly; unfinished runs continue at the next start. A second call waits for the first. */
  stop(): Promise<void>
}

export type LifecycleDependencies = {
  clock: Clock
  log: Pick<Log, 'error' | 'warn'>
  /** Told first, so that a load balancer stops sending requests. */
  readiness: { drain(): void }
  /** How long requests are still served after that, so that the load balancer can notice. */
  stopDelayMs: number
  listen(): Promise<string>
  /** `drain` gives running tools `graceMs` to finish, then aborts them and releases the leases. */
  scheduler: { start(): void; drain(graceMs: number): Promise<void> }
  /** Settles the comparisons whose runs ended while no server was running. */
  settle(): Promise<void>
  runs: { refuseNewRuns(): void }
  retention: { stop(): void }
  /** Waits a moment for hooks that are under way. */
  hooks: { settled(): Promise<void> }
  streams: { endAll(): void }
  server: { close(): Promise<unknown>; closeAllConnections(): void }
  tools: { close(): Promise<void> }
  store: { close(): Promise<void> }
}

/** How long a stop waits for running tools. */
const drainMs = 10_000
/** The extra time for aborting tools and releasing leases; only a store that hangs needs longer. */
const releaseMs = 2_000
/** After this time connections are closed by force, so that a client that stopped reading cannot delay the stop. */
const closeMs = 3_000

export function createLifecycle(dependencies: LifecycleDependencies): App {
  const { clock, log, readiness, stopDelayMs, runs, retention, scheduler, hooks, streams, server, tools, store } =
    dependencies
  let starting: Promise<string> | undefined
  let stopping: Promise<void> | undefined

  async function start(): Promise<string> {
    if (stopping !== undefined) throw new Error('the server was stopped and cannot be started again')
    let address: string
    try {
      address = await dependencies.listen()
    } catch (error) {
      // Errors while closing are logged; the caller gets the error that made the start fail.
      await closeAll().catch(() => {})
      throw error
    }
    scheduler.start()
    await dependencies
      .settle()
      .catch((error: unknown) => log.warn({ err: error }, 'comparisons could not be settled; readers will do it'))
    return address
  }

  async function closeAll(): Promise<void> {
    const failures: unknown[] = []
    const steps: (() => unknown)[] = [
      () => runs.refuseNewRuns(),
      () => retention.stop(),
      () => within(clock, drainMs + releaseMs, scheduler.drain(drainMs)),
      () => streams.endAll(),
      closeServer,
      () => hooks.settled(),
      () => tools.close(),
      () => store.close(),
    ]
    for (const step of steps) {
      try {
        await step()
      } catch (error) {
        log.error({ err: error }, 'a part of the stop failed; the rest goes on')
        failures.push(error)
      }
    }
    if (failures.length > 0) throw new Error('the stop was not complete', { cause: failures[0] })
  }

  async function closeServer(): Promise<void> {
    const force = clock.after(closeMs, () => server.closeAllConnections())
    try {
      await server.close()
    } finally {
      force.cancel()
    }
  }

  return {
    start: () => (starting ??= start()),
    stop: () =>
      (stopping ??= (async () => {
        // A failed start has already closed everything.
        const started = await starting?.then(
          () => true,
          () => false,
        )
        if (started === false) return
        readiness.drain()
        if (started === true && stopDelayMs > 0) await new Promise<void>((resolve) => clock.after(stopDelayMs, resolve))
        await closeAll()
      })()),
  }
}

async function within(clock: Clock, limitMs: number, work: Promise<void>): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = clock.after(limitMs, resolve)
    work.then(
      () => {
        timer.cancel()
        resolve()
      },
      (error: Error) => {
        timer.cancel()
        reject(error)
      },
    )
  })
}
