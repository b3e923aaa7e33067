// The id of a conversation that a client named. The name counts for its owner only, so it cannot
// be the id itself: the id is a unique part and the name (`~01J…~conv_123`). Inside the server the
// id is used; every wire shows the name. Conversations without a client's name show their id.

const namedForm = /^~[^~]+~(.+)$/s

/** `unique` is a fresh id, so that a name which is used again after a deletion gives another conversation. */
export function namedConversationId(unique: string, name: string): string {
  return `~${unique}~${name}`
}

/** What clients call the conversation: the name that one of them chose, else the id. */
export function shownConversationId(id: string): string {
  return namedForm.exec(id)?.[1] ?? id
}

/** The same for rows that may have no conversation. */
export function shownConversationIdOrNull(id: string | null): string | null {
  return id === null ? null : shownConversationId(id)
}
