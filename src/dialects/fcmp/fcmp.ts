// The wire of jobs, FCMP/1.0. It folds the journal into envelopes that have their own seq:
// 1, 2, 3… over all attempts. The seq has no gaps, because the fold starts at the first
// event and only numbers envelopes that passed the schema check. README.md has the mapping.
//
// A reply is sent together with the state change that it causes, and a question directly
// after the state change that it causes. So messages that FCMP requires in pairs always
// come in pairs.

import type { EventData, EventOf, RunEvent, RunStatus } from '../../journal/event.ts'
import { isoTime } from '../../kit/clock.ts'
import { type Dialect, type Frame, pingTiming, type Projection, silent } from '../dialect.ts'
import { sseFrame, sseHeaders } from '../sse-encoding.ts'
import { type FcmpEnvelope, type FcmpType, type Violation, violationOf } from './envelope.ts'
import { pendingKind, policyOf } from './pending-kind.ts'
import { shownConversationIdOrNull } from '../../kit/conversation-id.ts'

export type FcmpOptions = {
  /** The `id` of a frame: its journal address, as in every other format, or FCMP's own `seq`. */
  ids?: 'journal' | 'fcmp'
  /** Called for each envelope that was dropped because it does not match the schema. */
  onViolation?: (violation: Violation & { runId: string; journalSeq: number; type: FcmpType }) => void
}

type Asked = { readonly data: EventData<'input.required'>; readonly at: number }
type Resolved = { readonly asked: Asked | undefined; readonly event: EventOf<'input.resolved'> }

export type FcmpState = {
  readonly runId: string
  readonly engine: string
  readonly sessionId: string
  readonly validated: boolean
  /** The seq of the last envelope. */
  readonly seq: number
  /** How many envelopes were dropped because they do not match the schema. */
  readonly violations: number
  readonly status: RunStatus
  readonly started: boolean
  /** Open interactions, by number. */
  readonly open: ReadonlyMap<number, Asked>
  /** The number of the interaction that the client was last asked about. */
  readonly shown: number | null
  /** Interactions that were resolved while the run waits; they are announced when it continues. */
  readonly resolved: readonly Resolved[]
}

/** An FCMP message before it gets its seq. */
type UnnumberedMessage = readonly [type: FcmpType, data: Record<string, unknown>]

export function fcmpDialect(options: FcmpOptions = {}): Dialect<FcmpState> {
  const ids = options.ids ?? 'journal'
  return {
    name: ids === 'journal' ? 'fcmp' : 'fcmp.own-ids',
    headers: sseHeaders,

    open: ({ runId }) => ({
      runId,
      engine: 'unknown',
      sessionId: runId,
      validated: false,
      seq: 0,
      violations: 0,
      status: 'queued',
      started: false,
      open: new Map(),
      shown: null,
      resolved: [],
    }),

    step(state, event) {
      switch (event.type) {
        case 'run.accepted':
          return silent(acceptedState(state, event.data))
        case 'run.prepared':
          return silent(event.data.skill?.outputSchema === undefined ? state : { ...state, validated: true })
        case 'run.state':
          return stateFrames(state, event, options)
        case 'message.done': {
          const { state: fate, role, messageId, text } = event.data
          if (fate !== 'active' || role !== 'assistant' || text.trim() === '') return silent(state)
          return emitMessages(state, event, options, [['assistant.message.final', { message_id: messageId, text }]])
        }
        case 'input.required': {
          const asked = { data: event.data, at: event.at }
          return silent({ ...state, open: new Map(state.open).set(event.data.number, asked) })
        }
        case 'input.resolved':
          return resolvedFrames(state, event, options)
        case 'tool.done':
          return emitMessages(state, event, options, toolWarnings(event.data))
        case 'diagnostic':
          return emitMessages(state, event, options, [
            ['diagnostic.warning', { code: event.data.code.toUpperCase(), detail: event.data.message }],
          ])
        case 'output.rejected':
          return emitMessages(state, event, options, [
            [
              'diagnostic.warning',
              { code: 'OUTPUT_INVALID', detail: event.data.errors.join('; '), message_id: event.data.messageId },
            ],
          ])
        case 'context.cut':
          return emitMessages(state, event, options, [
            [
              'diagnostic.warning',
              { code: 'CONTEXT_CUT', detail: `The model is no longer given ${messagesIn(event.data)}.` },
            ],
          ])
        case 'context.summarised':
          return emitMessages(state, event, options, [
            [
              'diagnostic.warning',
              { code: 'CONTEXT_SUMMARISED', detail: `A summary replaces ${messagesIn(event.data)}.` },
            ],
          ])
        case 'run.ended':
          return emitMessages(state, event, options, [endMessage(state, event.data)])

        // No message on this wire. Listed without a default, so that a new event type is a compile error here.
        case 'text.delta':
        case 'reasoning.delta':
        case 'source.found':
        case 'step.started':
        case 'step.done':
        case 'answer.discarded':
        case 'tool.called':
        case 'tool.started':
        case 'tool.progress':
        case 'context.patch':
        case 'engine.handle':
          return silent(state)
      }
    },

    encode(frame, address) {
      const id = ids === 'journal' ? address : String((frame.data as FcmpEnvelope).seq)
      return sseFrame(id, 'chat_event', JSON.stringify(frame.data))
    },

    encodeDelta: () => null,

    keepAlive: (nowMs) => sseFrame(null, 'heartbeat', JSON.stringify({ ts: isoTime(nowMs) })),
    keepAliveTiming: ids === 'journal' ? pingTiming : { interval: 'fcmpHeartbeatMs', whenIdle: true },

    atDecision: 'holds',
  }
}

