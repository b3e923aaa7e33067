// An engine proposes what happens next in a run; `runs/` writes it to the journal. One call
// is one step: send the request, stream the answer, report the finish reason. `runs/`
// executes the tool calls of a step and then requests the next step.

import type { RunSpec } from '../journal/event.ts'
import type { ModelMessage, ModelPart, ModelTool, WantedAnswer } from '../models/model.ts'

export type StepRequest = {
  runId: string
  spec: RunSpec
  messages: ModelMessage[]
  tools: ModelTool[]
  /** Absent if any text is an answer. */
  answer?: WantedAnswer
}

export interface Engine {
  readonly name: string
  /** Same contract as `Model.stream`, but the engine also retries failures before the first part. */
  step(request: StepRequest, signal: AbortSignal): AsyncIterable<ModelPart[]>
}
