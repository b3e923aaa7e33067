// What every store promises, as tests; src/stores/store.ts says it in words. Each
// test opens an empty store of its own. A store that cannot offer a hook leaves it
// out, and the tests that need it say that they were skipped and why.

import { describe } from 'node:test'
import type { Store } from '../../src/stores/store.ts'
import { acceptContract } from './store-contract-accept.ts'
import { claimContract } from './store-contract-claim.ts'
import { comparisonContract } from './store-contract-comparisons.ts'
import { conversationContract } from './store-contract-conversations.ts'
import { interactionContract } from './store-contract-interactions.ts'
import { jobContract } from './store-contract-jobs.ts'
import { journalContract } from './store-contract-journal.ts'
import { turnContract } from './store-contract-turns.ts'
import { upkeepContract } from './store-contract-upkeep.ts'
import { workspaceContract } from './store-contract-workspace.ts'

export type OpenedStore = {
  store: Store
  /** Closes the store and opens what it left behind; `store` is not used after that. */
  reopen(): Promise<Store>
  /** Replaces the stored line of one event by `line`, behind the back of the closed store; then as `reopen`. */
  corrupt?(runId: string, seq: number, line: string): Promise<Store>
  cleanup(): Promise<void>
}

export type OpenStore = () => Promise<OpenedStore>

export function storeContract(name: string, open: OpenStore): void {
  describe(`the store contract on ${name}`, () => {
    journalContract(open)
    upkeepContract(open)
    acceptContract(open)
    claimContract(open)
    interactionContract(open)
    jobContract(open)
    conversationContract(open)
    turnContract(open)
    comparisonContract(open)
    workspaceContract(open)
  })
}
