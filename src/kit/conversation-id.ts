// Ids of conversations that a client named. A name is unique only per owner, so it cannot be the
// id; the id consists of a unique part and the name (`~01J…~conv_123`). The server uses the id
// internally, and every wire shows the name. A conversation without a name shows its id.

export const namedForm = /^~[^~]+~(.+)$/s

/** `unique` must be a new id, so that a name that is reused after a deletion gives a different conversation. */
export function namedConversationId(unique: string, name: string): string {
  return `~${unique}~${name}`
}

/** The conversation id that clients see: the name that a client chose, or else the id. */
export function shownConversationId(id: string): string {
  return namedForm.exec(id)?.[1] ?? id
}

/** As `shownConversationId`, for rows that may have no conversation. */
export function shownConversationIdOrNull(id: string | null): string | null {
  return id === null ? null : shownConversationId(id)
}
