// The next action for a tool call; `plan-call.ts` chooses it and `tool-phase.ts` carries it out.

import type { JsonValue } from '../journal/event.ts'
import type { Tool, ToolQuestion } from '../tools/tool.ts'
import type { ClosedCall } from './closed-call.ts'

export type CallPlan =
  | { do: 'run'; tool: Tool; input: JsonValue }
  /** The client executes the call and sends its result. */
  | { do: 'hand_over'; prompt: string }
  | { do: 'ask'; outcome: 'unknown' | undefined; prompt: string; question?: ToolQuestion }
  /** A person answered the question, or the client sent the result; this is the result of the call. */
  | { do: 'answer'; output: JsonValue }
  | { do: 'wait' }
  | ({ do: 'close' } & ClosedCall)
