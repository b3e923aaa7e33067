// Conversations as threads of LangGraph: their messages, their state and their status.

import { langGraphDialect, type LangGraphState, openInterrupts } from '../../dialects/langgraph/langgraph.ts'
import {
  boundedMessages,
  humanMessage,
  type LangMessage,
  type LangToolCall,
  toolCallOf,
  toolMessage,
} from '../../dialects/langgraph/lang-message.ts'
import type { LangInterrupt } from '../../dialects/langgraph/interrupts.ts'
import { undecidedArm } from '../../dialects/undecided-arm.ts'
import type { JsonValue } from '../../journal/event.ts'
import { isoTime } from '../../kit/clock.ts'
import { shownConversationId } from '../../kit/conversation-id.ts'
import type { ConversationRow } from '../../stores/conversation-store.ts'
import type { MessageRow } from '../../stores/message-store.ts'
import type { RunRow } from '../../stores/run-store.ts'
import type { Services } from '../routes.ts'
import { foldStoredFrames } from '../stored-frames.ts'

type ThreadServices = Pick<Services, 'conversations' | 'runs' | 'journal' | 'comparisons'>

/** Of one thread; older ones are left out of its state. */
const rowsMax = 500

/** The newest messages of the thread that fit, oldest first. `before`: only those before this message. */
export async function threadMessages(
  { conversations }: Pick<Services, 'conversations'>,
  conversation: Pick<ConversationRow, 'id'>,
  before?: string,
): Promise<readonly LangMessage[]> {
  const { rows } = await conversations.messagesInAnyState(conversation, { limit: rowsMax, before })
  return boundedMessages(rows.flatMap(langMessageOf))
}

function langMessageOf(row: MessageRow): LangMessage[] {
  const { id, role, content, state, metadata, toolCallId } = row
  if (state !== 'active') return []
  if (role === 'user') return [humanMessage(id, content)]
  if (role === 'tool') {
    const name = typeof metadata['toolName'] === 'string' ? metadata['toolName'] : undefined
    const succeeded = metadata['outcome'] === undefined || metadata['outcome'] === 'succeeded'
    return toolCallId === null ? [] : [toolMessage(id, { callId: toolCallId, name }, content, succeeded)]
  }
  if (role !== 'assistant') return []
  const tool_calls = toolCallsIn(metadata['toolCalls'])
  return content === '' && tool_calls.length === 0 ? [] : [{ type: 'ai', id, content, tool_calls }]
}

function toolCallsIn(value: JsonValue | undefined): LangToolCall[] {
  if (!Array.isArray(value)) return []
  return value.flatMap((call) => {
    if (typeof call !== 'object' || call === null || Array.isArray(call)) return []
    const { callId, name, input } = call
    return typeof callId === 'string' && typeof name === 'string' ? [toolCallOf(callId, name, input)] : []
  })
}

/** The fold of a run's stored events, and the last of them. */
export async function readLangGraphRun(
  { journal, comparisons }: Pick<Services, 'journal' | 'comparisons'>,
  run: RunRow,
): Promise<{ state: LangGraphState; seq: number }> {
  const undecided = run.conversationId !== null && (await comparisons.isUndecided(run.id))
  const dialect = langGraphDialect({ modes: [] })
  let seq = 0
  const event = (stored: { seq: number }) => {
    seq = stored.seq
  }
  const { state } = await foldStoredFrames(journal, run.id, undecided ? undecidedArm(dialect) : dialect, { event })
  return { state, seq }
}

export type ThreadSummary = {
  status: 'idle' | 'busy' | 'interrupted' | 'error'
  newest: RunRow | undefined
  /** The run that waits for a person, with its questions. */
  waiting: { run: RunRow; state: LangGraphState; seq: number } | undefined
}

