// The wire of the chat API (`format=chunks`, and `chunks-ndjson` with one frame per line). The last frame is either
// `done` or `error`. `ArmFrame` is a frame of a stream that has both runs of a comparison.

import type { JsonValue } from './json.ts'

export type ChunksFrame =
  | {
      type: 'chunk'
      /** The new text alone; append it to the text before. */
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
      /** Why no vote is requested. */
      vote_note?: string
    })
