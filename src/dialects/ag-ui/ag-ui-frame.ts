// A frame of AG-UI is one JSON event with a `type`.

import type { Frame } from '../dialect.ts'

/** The events that a run can produce. */
export type AgUiEventType =
  | 'RUN_STARTED'
  | 'RUN_FINISHED'
  | 'RUN_ERROR'
  | 'STEP_STARTED'
  | 'STEP_FINISHED'
  | 'TEXT_MESSAGE_START'
  | 'TEXT_MESSAGE_CONTENT'
  | 'TEXT_MESSAGE_END'
  | 'REASONING_START'
  | 'REASONING_MESSAGE_START'
  | 'REASONING_MESSAGE_CONTENT'
  | 'REASONING_MESSAGE_END'
  | 'REASONING_END'
  | 'TOOL_CALL_START'
  | 'TOOL_CALL_ARGS'
  | 'TOOL_CALL_END'
  | 'TOOL_CALL_RESULT'
  | 'STATE_SNAPSHOT'
  | 'STATE_DELTA'
  | 'MESSAGES_SNAPSHOT'
  | 'CUSTOM'

export function agUiFrame(type: AgUiEventType, fields: Record<string, unknown>): Frame {
  return { name: type, data: { type, ...fields } }
}

/** For what AG-UI has no event. The names are documented in README.md; `value` must not be undefined. */
export function customFrame(name: string, value: Record<string, unknown>): Frame {
  return agUiFrame('CUSTOM', { name, value })
}
