// GET /v1/skills: the skills that jobs can run. Broken skills are listed too, with the reason.

import { z } from 'zod'
import type { SkillListing } from '../../skills/skill-registry.ts'
import { AppError } from '../../errors/app-error.ts'
import { errorBody, idParam, type Server, type Services } from '../routes.ts'
import { jsonValue } from '../json-value.ts'

const skillView = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string(),
    version: z.string().nullable(),
    available: z.boolean(),
    reason: z.string().nullable().describe('Why the skill cannot be used; null if it can.'),
    execution_modes: z.array(z.string()),
    engines: z.array(z.string()).nullable().describe('Null means all engines.'),
    unsupported_engines: z.array(z.string()),
    file_inputs: z.array(z.string()).describe('The names of the inputs that are uploaded as files.'),
  })
  .meta({ id: 'Skill' })

const skillDetail = skillView.extend({
  instructions: z.string(),
  files: z
    .array(z.object({ path: z.string(), size: z.number() }))
    .describe('The other files of the package; the model may read them.'),
  schemas: z.object({
    input: z.record(z.string(), jsonValue).nullable(),
    parameter: z.record(z.string(), jsonValue).nullable(),
    output: z.record(z.string(), jsonValue).nullable(),
  }),
})

export function skillRoutes(server: Server, { skills }: Services): void {
  server.get(
    '/v1/skills',
    { schema: { tags: ['Jobs'], summary: 'The skills that jobs can run', response: { 200: z.array(skillView) } } },
    () => skills.list().map(toView),
  )

  server.get(
    '/v1/skills/:skill_id',
    {
      schema: {
        tags: ['Jobs'],
        summary: 'One skill, with its schemas and instructions',
        params: z.object({ skill_id: idParam }),
        response: { 200: skillDetail, 404: errorBody },
      },
    },
    (request) => {
      const { skill_id: id } = request.params
      const listing = skills.list().find((candidate) => candidate.id === id)
      if (listing === undefined) throw new AppError('skill_not_found', `There is no skill ${JSON.stringify(id)}.`)
      const { input = null, parameter = null, output = null } = listing.skill?.schemas ?? {}
      const files = (listing.skill?.files ?? []).map(({ path, size }) => ({ path, size }))
      const instructions = listing.skill?.text ?? ''
      return { ...toView(listing), instructions, files, schemas: { input, parameter, output } }
    },
  )
}

function toView({ id, skill, error }: SkillListing): z.infer<typeof skillView> {
  return {
    id,
    name: skill?.name ?? id,
    description: skill?.description ?? '',
    version: skill?.version ?? null,
    available: skill !== null,
    reason: error,
    execution_modes: skill?.modes ?? [],
    engines: skill?.engines ?? null,
    unsupported_engines: skill?.unsupportedEngines ?? [],
    file_inputs: (skill?.fileInputs ?? []).map(({ name }) => name),
  }
}
