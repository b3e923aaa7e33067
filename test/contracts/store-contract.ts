// What every store promises, as tests; src/stores/store.ts and its parts say it in
// words. One suite for each part. Each test opens an empty store of its own. A store that
// cannot offer a hook leaves it out, and the tests that need it are skipped and say why.

import { describe } from 'node:test'
import type { OpenStore } from './open-store.ts'
import { archiveContract } from './store-contract-archives.ts'
import { comparisonContract } from './store-contract-comparisons.ts'
import { contactActivityContract } from './store-contract-contact-activity.ts'
import { contactContract } from './store-contract-contacts.ts'
import { conversationContract } from './store-contract-conversations.ts'
import { feedbackContract } from './store-contract-feedback.ts'
import { feedContract } from './store-contract-feed.ts'
import { fileContract } from './store-contract-files.ts'
import { importContract } from './store-contract-import.ts'
import { interactionContract } from './store-contract-interactions.ts'
import { lifetimeContract } from './store-contract-lifetime.ts'
import { keyContract } from './store-contract-keys.ts'
import { messageContract } from './store-contract-messages.ts'
import { nodeContract } from './store-contract-nodes.ts'
import { noteContract } from './store-contract-notes.ts'
import { rateContract } from './store-contract-rates.ts'
import { retentionContract } from './store-contract-retention.ts'
import { queuedContract } from './store-contract-queued.ts'
import { runContract } from './store-contract-runs.ts'
import { snapshotContract } from './store-contract-snapshots.ts'
import { usageContract } from './store-contract-usage.ts'
import { workspaceContract } from './store-contract-workspace.ts'

export function storeContract(name: string, open: OpenStore): void {
  describe(`the store contract on ${name}`, () => {
    runContract(open)
    conversationContract(open)
    messageContract(open)
    interactionContract(open)
    feedbackContract(open)
    comparisonContract(open)
    workspaceContract(open)
    noteContract(open)
    nodeContract(open)
    keyContract(open)
    importContract(open)
    fileContract(open)
    snapshotContract(open)
    usageContract(open)
    contactContract(open)
    contactActivityContract(open)
    archiveContract(open)
    feedContract(open)
    rateContract(open)
    retentionContract(open)
    queuedContract(open)
    lifetimeContract(open)
  })
}
