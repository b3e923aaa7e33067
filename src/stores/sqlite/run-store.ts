// Runs and their journals on the main thread: encodes events, sends commands to the
// writer thread, and reads. The writer thread must not import this file, because the event
// schemas would cost that thread 50 ms and 10 MB; its half is in run-commands.ts.

import { AppError } from '../../errors/app-error.ts'
import type { RunEvent } from '../../journal/event.ts'
import { encodeEvent } from '../../journal/event-codec.ts'
import type { Clock } from '../../kit/clock.ts'
import { defined } from '../../kit/defined.ts'
import type { AcceptInput, LeaseRequest, RunRow, RunStore, RunWrite } from '../run-store.ts'
import type { EncodedEvents, Lease } from './commands.ts'
import type { CommitQueue } from './commit-queue.ts'
import { ownerTopic } from './hot-commands.ts'
import { journalReader } from './journal-reader.ts'
import type { JournalTails } from './journal-tails.ts'
import { isIdle } from './known-facts.ts'
import type { PartAccess } from './part-access.ts'
import type { TailRow } from './pending-command.ts'
import { runReader } from './run-rows.ts'

/** Leases use the monotonic clock, so that a change of the wall clock cannot expire them; deadlines use the wall clock. */
export type StoreClock = Pick<Clock, 'now' | 'monotonic'>

