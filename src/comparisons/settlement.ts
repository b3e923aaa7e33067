// Computes the state of a comparison from the rows of its two runs and their messages, and
// stores it once both runs have ended. The end of a run, a read of the comparison, or the
// next server start triggers this, whichever comes first.

import type { ComparisonRow, ComparisonStore } from '../stores/comparison-store.ts'
import type { MessageRow, MessageStore } from '../stores/message-store.ts'
import type { RunStore } from '../stores/run-store.ts'
import {
  type ArmMessages,
  type ArmStatus,
  messageStates,
  type Side,
  sideWithoutVote,
  standsInHistory,
  stateOf,
} from './comparison.ts'

type SettlementStore = ComparisonStore & MessageStore & RunStore

/** An upper bound that no answer reaches. */
const armRowsMax = 10_000

export class Settlement {
  private readonly store: SettlementStore

  constructor(store: SettlementStore) {
    this.store = store
  }

  /** Returns the row with its current state; stores that state if both runs have ended. */
  async settled(row: ComparisonRow): Promise<ComparisonRow> {
    if (row.state !== 'pending') return row
    const [statusA, statusB] = [await this.statusOf(row.runA), await this.statusOf(row.runB)]
    const state = stateOf(statusA, statusB)
    if (state === 'pending') return row
    await this.store.settleComparison(row.id, {
      state,
      messageA: row.messageA ?? (statusA === 'succeeded' ? await this.answerOf(row.runA) : null),
      messageB: row.messageB ?? (statusB === 'succeeded' ? await this.answerOf(row.runB) : null),
      messageStates: messageStates(await this.armMessages(row), sideWithoutVote(statusA, statusB)),
    })
    return (await this.store.readComparison(row.id)) ?? row
  }

  /** An answer without a run was provided by a client, so it counts as succeeded. */
  async statusOf(runId: string | null): Promise<ArmStatus> {
    if (runId === null) return 'succeeded'
    return (await this.store.readRun(runId))?.status ?? 'gone'
  }

  /** The message changes that make `side` the answer in the history. */
  async historyOf(row: ComparisonRow, side: Side): Promise<ReturnType<typeof messageStates>> {
    const arms = await this.armMessages(row)
    return standsInHistory(arms) ? messageStates(arms, side) : []
  }

  /** The message that a run ended with. */
  private async answerOf(runId: string | null): Promise<string | null> {
    const run = runId === null ? undefined : await this.store.readRun(runId)
    if (run === undefined) return null
    const page = await this.store.readEvents(run.id, run.lastSeq - 1, 1)
    const last = page.events.at(-1)
    return last?.type === 'run.ended' ? (last.data.messageId ?? null) : null
  }

  private async armMessages(row: ComparisonRow): Promise<ArmMessages> {
    const of = async (runId: string | null, messageId: string | null): Promise<MessageRow[]> => {
      if (runId !== null) return await this.store.allMessages(row.conversationId, { runId, limit: armRowsMax })
      const message = messageId === null ? undefined : await this.store.readMessage(messageId)
      return message === undefined ? [] : [message]
    }
    return { a: await of(row.runA, row.messageA), b: await of(row.runB, row.messageB) }
  }
}