/** The first frame of a stream. It belongs to the connection, so it has no id and is not in the history. */
export function snapshotFrame(status: RunStatus, cursor: number, pendingInteractionId: number | undefined): string {
  const pending = pendingInteractionId === undefined ? {} : { pending_interaction_id: pendingInteractionId }
  return sseFrame(null, 'snapshot', JSON.stringify({ status, cursor, ...pending }))
}

function acceptedState(state: FcmpState, data: EventData<'run.accepted'>): FcmpState {
  return {
    ...state,
    engine: data.spec.engine,
    sessionId: data.sessionId ?? shownConversationIdOrNull(data.conversationId) ?? state.runId,
    validated: data.spec.skill?.outputSchema !== undefined,
  }
}

/** Validates and numbers messages. A message that does not match the schema is dropped and gets no seq. */
function emitMessages(
  state: FcmpState,
  event: RunEvent,
  options: FcmpOptions,
  messages: readonly UnnumberedMessage[],
): Projection<FcmpState> {
  if (messages.length === 0) return silent(state)
  let { seq, violations } = state
  const frames: Frame[] = []
  for (const [type, data] of messages) {
    const envelope: FcmpEnvelope = {
      protocol_version: 'fcmp/1.0',
      run_id: state.runId,
      seq: seq + 1,
      ts: isoTime(event.at),
      engine: state.engine,
      type,
      data,
      meta: { attempt: event.attempt },
    }
    const violation = violationOf(envelope)
    if (violation === null) {
      seq += 1
      frames.push({ name: type, data: envelope })
    } else {
      violations += 1
      options.onViolation?.({ ...violation, runId: state.runId, journalSeq: event.seq, type })
    }
  }
  return { state: { ...state, seq, violations }, frames }
}

function stateFrames(state: FcmpState, event: EventOf<'run.state'>, options: FcmpOptions): Projection<FcmpState> {
  const { from, to, trigger } = event.data
  const change = { from, to, trigger, updated_at: isoTime(event.at) }
  const next: FcmpState = { ...state, status: to, shown: null, resolved: [] }
  if (to === 'waiting_user') {
    const lowest = lowestOpen(state)
    const pending = { ...change, pending_interaction_id: lowest?.data.number ?? null }
    return emitMessages({ ...next, shown: lowest?.data.number ?? null }, event, options, [
      ['conversation.state.changed', pending],
      questionMessage(lowest),
    ])
  }
  const messages: UnnumberedMessage[] = from === 'waiting_user' && to === 'queued' ? replyMessages(state, trigger) : []
  messages.push(['conversation.state.changed', change])
  if (to === 'running' && !state.started) {
    messages.push(['conversation.started', { session_id: state.sessionId }])
    return emitMessages({ ...next, started: true }, event, options, messages)
  }
  return emitMessages(next, event, options, messages)
}

