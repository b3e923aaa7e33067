// The JSON of the job routes, as far as the page needs it.

import type { JsonValue, RunInfo } from '@polylog/client'
import type { Api } from '../../api/api.ts'
import type { JsonSchema } from '../../ui/schema-fields.ts'
import { zipOf } from './zip.ts'

type JobStatus = 'queued' | 'running' | 'waiting_user' | 'succeeded' | 'failed' | 'canceled'

export type JobSummary = {
  request_id: string
  status: JobStatus
  skill_id: string | null
  created_at: string
  updated_at: string
  error: { code: string; message: string } | null
}

export type JobInfo = JobSummary & { engine: string; warnings: string[]; interaction_count: number }

export type Skill = {
  id: string
  name: string
  description: string
  version: string | null
  available: boolean
  reason: string | null
  execution_modes: string[]
  file_inputs: string[]
}

export type SkillDetail = Skill & {
  instructions: string
  schemas: { input: JsonSchema | null; parameter: JsonSchema | null; output: JsonSchema | null }
}

export type JobResult = {
  status: JobStatus
  data: JsonValue
  artifacts: string[]
  repair_level: 'none' | 'deterministic_generic' | 'model_round'
  validation_warnings: string[]
  error: { code: string; message: string } | null
}

export type JobRequest = {
  skill_id: string
  input: Record<string, JsonValue>
  parameter: Record<string, JsonValue>
  model?: string
  runtime_options: { execution_mode: string; no_cache?: true }
}

export type CreatedJob = { request_id: string; cache_hit: boolean; status: string | null }

export function jobPath(id: string, rest = ''): string {
  return `/v1/jobs/${encodeURIComponent(id)}${rest}`
}

/** The words of the other routes, for the same states. */
export function runStatusOf(status: JobStatus): RunInfo['status'] {
  return status === 'waiting_user' ? 'awaiting_input' : status === 'canceled' ? 'cancelled' : status
}

export function jobStatusOf(status: RunInfo['status']): JobStatus {
  return status === 'awaiting_input' ? 'waiting_user' : status === 'cancelled' ? 'canceled' : status
}

export function hasEnded({ status }: Pick<JobSummary, 'status'>): boolean {
  return status === 'succeeded' || status === 'failed' || status === 'canceled'
}

/** Sends the input files as one zip; each has the name of its input, with its own ending. */
export async function uploadFiles(api: Api, id: string, files: ReadonlyMap<string, File>): Promise<CreatedJob> {
  const named = new Map([...files].map(([name, file]) => [`${name}${/\.\w+$/.exec(file.name)?.[0] ?? ''}`, file]))
  const form = new FormData()
  form.set('file', await zipOf(named), 'files.zip')
  // The transport sends bytes; this gives the form as bytes, and the type that names its boundary.
  const encoded = new Response(form)
  const type = encoded.headers.get('content-type') ?? ''
  return await api.json(jobPath(id, '/upload'), {
    method: 'POST',
    body: await encoded.blob(),
    headers: { 'content-type': type },
  })
}
