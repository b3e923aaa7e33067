// Watches the main thread from another thread. It reports how long the main thread was
// blocked and by which run or request, and records which run was on it when the process
// froze or died. `deaths` holds the records of earlier processes.

import { Worker } from 'node:worker_threads'
import { type Activity, currentActivity } from '../kit/activity.ts'
import { currentUserCode } from '../kit/user-code.ts'
import { DeathRecord, type Mark, markFileOf, writeWhole } from './death-record.ts'
import type { Log } from './log.ts'
import type { WatchdogData, WatchdogMessage } from './watchdog-worker.ts'

export type WatchdogOptions = {
  /** The folder of the mark files; this process must hold its lock. */
  folder: string
  /** An id of this process, unique among all processes that ever used the folder. */
  life: string
  log: Pick<Log, 'warn' | 'error'>
  /** The process is killed if its main thread is blocked for this long; 0: never. */
  freezeMaxMs: number
  blockedMs?: number
  onBlock?: (activity: Activity | null, ms: number) => void
}

export type Watchdog = { readonly deaths: DeathRecord; stop(): Promise<void> }

/** The interval of the heartbeat: that of the event-loop metrics, so that both wake an idle process together. */
const beatMs = 100
/** How often the watchdog looks at the heartbeat. */
const tickMs = 250
/** Shorter blocks only show in the event-loop lag metrics. */
const defaultBlockedMs = 1000

export function startWatchdog(options: WatchdogOptions): Watchdog {
  const { folder, life, log } = options
  const deaths = new DeathRecord(folder)
  if (deaths.last !== null) {
    const { how, activity, code } = deaths.last
    log.error({ how, activity, code }, 'the last process did not survive; this was on its main thread')
  }

  const heartbeat = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  const beats = new Int32Array(heartbeat)
  const timer = setInterval(() => void Atomics.add(beats, 0, 1), beatMs)
  timer.unref()
  const asked = globalThis as unknown as Record<symbol, unknown>
  asked[Symbol.for('polylog.activity')] = () => JSON.stringify(currentActivity() ?? null)

  const limits = { tickMs, blockedMs: options.blockedMs ?? defaultBlockedMs, freezeMaxMs: options.freezeMaxMs }
  const workerData: WatchdogData = { heartbeat, folder, life, limits }
  const worker = new Worker(new URL('./watchdog-worker.ts', import.meta.url), { workerData })
  worker.unref()
  worker.on('error', (error) => log.error({ err: error }, 'the watchdog stopped; the server goes on without it'))
  worker.on('message', (message: WatchdogMessage | object) => {
    // Under `node --watch` Node itself sends messages from every thread.
    if (!('ms' in message)) return
    const { ms, activity, code } = message
    log.warn({ ms, ...activity, code }, `a request or run blocked the event loop for ${ms} ms`)
    options.onBlock?.(activity, ms)
  })

  // Deaths that JavaScript can observe (an uncaught exception, an exit): the current activity caused them.
  let stopped = false
  const died = (how: Mark['how']) => {
    const activity = currentActivity()
    if (stopped || activity === undefined) return
    stopped = true
    writeWhole(markFileOf(folder), { id: `${life}:${how}`, at: Date.now(), how, activity } satisfies Mark)
  }
  const onThrow = () => {
    // What code of the operator throws is caught (uncaught.ts), and the process lives on.
    if (currentUserCode() === undefined) died('crashed')
  }
  const onExit = () => died('exited')
  process.on('uncaughtExceptionMonitor', onThrow)
  process.on('exit', onExit)

  return {
    deaths,
    async stop() {
      stopped = true
      clearInterval(timer)
      process.off('uncaughtExceptionMonitor', onThrow)
      process.off('exit', onExit)
      worker.removeAllListeners('error')
      await worker.terminate()
    },
  }
}
