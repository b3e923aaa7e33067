// Chooses the kind (chat, job or one-shot) of each run.

import { jobKind } from '../jobs/job-kind.ts'
import { oneShotKind } from '../one-shot/one-shot-kind.ts'
import { chatKind } from '../runs/chat-kind.ts'
import type { KindOf } from '../runs/run-kind.ts'

export const kindOf: KindOf = (spec) => {
  if (spec.job !== undefined) return jobKind
  return spec.oneShot === undefined ? chatKind : oneShotKind
}
