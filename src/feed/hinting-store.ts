// The store, with a hint after each commit that changes the feed of a user. The store itself
// writes the feed; this only says whose. Appends of deltas, which are nearly all, pass through
// untouched.

import { AppError } from '../errors/app-error.ts'
import type { RunRow, RunWrite } from '../stores/run-store.ts'
import type { Store } from '../stores/store.ts'

/** More than a node executes at once. */
const ownersMax = 20_000

export function withFeedHints(store: Store, changed: (owner: string) => void): Store {
  /** The owners of the runs that this process works on, because an append names only the run. */
  const owners = new Map<string, string>()

  /** Hints at the owner of a row that a write returned, if there is one. */
  function hinted<Row extends { owner: string } | undefined>(row: Row): Row {
    if (row !== undefined) changed(row.owner)
    return row
  }

  function taken(run: RunRow): RunRow {
    // Runs that another node took over are never forgotten one by one. An owner that is missing here is read from the store.
    if (owners.size >= ownersMax) owners.clear()
    if (run.leaseOwner !== null) owners.set(run.id, run.owner)
    return run
  }

  async function ownerOf(runId: string): Promise<string | undefined> {
    return owners.get(runId) ?? (await store.readRun(runId))?.owner
  }

  async function hintedAppend(write: RunWrite): Promise<void> {
    const { runId, run } = write
    try {
      await store.append(write)
    } catch (error) {
      if (error instanceof AppError && error.code === 'run_fenced') owners.delete(runId)
      throw error
    }
    const owner = await ownerOf(runId)
    if (owner !== undefined) changed(owner)
    if (run?.release === true || run?.endedAt !== undefined) owners.delete(runId)
  }

  return {
    ...store,
    append: (write) => (changesFeed(write) ? hintedAppend(write) : store.append(write)),
    async accept(input) {
      const result = await store.accept(input)
      hinted(taken(result.run))
      return result
    },
    async acceptAll(inputs, extraRows) {
      const results = await store.acceptAll(inputs, extraRows)
      for (const { run } of results) hinted(taken(run))
      return results
    },
    async importRun(input, ending) {
      await store.importRun(input, ending)
      changed(input.run.owner)
    },
    changeQueued: async (change) => hinted(await store.changeQueued(change)),
    startHeld: async (start) => hinted(taken(await store.startHeld(start))),
    async claim(request) {
      const rows = await store.claim(request)
      for (const row of rows) taken(row)
      return rows
    },
    requestCancel: async (runId, cancel) => hinted(await store.requestCancel(runId, cancel)),
    async removeRun(runId) {
      const run = await store.readRun(runId)
      const removed = await store.removeRun(runId)
      if (removed) hinted(run)
      return removed
    },
    async removeEndedRuns(request) {
      const result = await store.removeEndedRuns(request)
      changed(request.owner)
      return result
    },
    async createConversation(row) {
      await store.createConversation(row)
      changed(row.owner)
    },
    updateConversation: async (id, changes, at) => hinted(await store.updateConversation(id, changes, at)),
    async deleteConversation(id) {
      const conversation = await store.readConversation(id)
      const deleted = await store.deleteConversation(id)
      if (deleted) hinted(conversation)
      return deleted
    },
    applyArchive: async (archive) => hinted(await store.applyArchive(archive)),
    async decide(id, decision) {
      const result = await store.decide(id, decision)
      if (result?.decided === true) changed(result.row.owner)
      return result
    },
    createComparison: async (row, messageStates) => hinted(await store.createComparison(row, messageStates)),
    async settleComparison(id, outcome) {
      const settled = await store.settleComparison(id, outcome)
      if (settled) hinted(await store.readComparison(id))
      return settled
    },
    async voteComparison(id, vote) {
      const result = await store.voteComparison(id, vote)
      if (result?.voted === true) changed(result.row.owner)
      return result
    },
  }
}

function changesFeed({
  run,
  newInteractions,
  interactionUpdates,
  touchConversationAt,
  describeConversation,
}: RunWrite) {
  return (
    run?.status !== undefined ||
    run?.attempt !== undefined ||
    newInteractions !== undefined ||
    interactionUpdates !== undefined ||
    touchConversationAt !== undefined ||
    describeConversation !== undefined
  )
}
