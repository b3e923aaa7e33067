// The rules of a run, checked by the server: when the page is opened, and again when the run ends.

import { type Loaded, useLoaded } from '../../api/use-loaded.ts'

export type Rule = {
  id: string
  kind: 'transition' | 'mapping' | 'pairing' | 'ordering'
  /** Whose numbers `broken` has. */
  on: 'journal' | 'fcmp'
  rule: string
  seen: number
  kept: boolean
  broken: { seq: number; message: string }[]
}

export type Rules = { kept: boolean; skipped: number; rules: Rule[] }

export function useRules(runId: string, isEnded: boolean): Loaded<Rules> {
  return useLoaded(`rules ${runId} ${isEnded}`, ({ json }, signal) =>
    json<Rules>(`/v1/agent/runs/${encodeURIComponent(runId)}/invariants`, { signal }),
  )
}
