// The order in which the parts are started and stopped. Stopping: no new runs first, then
// what is under way gets its time, then readers get the end of their streams, and the
// store is closed last, whatever failed before it.

import type { Clock } from '../kit/clock.ts'
import type { Log } from './log.ts'

export type App = {
  /** Listens, then takes up what was left unfinished. Resolves with the address. If it fails, everything is closed. */
  start(): Promise<string>
  /** No new runs, streams end cleanly, unfinished runs go on at the next start. A second call waits for the first. */
  stop(): Promise<void>
}

export type LifecycleParts = {
  clock: Clock
  log: Pick<Log, 'error' | 'warn'>
  listen(): Promise<string>
  /** `drain` lets what is under way go on for so long, then cuts it off and releases the leases. */
  scheduler: { start(): void; drain(graceMs: number): Promise<void> }
  /** Ends what ended while no server ran. */
  settle(): Promise<void>
  runs: { refuseNewRuns(): void }
  retention: { stop(): void }
  streams: { endAll(): void }
  server: { close(): Promise<unknown>; closeAllConnections(): void }
  tools: { close(): Promise<void> }
  store: { close(): Promise<void> }
}

/** How long a stop waits for tools that are under way. */
const drainMs = 10_000
/** After that, tools are cut off and leases are released; only a store that hangs takes longer. */
const releaseMs = 2_000
/** A reader that does not take the end of its stream must not keep the server up. */
const closeMs = 3_000

export function createLifecycle(parts: LifecycleParts): App {
  const { clock, log, runs, retention, scheduler, streams, server, tools, store } = parts
  let starting: Promise<string> | undefined
  let stopping: Promise<void> | undefined

  async function start(): Promise<string> {
    if (stopping !== undefined) throw new Error('the server was stopped and cannot be started again')
    let address: string
    try {
      address = await parts.listen()
    } catch (error) {
      // What fails while closing is in the log; why the start failed is the answer.
      await closeAll().catch(() => {})
      throw error
    }
    scheduler.start()
    await parts
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
        // A start that failed has closed everything.
        const started = await starting?.then(
          () => true,
          () => false,
        )
        if (started !== false) await closeAll()
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
