// A crash at every moment of a run that changes files: after each commit, and between the
// rename of a file and the row that records it. Database and directory are copied as a kill
// would leave them, and a new scheduler continues from each copy. The files must be the same as
// without a crash, and no person is asked.

import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'
import { type Answer, calls, countingIds, openRig, type Rig, says } from '../../test/support/run-rig.ts'
import { crashImage } from '../../test/support/test-database.ts'
import { type Bench, openBench } from '../../test/support/workspace.ts'
import { foldRun } from '../journal/run-state.ts'
import type { Store } from '../stores/store.ts'

const steps = [
  { callId: 'read', name: 'fs_read', input: { path: 'a.txt' } },
  { callId: 'write', name: 'fs_write', input: { path: 'new/b.txt', content: 'one one' } },
  { callId: 'edit', name: 'fs_edit', input: { path: 'a.txt', old_string: 'x', new_string: 'x x' } },
  {
    callId: 'multi',
    name: 'fs_multi_edit',
    input: { edits: [{ path: 'new/b.txt', find: 'one one', replace: 'one one one' }] },
  },
  { callId: 'todo', name: 'todo_write', input: { todos: [{ id: '1', title: 'Rest', status: 'pending' }] } },
]

const answer: Answer = ({ messages }) => {
  const step = steps[messages.filter(({ role }) => role === 'tool').length]
  return step === undefined ? says('Done.') : calls(step)
}

/** Tools and run machinery over one database and one directory. */
async function open(
  file: string,
  ids: string,
  wrap: (store: Store, bench: Bench) => Store,
): Promise<{ rig: Rig; bench: Bench }> {
  const holder: { store?: Store } = {}
  const store = () => holder.store as Store
  const bench = openBench({
    store: {
      readFileVersion: (...given) => store().readFileVersion(...given),
      saveFileVersion: (...given) => store().saveFileVersion(...given),
      readTodos: (...given) => store().readTodos(...given),
      saveTodos: (...given) => store().saveTodos(...given),
    },
  })
  const wrapStore = (real: Store) => (holder.store = wrap(real, bench))
  const rig = await openRig({
    file,
    answer,
    tools: bench.registry.available(),
    ids: countingIds(ids),
    node: ids,
    wrapStore,
  })
  return { rig, bench }
}

describe('a run that changes files and whose server dies at any moment', () => {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-files-'))
  const images: { file: string; files: string; what: string }[] = []
  const opened: { rig: Rig; bench: Bench }[] = []
  let runId = ''

  before(async () => {
    const file = join(folder, 'whole.db')
    const one = await open(file, 'first', (store, bench) => {
      const photograph = async (what: string) => {
        const name = join(folder, `image-${images.length}`)
        await crashImage(file, `${name}.db`)
        cpSync(bench.directory, name, { recursive: true })
        images.push({ file: `${name}.db`, files: name, what: `${images.length}: ${what}` })
      }
      return {
        ...store,
        async append(write) {
          await store.append(write)
          await photograph(write.events.map(({ type }) => type).join(', '))
        },
        async saveFileVersion(row) {
          await photograph(`before a row of ${row.path}`)
          await store.saveFileVersion(row)
          await photograph(`after a row of ${row.path}`)
        },
        async saveTodos(...list) {
          await store.saveTodos(...list)
          await photograph('after the list')
        },
      }
    })
    opened.push(one)
    one.bench.write('a.txt', 'x')
    runId = (await one.rig.start({ workspace: { dir: 'mine', mode: 'edit' } })).run.id
    await one.rig.until(runId, ({ endedAt }) => endedAt !== null)
    assert.ok(images.length > 25, `only ${images.length} moments`)
  })
  afterEach(async () => {
    for (const { rig, bench } of opened.splice(0)) {
      await rig.close()
      await bench.close()
    }
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  async function takeUp(image: (typeof images)[number], index: string): Promise<{ rig: Rig; bench: Bench }> {
    const file = join(folder, `again-${index}.db`)
    await crashImage(image.file, file)
    const again = await open(file, `second-${index}`, (store) => store)
    opened.push(again)
    cpSync(image.files, again.bench.directory, { recursive: true })
    return again
  }

  it('ends with the same files, each change made once, and asks no person', async () => {
    for (const [index, image] of images.entries()) {
      const { rig, bench } = await takeUp(image, `same-${index}`)
      rig.scheduler.start()
      await rig.until(runId, ({ endedAt, status }) => endedAt !== null || status === 'waiting_user')

      const state = foldRun(await rig.events(runId))
      assert.equal(state.ended?.status, 'succeeded', image.what)
      for (const call of state.calls.values())
        assert.equal(call.done?.outcome, 'succeeded', `${image.what}: ${call.name}`)
      assert.equal(readFileSync(join(bench.directory, 'a.txt'), 'utf8'), 'x x', image.what)
      assert.equal(bench.read('new/b.txt'), 'one one one', image.what)
      assert.equal((await rig.store.readTodos(runId)).length + (await listOf(rig)).length, 1, image.what)
      const listed = await bench.use('fs_glob', { pattern: '**', dot: true })
      assert.deepEqual(listed.output.matches, ['a.txt', 'new/b.txt'], image.what)
      await rig.close()
    }
  })

  it('never overwrites what a person wrote while the server was down', async () => {
    for (const [index, image] of images.entries()) {
      const { rig, bench } = await takeUp(image, `other-${index}`)
      const known = foldRun(await rig.events(runId)).calls.get('read')?.done !== undefined
      if (!known) continue
      writeFileSync(join(bench.directory, 'a.txt'), 'by a person, with an x')
      rig.scheduler.start()
      await rig.until(runId, ({ endedAt }) => endedAt !== null)
      assert.equal(bench.read('a.txt'), 'by a person, with an x', image.what)
      await rig.close()
    }
  })

  async function listOf(rig: Rig) {
    const conversation = (await rig.store.readRun(runId))?.conversationId
    return conversation == null ? [] : rig.store.readTodos(conversation)
  }
})
