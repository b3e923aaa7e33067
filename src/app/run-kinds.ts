// Chooses the kind (chat or job) of each run.

import { jobKind } from '../jobs/job-kind.ts'
import { chatKind } from '../runs/chat-kind.ts'
import type { KindOf } from '../runs/run-kind.ts'

export const kindOf: KindOf = (spec) => (spec.job === undefined ? chatKind : jobKind)
