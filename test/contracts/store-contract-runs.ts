// Contract: runs and their journals. Their rows in other parts (messages, interactions,
// conversations) are written by the same commands, so the suites read those too.

import type { ConversationStore } from '../../src/stores/conversation-store.ts'
import type { InteractionStore } from '../../src/stores/interaction-store.ts'
import type { MessageStore } from '../../src/stores/message-store.ts'
import type { NodeStore } from '../../src/stores/node-store.ts'
import type { RunStore } from '../../src/stores/run-store.ts'
import type { OpenStore } from './open-store.ts'
import { acceptContract } from './store-contract-accept.ts'
import { claimContract } from './store-contract-claim.ts'
import { jobContract } from './store-contract-jobs.ts'
import { journalContract } from './store-contract-journal.ts'
import { slotContract } from './store-contract-slots.ts'
import { turnContract } from './store-contract-turns.ts'
import { upkeepContract } from './store-contract-upkeep.ts'

export function runContract(
  open: OpenStore<RunStore & ConversationStore & MessageStore & InteractionStore & NodeStore>,
): void {
  journalContract(open)
  upkeepContract(open)
  acceptContract(open)
  claimContract(open)
  slotContract(open)
  turnContract(open)
  jobContract(open)
}
