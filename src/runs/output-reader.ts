// Finds the whole text of an earlier tool output for the model that was shown only a part of it. The
// output must belong to the same run, or to a run of the same conversation and user.

import { eventPages } from '../journal/event-pages.ts'
import type { MessageStore } from '../stores/message-store.ts'
import type { RunStore } from '../stores/run-store.ts'
import type { ToolOutputs } from '../tools/tool.ts'
import { providerStateBlob } from './provider-states.ts'
import { resultForModel } from '../journal/tool-outcome.ts'

type OutputStore = Pick<RunStore, 'readBlob' | 'readRun' | 'readEvents'> & Pick<MessageStore, 'readMessage'>
type Reader = Parameters<ToolOutputs['read']>[1]

/** The id of an output is that of its blob, or that of the message with the result of the call. */
export function toolOutputsOf(store: OutputStore): ToolOutputs {
  return {
    read: async (outputId, reader) =>
      (await blobText(store, outputId, reader)) ??
      (await messageText(store, outputId, reader)) ??
      (await journalText(store, outputId, reader)),
  }
}

async function blobText(store: OutputStore, id: string, reader: Reader): Promise<string | undefined> {
  // What a provider needs back with a step is a blob too, and no model may read it as text.
  if (id.startsWith(providerStateBlob)) return undefined
  const blob = await store.readBlob(id)
  if (blob === undefined) return undefined
  if (blob.runId === reader.runId) return blob.body
  const run = await store.readRun(blob.runId)
  const shared = reader.conversationId !== null && run?.conversationId === reader.conversationId
  return shared && run?.owner === reader.owner ? blob.body : undefined
}

async function messageText(store: OutputStore, id: string, reader: Reader): Promise<string | undefined> {
  const row = await store.readMessage(id)
  if (row?.role !== 'tool' || row.conversationId !== reader.conversationId) return undefined
  const { outputRef } = row.metadata
  return typeof outputRef === 'string' ? await blobText(store, outputRef, reader) : row.content
}

/** A run without a conversation has its results only in its journal. */
async function journalText(store: OutputStore, id: string, reader: Reader): Promise<string | undefined> {
  if (reader.conversationId !== null) return undefined
  for await (const { events } of eventPages(store, reader.runId)) {
    const done = events.find((event) => event.type === 'tool.done' && event.data.messageId === id)
    if (done?.type !== 'tool.done') continue
    const { outputRef } = done.data
    return outputRef === undefined ? resultForModel(done.data) : await blobText(store, outputRef, reader)
  }
  return undefined
}
