// The key of the gateway session that belongs to a conversation. The gateway folds upper and
// lower case and gives some prefixes a meaning, so an id with other characters is completed by
// a hash: two conversations must never share a session.

import { createHash } from 'node:crypto'

const plain = /^[a-z0-9-]{1,100}$/

export function sessionKeyOf(conversationId: string | null, runId: string): string {
  return conversationId === null ? `run:${plainId(runId)}` : `conv:${plainId(conversationId)}`
}

function plainId(id: string): string {
  if (plain.test(id)) return id
  const hash = createHash('sha256').update(id).digest('hex').slice(0, 32)
  const readable = id
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 60)
  return `${readable}-${hash}`
}
