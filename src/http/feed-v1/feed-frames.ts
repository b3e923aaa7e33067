// Changes of a user's feed → frames of GET /v1/feed. Each frame has the whole state of one
// thing, in the JSON of the /v1 routes (of /api/ab for comparisons), so a client replaces what
// it had.

import { sseFrame } from '../../dialects/sse-encoding.ts'
import type { FeedChange } from '../../feed/feed-service.ts'
import { shownConversationId } from '../../kit/conversation-id.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { toComparison } from '../chat-api/ab-views.ts'
import type { Services } from '../routes.ts'
import { toConversation, toRun } from '../views.ts'
import { toInteractionView } from './interaction-view.ts'

type FrameServices = Pick<Services, 'comparisons' | 'feed'>

export async function encodeChanges(changes: readonly FeedChange[], services: FrameServices): Promise<string> {
  let text = ''
  for (const change of changes) {
    const frame = await frameOf(change, services)
    if (frame !== null) text += sseFrame(change.cursor, null, JSON.stringify(frame))
  }
  return text
}

/** Null if there is nothing to tell: the thing is gone together with what it belonged to. */
async function frameOf(change: FeedChange, services: FrameServices): Promise<Record<string, unknown> | null> {
  switch (change.kind) {
    case 'conversation':
      return change.row === null
        ? { type: 'conversation.deleted', conversationId: shownConversationId(change.id) }
        : { type: 'conversation.changed', conversation: toConversation(change.row) }
    case 'run':
      return change.row === null
        ? { type: 'run.deleted', runId: change.id }
        : { type: 'run.changed', run: await runOf(change.row, services) }
    case 'interaction': {
      if (change.row === null) return null
      const type = change.row.status === 'pending' ? 'interaction.opened' : 'interaction.decided'
      return { type, interaction: toInteractionView(change.row) }
    }
    case 'comparison': {
      if (change.row === null) return null
      const type = change.row.preference === null ? 'comparison.opened' : 'comparison.voted'
      return { type, comparison: toComparison(change.row) }
    }
  }
}

async function runOf(row: RunRow, { comparisons, feed }: FrameServices): Promise<Record<string, unknown>> {
  // Only runs in a conversation can be part of a comparison.
  const undecided = row.conversationId !== null && (await comparisons.isUndecided(row.id))
  const waiting = await feed.waitingFor(row)
  return {
    ...toRun(row, undecided),
    family: row.family,
    skillId: row.skillId,
    waitingFor: waiting.map(({ id, kind, toolName }) => ({ interactionId: id, kind, toolName })),
  }
}