export async function threadSummary(
  services: ThreadServices,
  { id, owner }: Pick<ConversationRow, 'id' | 'owner'>,
): Promise<ThreadSummary> {
  const [newest] = (await services.runs.list({ owner, conversationId: id, limit: 1 })).rows
  const open = await services.conversations.openRuns({ id })
  const parked = open.findLast(({ status }) => status === 'waiting_user')
  if (parked !== undefined) {
    return { status: 'interrupted', newest, waiting: { run: parked, ...(await readLangGraphRun(services, parked)) } }
  }
  if (open.length > 0) return { status: 'busy', newest, waiting: undefined }
  return { status: newest?.status === 'failed' ? 'error' : 'idle', newest, waiting: undefined }
}

type ThreadView = Record<string, unknown>

export async function threadView(
  services: ThreadServices,
  row: ConversationRow,
  { withValues }: { withValues: boolean },
): Promise<ThreadView> {
  const { status, waiting, newest } = await threadSummary(services, row)
  const interrupts = waiting === undefined ? [] : openInterrupts(waiting.state)
  return {
    thread_id: shownConversationId(row.id),
    created_at: isoTime(row.createdAt),
    updated_at: isoTime(row.updatedAt),
    state_updated_at: isoTime(row.lastMessageAt ?? row.updatedAt),
    metadata: threadMetadata(row, newest),
    status,
    values: withValues ? { messages: await threadMessages(services, row) } : null,
    interrupts: waiting === undefined ? {} : { [waiting.run.id]: interrupts },
    config: {},
    error: status === 'error' ? (newest?.error ?? null) : null,
  }
}

function threadMetadata({ title, summary }: ConversationRow, newest: RunRow | undefined): Record<string, unknown> {
  return {
    ...(title === null ? {} : { title }),
    ...(summary === null ? {} : { summary }),
    ...(newest === undefined ? {} : { graph_id: newest.agentId, assistant_id: newest.agentId }),
  }
}

/** The id of the state as it is now: it changes with every message. */
export function checkpointIdOf(row: Pick<ConversationRow, 'id'>, messages: readonly LangMessage[]): string {
  return messages.at(-1)?.id ?? shownConversationId(row.id)
}

/** There is one state of a thread, the newest; LangGraph's checkpoints before it do not exist here. */
export async function stateView(services: ThreadServices, row: ConversationRow): Promise<Record<string, unknown>> {
  const messages = await threadMessages(services, row)
  const { waiting, newest, status } = await threadSummary(services, row)
  const interrupts: readonly LangInterrupt[] = waiting === undefined ? [] : openInterrupts(waiting.state)
  const error = status === 'error' ? newest?.error : undefined
  const task = { result: null, checkpoint: null, state: null }
  return {
    values: { messages, ...(interrupts.length === 0 ? {} : { __interrupt__: interrupts }) },
    next: waiting === undefined ? [] : ['tools'],
    tasks: [
      ...(waiting === undefined ? [] : [{ ...task, id: waiting.run.id, name: 'tools', error: null, interrupts }]),
      ...(error == null
        ? []
        : [
            {
              ...task,
              id: newest?.id,
              name: 'agent',
              error: JSON.stringify({ name: error.code, message: error.message }),
              interrupts: [],
            },
          ]),
    ],
    checkpoint: {
      thread_id: shownConversationId(row.id),
      checkpoint_ns: '',
      checkpoint_id: checkpointIdOf(row, messages),
      checkpoint_map: null,
    },
    metadata: threadMetadata(row, newest),
    created_at: isoTime(row.updatedAt),
    parent_checkpoint: null,
  }
}

const runStatuses: Readonly<Record<RunRow['status'], string>> = {
  queued: 'pending',
  running: 'running',
  waiting_user: 'interrupted',
  succeeded: 'success',
  failed: 'error',
  canceled: 'interrupted',
}

export function langGraphRun(run: RunRow): Record<string, unknown> {
  const timedOut = run.status === 'failed' && run.error?.code === 'run_timed_out'
  return {
    run_id: run.id,
    thread_id: run.conversationId === null ? run.id : shownConversationId(run.conversationId),
    assistant_id: run.agentId,
    created_at: isoTime(run.createdAt),
    updated_at: isoTime(run.endedAt ?? run.startedAt ?? run.createdAt),
    status: timedOut ? 'timeout' : runStatuses[run.status],
    metadata: {},
    kwargs: {},
    multitask_strategy: 'enqueue',
  }
}
