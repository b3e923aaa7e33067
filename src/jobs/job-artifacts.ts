// Lists the files that a job saved, as recorded in its journal.

import type { RunState } from '../journal/run-state.ts'

/** One entry per path, with the size of the last save. */
export function artifactsOf(state: RunState): { path: string; size: number }[] {
  const found = new Map((state.reused?.artifacts ?? []).map(({ path, size }) => [path, size]))
  for (const call of state.calls.values()) {
    if (call.name !== 'save_artifact' || call.done?.outcome !== 'succeeded') continue
    const output = call.done.output as { path?: unknown; bytes?: unknown } | undefined
    if (typeof output?.path === 'string') found.set(output.path, Number(output.bytes ?? 0))
  }
  return [...found].map(([path, size]) => ({ path, size }))
}
