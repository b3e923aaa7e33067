// Bodies of the job routes.

import { z } from 'zod'
import type { JobBody } from '../../jobs/job-service.ts'
import { jsonValue } from '../json-value.ts'

const values = z
  .record(z.string(), jsonValue)
  .nullish()
  .transform((value) => value ?? {})

const common = {
  engine: z
    .string()
    .max(100)
    .nullish()
    .transform((value) => value ?? 'local')
    .describe('The engine that runs the job; `local` where none is named.'),
  parameter: values.describe('As the parameter schema of the skill says.'),
  model: z.string().max(200).nullish().describe('`provider/model`; the server’s default where none is named.'),
  runtime_options: values.describe(
    'execution_mode (auto, interactive), interactive_require_user_reply, session_timeout_sec, verbose, debug, debug_keep_temp, no_cache',
  ),
  userId: z.string().max(200).nullish(),
  client_id: z.string().max(200).nullish(),
}

export const jobBody = z
  .object({
    skill_id: z.string().min(1).max(200).describe('One of GET /v1/skills.'),
    input: values.describe('As the input schema of the skill says; files are uploaded afterwards.'),
    ...common,
  })
  .meta({ id: 'JobRequest' })

export const tempRunBody = z
  .object({ input: values.describe('Inline values, where the skill takes any.'), ...common })
  .nullish()

export const replyBody = z.object({
  interaction_id: z.number().int().min(1),
  response: jsonValue.describe('The answer; free text is fine for every kind.'),
  idempotency_key: z.string().min(1).max(200).nullish().describe('The same key and response are taken once.'),
  userId: z.string().max(200).nullish(),
  client_id: z.string().max(200).nullish(),
})

type Parsed = Omit<z.output<typeof jobBody>, 'skill_id'> & { skill_id?: string | undefined }

export function toJobBody(body: Parsed): JobBody {
  return {
    ...(body.skill_id === undefined ? {} : { skillId: body.skill_id }),
    engine: body.engine,
    input: body.input,
    parameter: body.parameter,
    model: body.model ?? undefined,
    runtimeOptions: body.runtime_options,
  }
}
