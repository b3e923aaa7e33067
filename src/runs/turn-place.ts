// Where a turn takes place: the conversation that the request names, or the new one that it starts, and
// under which names the client will find it again.

import { namedConversationId } from '../kit/conversation-id.ts'
import type { Ids } from '../kit/ids.ts'
import type { AcceptInput } from '../stores/run-store.ts'
import type { ConversationStore } from '../stores/conversation-store.ts'
import { conversationNotFound, lookUpConversation } from './conversation-names.ts'
import type { StartRequest } from './start-request.ts'

export type Place = {
  id: string
  exists: boolean
  /** The client sent no `conversationId`, and is told the one of the new conversation. */
  announce: boolean
  name: string | null
  /** A second name for it. */
  alias?: string
  /** The request named no conversation. */
  unnamed?: true
}

type PlaceParts = { store: Pick<ConversationStore, 'findConversationByName' | 'readConversation'>; ids: Ids }

export async function findPlace(request: StartRequest, { store, ids }: PlaceParts): Promise<Place> {
  const { owner, conversationId, sessionId, newConversationId } = request
  if (newConversationId !== undefined) return { id: newConversationId, exists: false, announce: false, name: null }
  const name = conversationId ?? sessionId
  if (name === undefined) return { id: ids(), exists: false, announce: true, name: null, unnamed: true }
  const found = await lookUpConversation(store, owner, name)
  if (found === 'foreign') throw conversationNotFound(name)
  const second = sessionId === undefined || sessionId === name ? undefined : sessionId
  // A second name that means another conversation already keeps that meaning.
  const isFree = second !== undefined && (await lookUpConversation(store, owner, second)) === 'free'
  const alias = isFree ? { alias: second } : {}
  if (found !== 'free') return { id: found.id, exists: true, announce: false, name: null, ...alias }
  const announce = conversationId === undefined
  return { id: namedConversationId(ids(), name), exists: false, announce, name, ...alias }
}

export function namesOf({ name, alias, unnamed }: Place): Pick<NonNullable<AcceptInput['conversation']>, 'name'> {
  return { name, ...(alias === undefined ? {} : { alias }), ...(unnamed === undefined ? {} : { unnamed }) }
}
