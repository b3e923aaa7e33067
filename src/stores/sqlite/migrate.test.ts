// A file that an older version wrote is migrated with all its content.

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
    said.run(`m-${id}`, id, index + 1, start + 7 * index)
  }
  db.close()

  const store = await openSqliteStore({ file, clock: systemClock })
  try {
    const ids = (rows: { id: string }[]) => rows.map((row) => row.id)
    assert.deepEqual(
      ids(await store.claim({ node: 'n', leaseMs: 1000, limit: 9 })),
      ['old-1'],
      'the second waits for the first',
    )
    assert.deepEqual(ids(await store.historyBefore('c', 'old-2', 9)), ['m-old-1'])
    assert.equal((await store.readConversation('c'))?.lastMessageAt, start + 7, 'of the last message that was there')
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

test('conversations of an older file keep their names: ids that clients chose and sessions become names of their owner', async () => {
  const file = join(folder, 'names.db')
  const db = new DatabaseSync(file)
  migrate(
    db,
    readMigrations().filter(({ number }) => number <= 5),
  )
  const ulid = (last: number) => `01J9ZZZZZZZZZZZZZZZZZZZZZ${last}`
  const conversation = db.prepare('INSERT INTO conversations (id, owner, created_at, updated_at) VALUES (?, ?, ?, ?)')
  const created: [id: string, at: number][] = [
    ['conv_123', 1],
    [ulid(1), 2],
    [ulid(2), 3],
    [ulid(3), 4],
    [`agt-${ulid(4)}`, 5],
    ['s', 6],
  ]
  for (const [id, at] of created) conversation.run(id, owner, start + at, start + at)
  const session = db.prepare('INSERT INTO sessions VALUES (?, ?, ?)')
  session.run(owner, 'by-session', ulid(1))
  session.run(owner, 's', ulid(1))
  const run = db.prepare(
    "INSERT INTO runs (id, owner, family, agent_id, conversation_id, status, attempt, epoch, last_seq, created_at) VALUES (?, ?, 'agent', 'a', ?, 'succeeded', 1, 0, 0, ?)",
  )
  // The third was created by its first run, the fourth by hand before it.
  for (const [id, at] of [...created.filter(([id]) => id !== ulid(3)), [ulid(3), 9] as const])
    run.run(`r-${id}`, owner, id, start + at)
  db.close()

  const store = await openSqliteStore({ file, clock: systemClock })
  try {
    const named = async (name: string) => (await store.findConversationByName(owner, name))?.id
    assert.equal(await named('conv_123'), 'conv_123')
    assert.equal(await named('by-session'), ulid(1))
    assert.equal(await named('s'), 's', 'a conversation id wins over a session of the same text')
    assert.equal(await named(ulid(2)), undefined, 'minted ids are no names')
    assert.equal(await named(`agt-${ulid(4)}`), undefined)
    assert.equal(await store.findConversationByName('bob', 'conv_123'), undefined)
    assert.equal((await store.newestUnnamedConversation(owner))?.id, ulid(2))
  } finally {
    await store.close()
  }
})
