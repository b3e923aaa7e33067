// Finds the conversation of a run: the one that the request names, or a new one, together with
// the names under which the client can find the new conversation later.

import { namedConversationId } from '../kit/conversation-id.ts'
import { defined } from '../kit/defined.ts'
import type { Ids } from '../kit/ids.ts'
import type { AcceptInput } from '../stores/run-store.ts'
import type { ConversationStore } from '../stores/conversation-store.ts'
import { conversationNotFound, lookUpConversation } from './conversation-names.ts'
import type { StartRequest } from './start-request.ts'

export type RunConversation = {
  id: string
  exists: boolean
  /** The conversation is new and the client sent no `conversationId`, so the run announces the id to the client. */
  announce: boolean
  name: string | null
  /** A second name for the conversation. */
  alias?: string
  /** The request named no conversation. */
  unnamed?: true
}

type Dependencies = { store: Pick<ConversationStore, 'findConversationByName' | 'readConversation'>; ids: Ids }

export async function findRunConversation(
  request: StartRequest,
  { store, ids }: Dependencies,
): Promise<RunConversation> {
  const { owner, conversationId, sessionId, newConversationId } = request
  if (newConversationId !== undefined) return { id: newConversationId, exists: false, announce: false, name: null }
  const name = conversationId ?? sessionId
  if (name === undefined) return { id: ids(), exists: false, announce: true, name: null, unnamed: true }
  const found = await lookUpConversation(store, owner, name)
  if (found === 'foreign') throw conversationNotFound(name)
  const second = sessionId === undefined || sessionId === name ? undefined : sessionId
  // If the second name already belongs to a conversation, it is not moved to this one.
  const isFree = second !== undefined && (await lookUpConversation(store, owner, second)) === 'free'
  const alias = isFree ? { alias: second } : {}
  if (found !== 'free') return { id: found.id, exists: true, announce: false, name: null, ...alias }
  const announce = conversationId === undefined
  return { id: namedConversationId(ids(), name), exists: false, announce, name, ...alias }
}

export function namesOf({
  name,
  alias,
  unnamed,
}: RunConversation): Pick<NonNullable<AcceptInput['conversation']>, 'name'> {
  return defined({ name, alias, unnamed })
}
