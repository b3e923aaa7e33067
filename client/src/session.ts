// The wire of the session API: each SSE message is `data: <JSON>`, without an id and an event name. Every `tool_use`
// has one `tool_result`. `done` is last, also after `error`. Times are in epoch ms.

import type { JsonValue } from './json.ts'

export type SessionToolResult = {
  status: 'success' | 'failed'
  message: string
  /** The arguments that the call ran with, if a person changed those of its `tool_use`. */
  input?: JsonValue
  /** Of the tools that work on files (`fs_…`). */
  modified?: boolean
  paths?: string[]
}

export type SessionFrame =
  | { type: 'start'; agentId: string; isNewSession: boolean; timestamp: number }
  | { type: 'text'; content: string; timestamp: number }
  | {
      type: 'tool_use'
      tool: string
      id: string
      /** A sentence for people. */
      message: string
      /** Shortened for display, unless a person is asked to decide about it. */
      input?: JsonValue
      timestamp: number
    }
  /** The tool threw; its `tool_result` follows. */
  | { type: 'tool_error'; tool: string; error: string; tool_use_id: string; timestamp: number }
  | { type: 'tool_result'; tool_use_id: string; result: SessionToolResult; is_error: boolean; timestamp: number }
  | { type: 'error'; error: 'REQUEST_TIMEOUT' | 'INTERNAL_ERROR'; message: string; timestamp: number }
  | { type: 'done'; metadata: { agentId: string; timestamp: number; cancelled?: true } }
  /** Keeps an idle connection alive. */
  | { type: 'heartbeat'; message: 'processing'; count: number; timestamp: number }
