// The kind of a run that executes a skill. It uses the instructions of the skill and the tools
// for jobs, and its answer must fit the skill's output schema.

import { AppError } from '../errors/app-error.ts'
import { defined } from '../kit/defined.ts'
import type { RunKind } from '../runs/run-kind.ts'
import { packageBlobs } from './job-files.ts'
import { outputRuleOf } from './job-output.ts'
import { jobInstructions } from './job-prompt.ts'
import { isReusable } from './result-reuse.ts'

export const jobKind: RunKind = {
  name: 'job',

  systemPrompt: ({ skill, job, systemPrompt }) => (skill === undefined ? systemPrompt : jobInstructions(skill, job)),

  isAudience(audience, { accepted, files }) {
    switch (audience) {
      case 'chats':
        return false
      case 'jobs':
        return true
      case 'interactive_jobs':
        return accepted?.spec.job?.mode === 'interactive'
      case 'jobs_with_files':
        return files.length > 0
      case 'jobs_with_skill_files':
        return (accepted?.spec.skill?.files ?? []).length > 0
    }
  },

  outputRule: outputRuleOf,

  computedAnswer: () => undefined,

  /** If the job does not require a reply, the model decides by itself after this time. */
  replyTimeoutMs: ({ job }) => (job?.requireReply === false ? job.replyTimeoutMs : undefined),

  uploadExpired: () =>
    new AppError(
      'job_upload_expired',
      'The upload that this job needs did not come in time. Create the job again and send its files sooner.',
    ),

  changesAtEnd(runId, state) {
    const { cacheKey, ended, accepted } = state
    const job = accepted?.spec.job
    const reusable = ended?.status === 'succeeded' && cacheKey !== undefined && isReusable(state)
    // The package of an uploaded skill is removed in the commit that ends its run.
    const dropsPackage = job?.source === 'temp_upload' && job.options['debug_keep_temp'] !== true
    return defined({
      cacheKey: reusable ? cacheKey : undefined,
      dropBlobs: dropsPackage ? packageBlobs(runId) : undefined,
    })
  },
}
