// An engine proposes what happens next in a run; `runs/` writes it down. One call
// is one step: ask, stream the answer, say how it finished. Tools that the step
// asks for are executed by `runs/`, which then asks for the next step.

import type { RunSpec } from '../journal/event.ts'
import type { ModelMessage, ModelPart, ModelTool } from '../models/model.ts'

export type StepRequest = {
  runId: string
  spec: RunSpec
  messages: ModelMessage[]
  tools: ModelTool[]
}

export interface Engine {
  readonly name: string
  /** Same promises as `Model.stream`; retries before the first part are the engine's business. */
  step(request: StepRequest, signal: AbortSignal): AsyncIterable<ModelPart[]>
}
