// The request bodies of the job routes, and their translation to the job service's types.

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
    .describe('The engine that runs the job; the default is `local`.'),
  parameter: values.describe('Must match the parameter schema of the skill.'),
  model: z.string().max(200).nullish().describe('`provider/model`; the default is the default model of the server.'),
  runtime_options: values.describe(
    'execution_mode (auto, interactive), interactive_require_user_reply, session_timeout_sec, verbose, debug, debug_keep_temp, no_cache',
  ),
  userId: z.string().max(200).nullish(),
  client_id: z.string().max(200).nullish(),
}

export const jobBody = z
  .object({
    skill_id: z.string().min(1).max(200).describe('The id of a skill that GET /v1/skills lists.'),
    input: values.describe('Must match the input schema of the skill; files are uploaded afterwards.'),
    ...common,
  })
  .meta({ id: 'JobRequest' })

export const tempRunBody = z
  .object({ input: values.describe('Inline values, if the skill accepts any.'), ...common })
  .nullish()

export const replyBody = z.object({
  interaction_id: z.number().int().min(1),
  response: jsonValue.describe('The answer; every kind of question accepts free text.'),
  idempotency_key: z
    .string()
    .min(1)
    .max(200)
    .nullish()
    .describe('A reply that repeats the same key and response is applied only once.'),
  userId: z.string().max(200).nullish(),
  client_id: z.string().max(200).nullish(),
})

type ParsedBody = Omit<z.output<typeof jobBody>, 'skill_id'> & { skill_id?: string | undefined }

export function toJobBody(body: ParsedBody): JobBody {
  return {
    ...(body.skill_id === undefined ? {} : { skillId: body.skill_id }),
    engine: body.engine,
    input: body.input,
    parameter: body.parameter,
    model: body.model ?? undefined,
    runtimeOptions: body.runtime_options,
  }
}
