// The wire of jobs, FCMP/1.0. A stream starts with `snapshot`. Then each `chat_event` has one envelope, numbered
// 1, 2, 3… over the whole run, and a `heartbeat` is sent while there are no events.

import type { RunStatus } from './journal.ts'

/** The `data` of each envelope, by its `type`. Further types are reserved: ignore those that you do not know. */
export type FcmpData = {
  'conversation.started': { session_id: string }
  'conversation.state.changed': {
    from: RunStatus
    to: RunStatus
    trigger: string
    updated_at: string | null
    pending_interaction_id?: number | null
  }
  'assistant.message.final': { message_id: string; text: string }
  'user.input.required': {
    kind: 'choose_one' | 'confirm' | 'fill_fields' | 'open_text' | 'risk_ack'
    prompt: string
    interaction_id?: number | null
  }
  'interaction.reply.accepted': {
    interaction_id: number | null
    resolution_mode: 'user_reply'
    accepted_at: string | null
  }
  'interaction.auto_decide.timeout': {
    interaction_id: number | null
    resolution_mode: 'auto_decide_timeout'
    accepted_at: string | null
    policy: string
    timeout_sec?: number
  }
  'conversation.completed': { state: string; reason_code: string }
  'conversation.failed': { error: { category: string; code: string } }
  /** May have further fields. */
  'diagnostic.warning': { code: string; detail?: string; [field: string]: unknown }
}

export type FcmpType = keyof FcmpData

export type FcmpEnvelope = {
  [Type in FcmpType]: {
    protocol_version: 'fcmp/1.0'
    run_id: string
    seq: number
    ts: string
    engine: string
    type: Type
    data: FcmpData[Type]
    meta: { attempt: number }
  }
}[FcmpType]

/** An SSE message: `event` is its name, `data` its parsed `data` line. */
export type FcmpFrame =
  | { event: 'snapshot'; data: { status: RunStatus; cursor: number; pending_interaction_id?: number } }
  | { event: 'chat_event'; data: FcmpEnvelope }
  | { event: 'heartbeat'; data: { ts: string } }