function lowestOpen(state: FcmpState): Asked | undefined {
  let lowest: Asked | undefined
  for (const asked of state.open.values())
    if (lowest === undefined || asked.data.number < lowest.data.number) lowest = asked
  return lowest
}

/** If the row with the question is unreadable, the client is still told that the run waits. */
function questionMessage(asked: Asked | undefined): UnnumberedMessage {
  if (asked === undefined)
    return [
      'user.input.required',
      { kind: 'open_text', prompt: 'The run waits for an answer; its question can no longer be read.' },
    ]
  const { number, prompt } = asked.data
  const text = prompt.trim() === '' ? 'An answer is needed to go on.' : prompt
  return ['user.input.required', { interaction_id: number, kind: pendingKind(asked.data), prompt: text }]
}

function resolvedFrames(
  state: FcmpState,
  event: EventOf<'input.resolved'>,
  options: FcmpOptions,
): Projection<FcmpState> {
  const { number, resolution } = event.data
  const asked = state.open.get(number)
  const open = new Map(state.open)
  open.delete(number)
  // Skipped: the question was resolved before the run parked, or closed when the run ended. This wire never announced it.
  if (state.status !== 'waiting_user' || resolution === 'closed') return silent({ ...state, open })
  const next: FcmpState = { ...state, open, resolved: [...state.resolved, { asked, event }] }
  const lowest = lowestOpen(next)
  if (lowest === undefined || lowest.data.number === state.shown) return silent(next)
  return emitMessages({ ...next, shown: lowest.data.number }, event, options, [questionMessage(lowest)])
}

function replyMessages(state: FcmpState, trigger: string): UnnumberedMessage[] {
  return state.resolved.map(({ asked, event }) => {
    const { number, resolution } = event.data
    const timedOut = resolution === 'expired' || resolution === 'auto_decided'
    const type = timedOut ? 'interaction.auto_decide.timeout' : 'interaction.reply.accepted'
    const common = {
      interaction_id: number,
      resolution_mode: timedOut ? 'auto_decide_timeout' : 'user_reply',
      accepted_at: isoTime(event.at),
    }
    // A run continues for exactly one trigger, and only that trigger has a paired message. If some questions were
    // answered and others timed out, the rest become warnings.
    if (type !== trigger) return ['diagnostic.warning', { code: 'INTERACTION_RESOLVED', ...common }]
    if (!timedOut) return [type, common]
    const waitedMs = asked?.data.deadlineAt === undefined ? undefined : asked.data.deadlineAt - asked.at
    const policy = resolution === 'expired' ? policyOf('expire') : policyOf('auto_decide')
    const timeout = waitedMs === undefined ? {} : { timeout_sec: Math.max(1, Math.round(waitedMs / 1000)) }
    return [type, { ...common, policy, ...timeout }]
  })
}

/** Only real failures become warnings: a denial is a decision, and a cancelled call is covered by the run's ending. */
function toolWarnings({ callId, outcome, error, summary }: EventData<'tool.done'>): UnnumberedMessage[] {
  if (outcome !== 'failed' && outcome !== 'threw' && outcome !== 'unknown') return []
  const code = (error?.code ?? 'tool_failed').toUpperCase()
  return [['diagnostic.warning', { code, detail: error?.message ?? summary, tool_call_id: callId }]]
}

function messagesIn({ messages, tokens }: { messages: number; tokens: number }): string {
  return `${messages} older ${messages === 1 ? 'message' : 'messages'} (about ${tokens} tokens)`
}

function endMessage(state: FcmpState, { status, error }: EventData<'run.ended'>): UnnumberedMessage {
  if (status === 'succeeded') {
    const reason = state.validated ? 'OUTPUT_VALIDATED' : 'DONE_SIGNAL_FOUND'
    return ['conversation.completed', { state: 'completed', reason_code: reason }]
  }
  const code = status === 'canceled' ? 'CANCELED' : fcmpErrorCode(error?.code)
  return ['conversation.failed', { error: { category: 'runtime', code } }]
}

/** FCMP writes error codes in upper case and calls a run timeout `TIMEOUT`. */
export function fcmpErrorCode(code: string | undefined): string {
  if (code === 'run_timed_out') return 'TIMEOUT'
  return code === undefined || code === '' ? 'FAILED' : code.toUpperCase()
}
