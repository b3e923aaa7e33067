// Tracks which run (and which place in it) or which request the current code works for.
// The activity follows awaits and timers and costs nothing per token. The watchdog reads
// it when the main thread is blocked or dies.

import { AsyncLocalStorage } from 'node:async_hooks'

/** `traceparent`: the trace context of the work, which is passed on with requests. */
export type RunActivity = { readonly run: string; place: string; readonly traceparent?: string }
/** `traceparent`: the trace context that the request came with. */
export type RequestActivity = { readonly route: string; readonly traceparent?: string }
export type Activity = RunActivity | RequestActivity

const storage = new AsyncLocalStorage<Activity | undefined>()

export function withActivity<T>(activity: Activity, work: () => T): T {
  return storage.run(activity, work)
}

/** Runs shared background work without the activity of the code that happens to start it. */
export function withoutActivity<T>(work: () => T): T {
  return storage.run(undefined, work)
}

/** Records that the current run has reached another place. Does nothing outside a run. */
export function atPlace(place: string): void {
  const activity = storage.getStore()
  if (activity !== undefined && 'run' in activity) activity.place = place
}

/** The trace context of the request that is being handled; undefined outside a request, or if it had none. */
export function requestTraceparent(): string | undefined {
  const activity = storage.getStore()
  return activity !== undefined && 'route' in activity ? activity.traceparent : undefined
}

/** The trace context of the current work of a run; undefined if it has none. */
export function workTraceparent(): string | undefined {
  const activity = storage.getStore()
  return activity !== undefined && 'run' in activity ? activity.traceparent : undefined
}

export function currentActivity(): Activity | undefined {
  return storage.getStore()
}