export function runStore(
  { db, read, readCommitted, learn, write }: PartAccess,
  queue: CommitQueue,
  tails: JournalTails,
  clock: StoreClock,
): RunStore {
  const runs = runReader(db)
  const journal = journalReader(db, tails, (tailId) => queue.loggedBody(tailId))
  const conversationOwner = db.prepare('SELECT owner FROM conversations WHERE id = ?')

  /** The row with the current `lastSeq`: deltas do not update the row, but this thread knows their seqs. */
  function current(run: RunRow): RunRow {
    const lastSeq = tails.lastSeq(run.id)
    return lastSeq > run.lastSeq ? { ...run, lastSeq } : run
  }

  /** Allocates the tail row for these events; undefined if there are none. Throws if they are not numbered from `afterSeq + 1`. */
  function tailRowFor(runId: string, afterSeq: number, events: RunEvent[]): TailRow | undefined {
    if (events.length === 0) return undefined
    checkNumbers(runId, afterSeq, events)
    return { runId, id: queue.tailId(), firstSeq: afterSeq + 1, lastSeq: afterSeq + events.length }
  }

  function leaseOf({ node, leaseMs, slots }: LeaseRequest): Lease {
    const leaseNow = clock.monotonic()
    return { node, leaseUntil: Math.ceil(leaseNow) + leaseMs, leaseNow, ...defined({ slots }) }
  }

  function acceptCommand({ events, claim, start, ...input }: AcceptInput) {
    const tailRow = tailRowFor(input.run.id, 0, events)
    const attempt = events.at(-1)?.attempt ?? 1
    const journal = journalPart(tailRow, events)
    return {
      tailRow,
      command: {
        ...input,
        claim: claim && leaseOf(claim),
        attempt,
        journal,
        ...(start === undefined ? {} : { start: startPart(input.run.id, start, events) }),
      },
    }
  }

  function startPart(runId: string, { events, at, engine }: NonNullable<AcceptInput['start']>, first: RunEvent[]) {
    checkNumbers(runId, first.length, events)
    return { at, engine, lastSeq: first.length + events.length, body: bodyOf(events) }
  }

  function appendDelta({ runId, afterSeq, epoch, events, durable }: RunWrite): Promise<void> {
    try {
      const tailRow = tailRowFor(runId, afterSeq, events) as TailRow
      return queue.appendDelta(tailRow, epoch, bodyOf(events), durable)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async function appendRows({ events, durable, ...rest }: RunWrite): Promise<void> {
    const tailRow = tailRowFor(rest.runId, rest.afterSeq, events)
    await queue.run('append', { ...rest, journal: journalPart(tailRow, events) }, durable, tailRow)
  }

  return {
    async accept(input) {
      const { command, tailRow } = acceptCommand(input)
      return queue.run('accept', command, true, tailRow)
    },
    async acceptAll(inputs, extraRows = {}) {
      const parts = inputs.map(acceptCommand)
      const commands = { inputs: parts.map((part) => part.command), extraRows }
      return queue.run('acceptAll', commands, true, ...parts.map((part) => part.tailRow))
    },
    async importRun(given, ending) {
      const { command, tailRow } = acceptCommand(given)
      await queue.run('importRun', { input: command, ending }, true, tailRow)
    },
    async startHeld({ events, claim, ...start }) {
      const tailRow = tailRowFor(start.runId, start.afterSeq, events)
      return queue.run(
        'startHeld',
        { ...start, claim: claim && leaseOf(claim), journal: journalPart(tailRow, events) },
        true,
        tailRow,
      )
    },
    async changeQueued({ events, ...change }) {
      const tailRow = tailRowFor(change.runId, change.afterSeq, events)
      const command = { ...change, journal: journalPart(tailRow, events) }
      const result = await queue.run('changeQueued', command, true, tailRow)
      return 'outcome' in result ? undefined : result
    },
    append(input) {
      // Every delta takes this path, so it has no promise and no copy of its own.
      return changesNoRow(input) && input.events.length > 0 ? appendDelta(input) : appendRows(input)
    },
    claim: ({ limit, offers = [], ...lease }) => write('claim', { ...leaseOf(lease), now: clock.now(), limit, offers }),
    unplaceableRuns: (limit) => write('unplaceableRuns', { now: clock.now(), leaseNow: clock.monotonic(), limit }),
    claimUnplaceable: async (runId, lease) =>
      (await write('claimUnplaceable', { runId, now: clock.now(), lease: leaseOf(lease) })) ?? undefined,
    renewLeases: (lease, runIds) => write('renewLeases', { ...leaseOf(lease), runIds: [...runIds] }),
    requestCancel: async (runId, cancel) => (await write('requestCancel', { runId, cancel })) ?? undefined,

    async readEvents(runId, afterSeq, limit) {
      // The events that only the log has are at hand.
      const page = await readCommitted(() => journal.read(runId, afterSeq, limit))
      if (page.nextAfter > 0) return page
      // No run is without events. Its row can be read a moment before this thread hears of the commit that stored both.
      await queue.answered()
      return await readCommitted(() => journal.read(runId, afterSeq, limit))
    },
    readRun: (runId) =>
      read(() => {
        const run = runs.read(runId)
        return run === undefined ? undefined : current(run)
      }, runId),
    readLastSeqs: (runIds) =>
      read(() => {
        const found = new Map<string, number>()
        for (const runId of runIds) {
          const run = runs.read(runId)
          if (run !== undefined) found.set(runId, current(run).lastSeq)
        }
        return found
      }),
    listRuns: (filter) =>
      read(
        () => {
          const { rows, more } = runs.list(filter)
          return { rows: rows.map(current), more }
        },
        filter.conversationId ?? ownerTopic(filter.owner),
      ),
    listOpenRuns: (limit) => read(() => runs.allOpen(limit).map(current)),
    openRuns: (conversationId) =>
      read(() => {
        const open = runs.open(conversationId).map(current)
        const conversation = open.length === 0 ? conversationOwner.get(conversationId) : undefined
        if (conversation !== undefined) learn(isIdle(conversation.owner as string, conversationId))
        return open
      }, conversationId),
    findIdempotent: (owner, route, key) =>
      // No command with a key is acknowledged from the log.
      readCommitted(() => {
        const found = runs.idempotent(owner, route, key)
        if (found === undefined) return undefined
        const { runId, fingerprint, reused } = found
        return { runId, fingerprint, ...(reused ? { reused: true as const } : {}) }
      }),
    bindIdempotencyKey: async (request) => void (await write('bindIdempotencyKey', request)),
    findCached: (owner, cacheKey) => read(() => runs.cached(owner, cacheKey)),
    msUntilWake: (node) =>
      read(() => {
        const wakeAt = runs.nextWakeAt()
        const leaseEnd = runs.nextLeaseEnd(node)
        if (wakeAt === null && leaseEnd === null) return null
        const untilWake = wakeAt === null ? Infinity : wakeAt - clock.now()
        const untilLeaseEnd = leaseEnd === null ? Infinity : leaseEnd - clock.monotonic()
        return Math.max(0, Math.ceil(Math.min(untilWake, untilLeaseEnd)))
      }),
    countRuns: () => read(() => runs.counts()),

    putBlob: async (id, runId, body) => void (await write('putBlob', { id, runId, body })),
    countBlobs: (runId, prefix) => read(() => runs.countBlobs(runId, prefix)),
    readBlob: (id) => read(() => runs.blob(id)),

    expireRuns: (endedBefore, limit) => write('expireRuns', { endedBefore, limit }),
    removeRun: (runId) => write('removeRun', { runId }),
    removeEndedRuns: (request) => write('removeEndedRuns', request),
  }
}

function checkNumbers(runId: string, afterSeq: number, events: RunEvent[]): void {
  for (let index = 0; index < events.length; index += 1) {
    const seq = events[index]?.seq
    if (seq === afterSeq + 1 + index) continue
    throw new AppError('event_invalid', `The events are not numbered from ${afterSeq + 1} on.`, {
      details: { runId, afterSeq, found: seq },
    })
  }
}

function journalPart(tailRow: TailRow | undefined, events: RunEvent[]): EncodedEvents | null {
  return tailRow === undefined ? null : { id: tailRow.id, lastSeq: tailRow.lastSeq, body: bodyOf(events) }
}

function bodyOf(events: RunEvent[]): string {
  // Appended one by one instead of joined: `join` would hold the pieces and the copy in memory at the same time.
  let body = ''
  for (const event of events) body += body === '' ? encodeEvent(event) : `\n${encodeEvent(event)}`
  return body
}

const journalFields: ReadonlySet<string> = new Set(['runId', 'epoch', 'afterSeq', 'events', 'durable'])

function changesNoRow(write: RunWrite): boolean {
  // Every other field changes rows, also one that is added to RunWrite later.
  for (const name in write) if (!journalFields.has(name) && write[name as keyof RunWrite] !== undefined) return false
  return true
}
