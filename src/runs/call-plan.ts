// What a tool call needs next.

import type { JsonValue } from '../journal/event.ts'
import type { Question, Tool } from '../tools/tool.ts'

export type CallPlan =
  | { do: 'run'; tool: Tool; input: JsonValue }
  | { do: 'ask'; outcome: 'unknown' | undefined; prompt: string; question?: Question }
  /** A person answered: that is the result. */
  | { do: 'answer'; output: JsonValue }
  | { do: 'wait' }
  | { do: 'close'; outcome: 'failed' | 'denied' | 'cancelled' | 'unknown'; code: string; message: string }
