// What the code that runs right now belongs to: a run (and where in it), or a request.
// It follows awaits and timers, costs nothing per token, and is what the watchdog asks
// for when the main thread is blocked or dies.

import { AsyncLocalStorage } from 'node:async_hooks'

export type RunActivity = { readonly run: string; place: string }
export type Activity = RunActivity | { readonly route: string }

const storage = new AsyncLocalStorage<Activity | undefined>()

export function workingOn<T>(activity: Activity, work: () => T): T {
  return storage.run(activity, work)
}

/** For work that belongs to nobody in particular, started from within the work of somebody. */
export function onNobodysBehalf<T>(work: () => T): T {
  return storage.run(undefined, work)
}

/** The run that is worked on has come to another place. */
export function atPlace(place: string): void {
  const activity = storage.getStore()
  if (activity !== undefined && 'run' in activity) activity.place = place
}

export function currentActivity(): Activity | undefined {
  return storage.getStore()
}
