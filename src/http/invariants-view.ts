// What the rules say about a run → JSON, for every family that can be asked.

import { z } from 'zod'
import type { RunVerdict } from '../dialects/fcmp/check-invariants.ts'

export const invariantsView = z
  .object({
    kept: z.boolean().describe('True where no rule is broken.'),
    skipped: z.number().describe('Stored rows that could not be read any more.'),
    rules: z.array(
      z.object({
        id: z.string(),
        kind: z.enum(['transition', 'mapping', 'pairing', 'ordering']),
        on: z.enum(['journal', 'fcmp']).describe('Whose seq the offences name.'),
        rule: z.string(),
        seen: z.number().describe('How often the run came to what the rule is about.'),
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
