// The invariant check of a run → JSON, for every API family that offers it.

import { z } from 'zod'
import type { RunVerdict } from '../dialects/fcmp/check-invariants.ts'

export const invariantsView = z
  .object({
    kept: z.boolean().describe('True if no rule is broken.'),
    skipped: z.number().describe('How many stored rows could no longer be read.'),
    rules: z.array(
      z.object({
        id: z.string(),
        kind: z.enum(['transition', 'mapping', 'pairing', 'ordering']),
        on: z.enum(['journal', 'fcmp']).describe('Whether the seq in broken is that of the journal or of FCMP.'),
        rule: z.string(),
        seen: z.number().describe('How often the rule applied in this run.'),
        kept: z.boolean(),
        broken: z.array(z.object({ seq: z.number(), message: z.string() })),
      }),
    ),
  })
  .meta({ id: 'Invariants' })

export function toInvariants(found: {
  verdicts: readonly RunVerdict[]
  skipped: number
}): z.infer<typeof invariantsView> {
  const rules = found.verdicts.map((verdict) => ({ ...verdict, broken: [...verdict.broken] }))
  return { kept: rules.every(({ kept }) => kept), skipped: found.skipped, rules }
}
