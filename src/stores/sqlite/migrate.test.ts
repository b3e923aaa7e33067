// A file that an older version wrote is taken over with everything in it.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { claimNow, inConversation, message, owner, start } from '../../../test/contracts/store-fixtures.ts'
import { systemClock } from '../../kit/clock.ts'
import { migrate, readMigrations } from './migrate.ts'
import { openSqliteStore } from './sqlite-store.ts'

const folder = mkdtempSync(join(tmpdir(), 'polylog-migrate-'))
after(() => rmSync(folder, { recursive: true, force: true }))

test('a file of the first version keeps its runs in their order, and takes turns and feedback from now on', async () => {
  const file = join(folder, 'first.db')
  const db = new DatabaseSync(file)
  migrate(db, readMigrations().slice(0, 1))
  db.exec(`INSERT INTO conversations VALUES ('c', '${owner}', NULL, ${start}, ${start})`)
  const run = db.prepare(
    "INSERT INTO runs (id, owner, family, agent_id, conversation_id, status, attempt, epoch, last_seq, created_at) VALUES (?, ?, 'agent', 'a', 'c', 'queued', 1, 0, 0, ?)",
  )
  const said = db.prepare(
    "INSERT INTO messages (id, conversation_id, run_id, turn, role, content, state, metadata, created_at) VALUES (?, 'c', ?, ?, 'user', 'x', 'active', '{}', ?)",
  )
  for (const [index, id] of ['old-1', 'old-2'].entries()) {
    run.run(id, owner, start)
    said.run(`m-${id}`, id, index + 1, start)
  }
  db.close()

  const store = await openSqliteStore({ file, clock: systemClock })
  try {
    const ids = (rows: { id: string }[]) => rows.map((row) => row.id)
    assert.deepEqual(
      ids(await store.claim({ node: 'n', now: start, leaseUntil: start + 1000, limit: 9 })),
      ['old-1'],
      'the second waits for the first',
    )
    assert.deepEqual(ids(await store.historyBefore('c', 'old-2', 9)), ['m-old-1'])
    await store.accept(
      inConversation('joined', 'c', 'present', {
        joinTurnOf: 'old-1',
        claim: claimNow,
        messages: [message('m-joined', 'c')],
      }),
    )
    assert.deepEqual(ids(await store.historyBefore('c', 'old-2', 9)), ['m-old-1', 'm-joined'])
    const like = {
      messageId: 'm-old-1',
      owner,
      kind: 'like' as const,
      text: null,
      incorrect: false,
      unhelpful: false,
      inappropriate: false,
      at: start,
    }
    assert.deepEqual(await store.react(like), { reaction: 'like' })
  } finally {
    await store.close()
  }
})
