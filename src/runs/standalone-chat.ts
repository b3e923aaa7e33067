// A chat without a conversation, for APIs whose clients keep the history themselves. The earlier
// messages are a blob of the run, so they are stored and removed together with it, and no list of
// conversations shows them. The messages of the run itself are only in its journal.

import { eventPages } from '../journal/event-pages.ts'
import type { EventData } from '../journal/event.ts'
import { applyEvent, newRunState, type RunState } from '../journal/run-state.ts'
import { defined } from '../kit/defined.ts'
import type { MessageRow, MessageStore } from '../stores/message-store.ts'
import type { RunRow, RunStore } from '../stores/run-store.ts'
import type { EarlierMessage } from './start-request.ts'
import { resultForModel } from '../journal/tool-outcome.ts'
import { earlierRow } from './run-input.ts'

/** Beyond this, the oldest turns are left out. No model can read as much. */
export const historyCharsMax = 4 * 1024 * 1024

/** How many rows of a conversation a transcript has. */
const conversationRowsMax = 400

type StandaloneChatStore = Pick<RunStore, 'readBlob' | 'readEvents'> & Pick<MessageStore, 'historyBefore'>

/** The body of the blob that `historyRef` names. */
export function historyText(history: readonly EarlierMessage[]): string {
  let chars = history.reduce((sum, message) => sum + JSON.stringify(message).length, 0)
  let from = 0
  while (chars > historyCharsMax && from < history.length) {
    do {
      chars -= JSON.stringify(history[from]).length
      from += 1
    } while (from < history.length && history[from]?.role !== 'user')
  }
  return JSON.stringify(history.slice(from))
}

/** The history as the rows that a prompt is built from. */
export async function standaloneHistory(
  runId: string,
  accepted: EventData<'run.accepted'> | undefined,
  store: Pick<RunStore, 'readBlob'>,
): Promise<MessageRow[]> {
  const messages = await earlierMessages(runId, accepted, store)
  let count = 0
  const ids = () => `earlier-${(count += 1)}`
  return messages.map((message) => earlierRow(message, '', 0, ids))
}

async function earlierMessages(
  runId: string,
  accepted: EventData<'run.accepted'> | undefined,
  store: Pick<RunStore, 'readBlob'>,
): Promise<EarlierMessage[]> {
  if (accepted?.historyRef === undefined) return []
  const blob = await store.readBlob(accepted.historyRef)
  // The journal of an imported run may name any blob.
  return blob?.runId === runId ? (JSON.parse(blob.body) as EarlierMessage[]) : []
}

/** What the run was given, its question, and what it answered, with its tool calls. Unfinished text is left out. */
export async function transcriptOf(run: Pick<RunRow, 'id'>, store: StandaloneChatStore): Promise<EarlierMessage[]> {
  const state = newRunState()
  for await (const { events } of eventPages(store, run.id)) for (const event of events) applyEvent(state, event)
  return [...(await messagesBefore(run, state.accepted, store)), ...answeredMessages(state)]
}

/** The earlier messages of a run, and its question. */
export async function inputMessagesOf(run: Pick<RunRow, 'id'>, store: StandaloneChatStore): Promise<EarlierMessage[]> {
  const [first] = (await store.readEvents(run.id, 0, 1)).events
  return await messagesBefore(run, first?.type === 'run.accepted' ? first.data : undefined, store)
}

async function messagesBefore(
  { id }: Pick<RunRow, 'id'>,
  accepted: EventData<'run.accepted'> | undefined,
  store: StandaloneChatStore,
): Promise<EarlierMessage[]> {
  if (accepted === undefined) return []
  const { conversationId, continuesHistory, input, parts } = accepted
  const before =
    conversationId === null
      ? await earlierMessages(id, accepted, store)
      : earlierFromRows(await store.historyBefore(conversationId, id, conversationRowsMax))
  return continuesHistory === true ? before : [...before, { role: 'user', content: input, ...defined({ parts }) }]
}

function answeredMessages({ steps, calls, rejectedOutputs }: RunState): EarlierMessage[] {
  return steps.flatMap((step): EarlierMessage[] => {
    if (!step.finished || rejectedOutputs.has(step.step)) return []
    const called = step.callIds.flatMap((callId) => calls.get(callId) ?? []).filter(({ done }) => done !== undefined)
    if (called.length === 0) return step.text === '' ? [] : [{ role: 'assistant', content: step.text }]
    return [
      {
        role: 'assistant',
        content: step.text,
        toolCalls: called.map(({ callId, name, input }) => ({ callId, name, input })),
      },
      ...called.map(({ callId, name, done }): EarlierMessage => ({
        role: 'tool',
        callId,
        name,
        content: done === undefined ? '' : resultForModel(done),
      })),
    ]
  })
}

function earlierFromRows(rows: readonly MessageRow[]): EarlierMessage[] {
  return rows.flatMap((row): EarlierMessage[] => {
    switch (row.role) {
      case 'user':
        return [{ role: 'user', content: row.content, ...defined({ parts: row.parts }) }]
      case 'assistant': {
        const { toolCalls } = row.metadata as { toolCalls?: EarlierToolCalls }
        return [{ role: 'assistant', content: row.content, ...(toolCalls === undefined ? {} : { toolCalls }) }]
      }
      case 'tool':
        return row.toolCallId === null
          ? []
          : [{ role: 'tool', callId: row.toolCallId, name: String(row.metadata.toolName ?? ''), content: row.content }]
      default:
        return []
    }
  })
}

type EarlierToolCalls = Extract<EarlierMessage, { role: 'assistant' }>['toolCalls'] & {}
