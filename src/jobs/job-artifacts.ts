// The files that a job made, as its journal tells.

import type { RunState } from '../journal/run-state.ts'

/** A path that was saved twice is there once. */
export function artifactsOf(state: RunState): { path: string; size: number }[] {
  const found = new Map((state.reused?.artifacts ?? []).map(({ path, size }) => [path, size]))
  for (const call of state.calls.values()) {
    if (call.name !== 'save_artifact' || call.done?.outcome !== 'succeeded') continue
    const output = call.done.output as { path?: unknown; bytes?: unknown } | undefined
    if (typeof output?.path === 'string') found.set(output.path, Number(output.bytes ?? 0))
  }
  return [...found].map(([path, size]) => ({ path, size }))
}
