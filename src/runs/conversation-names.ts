// Finds the conversation that a client names. Names that clients choose are unique per owner; ids that
// the server generated are global. `conversationId` and `sessionId` share one namespace in all API families.

import { AppError } from '../errors/app-error.ts'
import type { ConversationRow, ConversationStore } from '../stores/conversation-store.ts'

type NameStore = Pick<ConversationStore, 'findConversationByName' | 'readConversation'>

/** `free`: the owner may create a conversation under this name. `foreign`: the server generated this id for another user. */
export async function lookUpConversation(
  store: NameStore,
  owner: string,
  name: string,
): Promise<ConversationRow | 'free' | 'foreign'> {
  const named = await store.findConversationByName(owner, name)
  if (named !== undefined) return named
  const byId = await store.readConversation(name)
  if (byId === undefined) return 'free'
  if (byId.owner === owner) return byId
  // Older versions used a client's name as the id. Such an id counts as a name of its owner, so other users may use it too.
  const nameOfOther = await store.findConversationByName(byId.owner, name)
  return nameOfOther?.id === byId.id ? 'free' : 'foreign'
}

/** Undefined if the owner has no conversation with this name or id. */
export async function findConversation(
  store: NameStore,
  owner: string,
  name: string,
): Promise<ConversationRow | undefined> {
  const found = await lookUpConversation(store, owner, name)
  return typeof found === 'string' ? undefined : found
}

/** Throws `conversation_not_found` if the owner has no conversation with this name or id. */
export async function ownConversation(store: NameStore, owner: string, name: string): Promise<ConversationRow> {
  const row = await findConversation(store, owner, name)
  if (row === undefined) throw conversationNotFound(name)
  return row
}

export function conversationNotFound(name: string): AppError {
  return new AppError('conversation_not_found', `There is no conversation ${JSON.stringify(name)}.`)
}
