// kill -9 while archives are applied: each archive is written as a whole or not at all, and
// what was acknowledged is there.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { systemClock } from '../../src/kit/clock.ts'
import { openSqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { apply, archive, conversation } from '../contracts/store-contract-archives.ts'
import { owner } from '../contracts/store-fixtures.ts'

const perArchive = 50
const citations = [{ messageId: 'm1' }]

/** One contact of its own, with fifty facts and fifty to-dos. */
function payload(id: string) {
  const { payload: common } = archive(id)
  const [contact] = common.contacts
  assert.ok(contact !== undefined)
  const about = { contactRef: 'c1', contactId: null, recordId: null, citations }
  const texts = Array.from({ length: perArchive }, (_value, index) => `text ${index}`)
  return {
    ...common,
    contacts: [{ ...contact, name: `Contact of ${id}` }],
    facts: texts.map((content) => ({ ...about, content })),
    todos: texts.map((content) => ({ ...about, content, dueAt: null })),
  }
}

test('a kill while archives are applied leaves each of them whole or untouched', { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-applying-'))
  const file = join(folder, 'store.db')
  const page = { limit: 100, offset: 0 }
  const ids = Array.from({ length: 60 }, (_value, index) => `a${index}`)
  try {
    let store = await openSqliteStore({ clock: systemClock, file })
    await conversation(store)
    await Promise.all(
      ids.map(async (id, index) => {
        // Several conversations, because only so many archives of one are kept.
        const conversationId = `k${index}`
        await conversation(store, conversationId, [`m-${id}`])
        const cited = JSON.parse(JSON.stringify(payload(id)).replaceAll('"m1"', `"m-${id}"`))
        return await store.createArchive(archive(id, { conversationId, payload: cited }))
      }),
    )
    await store.close()

    let next = 0
    const acknowledged = new Set<string>()
    for (let round = 0; round < 4; round += 1) {
      const script = join(import.meta.dirname, 'applying-server.ts')
      const child = spawn(process.execPath, [script, file, ...ids.slice(next)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      // Killed when it says that the next one begins, after another number of archives in each round.
      let left = 3 + round * 4
      for await (const line of createInterface({ input: child.stdout })) {
        const [what, id] = line.split(' ') as [string, string]
        if (what === 'applied') acknowledged.add(id)
        if (what === 'applying' && left-- === 0) child.kill('SIGKILL')
      }
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      assert.equal(child.signalCode, 'SIGKILL')

      store = await openSqliteStore({ clock: systemClock, file })
      for (const [index, id] of ids.entries()) {
        const row = await store.readArchive(id)
        const isApplied = row?.status === 'applied'
        if (acknowledged.has(id)) assert.ok(isApplied, `${id} was acknowledged`)
        const { rows } = await store.listContacts(owner, { ...page, search: `of ${id}` })
        const [contact] = rows.filter(({ name }) => name === `Contact of ${id}`)
        assert.equal(contact !== undefined, isApplied, id)
        const marked = (await store.readConversation(`k${index}`))?.archivedAt
        assert.equal(marked !== null, isApplied, id)
        if (contact === undefined) continue
        next = index + 1
        const key = { owner, contactId: contact.id }
        for (const kind of ['fact', 'todo'] as const) {
          assert.equal((await store.listContactRecords(kind, key, page)).total, perArchive, `${kind}s of ${id}`)
        }
      }
      await store.close()
    }
    assert.ok(acknowledged.size > 4, 'some were applied in each round')

    // What was not applied when the server died is applied as if nothing had been.
    store = await openSqliteStore({ clock: systemClock, file })
    const row = await store.readArchive(ids[next] as string)
    assert.ok(row !== undefined)
    assert.equal((await apply(store, { ...row, payload: { ...row.payload, contacts: [] } }))?.status, 'applied')
    await store.close()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
