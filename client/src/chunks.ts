// The wire of the chat API (`format=chunks`, and `chunks-ndjson` with one frame a line). Exactly one `done` or
// `error` comes, last. `ArmFrame` is a frame of a stream that shows the two runs of a comparison together.

import type { JsonValue } from './json.ts'

export type ChunksFrame =
  | {
      type: 'chunk'
      /** New text, to be appended; never the text so far. */
      content: string
      conversation_id: string | null
    }
  | { type: 'tool_start'; tool_call_id: string; tool_name: string; tool_args: JsonValue; timestamp: string }
  | { type: 'tool_output'; tool_call_id: string; output: string; truncated: boolean; full_length: number }
  | {
      type: 'tool_end'
      tool_call_id: string
      status: 'success' | 'error' | 'denied' | 'cancelled' | 'unknown'
      duration_ms: number
    }
  | {
      type: 'error'
      /** The HTTP status of the same error; 499 for a cancelled run. */
      status: number
      message: string
      code: string
    }
  | {
      type: 'done'
      conversation_id: string | null
      message_id: string | null
      /** The id of the run. */
      trace_id: string
    }

export type Arm = 'a' | 'b'

type ChunksEnd = Extract<ChunksFrame, { type: 'done' | 'error' }>

export type ArmFrame =
  | (Exclude<ChunksFrame, ChunksEnd> & { arm: Arm })
  | (ChunksEnd & {
      arm: Arm
      comparison_id: string
      vote_requested: boolean
      /** Why no vote is asked. */
      vote_note?: string
    })
