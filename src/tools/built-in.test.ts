import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/support/manual-clock.ts'
import { toolContext } from '../../test/support/tool-context.ts'
import type { ContactStore } from '../stores/contact-store.ts'
import type { NoteRow } from '../stores/note-store.ts'
import { createBuiltInTools } from './built-in.ts'
import { createToolRegistry } from './tool-registry.ts'

function setUp() {
  const rows = new Map<string, NoteRow>()
  const searches: unknown[] = []
  const notes = {
    async addNote(note: NoteRow) {
      if (!rows.has(note.id)) rows.set(note.id, note)
    },
    async searchNotes(...search: [string, string, number]) {
      searches.push(search)
      return [...rows.values()].filter((row) => row.owner === search[0])
    },
  }
  const jobFiles = {
    readInput: () => Promise.resolve(undefined),
    putArtifact: () => Promise.resolve(),
    listSkillFiles: () => Promise.resolve([]),
    readSkillFile: () => Promise.resolve(undefined),
  }
  // The contact tools have their own tests.
  const contacts = {} as ContactStore
  const outputs = { read: () => Promise.resolve(undefined) }
  const registry = createToolRegistry(
    createBuiltInTools({ clock: manualClock(), notes, contacts, jobFiles, outputs, feishu: {} }),
  )
  return { registry, rows, searches, get: (name: string) => registry.get(name)! }
}

test('without its settings the Feishu tool is listed as unavailable and says which are missing', () => {
  const listing = setUp()
    .registry.list()
    .find(({ name }) => name === 'send_feishu_message')

  assert.equal(listing?.available, false)
  assert.equal(listing?.reason, 'FEISHU_APP_ID and FEISHU_APP_SECRET are not set.')
})

test('reading tools are never confirmed and writing tools always are', () => {
  const { registry } = setUp()

  assert.deepEqual(
    registry.available().map(({ name, effect, confirm }) => [name, effect, confirm]),
    [
      ['current_time', 'read', 'never'],
      ['remember_note', 'idempotent', 'always'],
      ['search_notes', 'read', 'never'],
      ['search_contacts', 'read', 'never'],
      ['get_contact', 'read', 'never'],
      ['add_contact_fact', 'idempotent', 'always'],
      ['ask_user', 'read', 'never'],
      ['read_job_file', 'read', 'never'],
      ['list_skill_files', 'read', 'never'],
      ['read_skill_file', 'read', 'never'],
      ['save_artifact', 'idempotent', 'never'],
      ['read_tool_output', 'read', 'never'],
    ],
  )
})

test('current_time gives the time of the run in the requested time zone', async () => {
  const { get } = setUp()

  const shanghai = await get('current_time').run({ timezone: 'Asia/Shanghai' }, toolContext())
  const utc = await get('current_time').run({}, toolContext())
  const midnight = await get('current_time').run({}, toolContext({ now: () => Date.UTC(2026, 0, 1) }))

  assert.deepEqual(shanghai.output, {
    utc: '2026-11-03T04:05:06.000Z',
    timezone: 'Asia/Shanghai',
    local: '2026-11-03T12:05:06+08:00',
    weekday: 'Tuesday',
  })
  assert.equal((utc.output as { local: string }).local, '2026-11-03T04:05:06+00:00')
  assert.equal((midnight.output as { local: string }).local, '2026-01-01T00:00:00+00:00')
})

test('current_time answers a zone that does not exist with a no that says so', async () => {
  const result = await setUp().get('current_time').run({ timezone: 'Mars/Olympus' }, toolContext())

  assert.equal(result.ok, false)
  assert.match(result.summary, /no time zone “Mars\/Olympus”/)
})

test('a note that is remembered again with the same key is one note', async () => {
  const { get, rows } = setUp()

  await get('remember_note').run({ text: 'tea' }, toolContext())
  await get('remember_note').run({ text: 'tea' }, toolContext())
  assert.equal(rows.size, 1)

  await get('remember_note').run({ text: 'tea' }, toolContext({ idempotencyKey: 'key_2' }))
  await get('remember_note').run({ text: 'tea' }, toolContext({ owner: 'bob' }))
  assert.equal(rows.size, 3)
})

test('notes belong to the user of the run', async () => {
  const { get, searches } = setUp()
  await get('remember_note').run({ text: 'tea at five' }, toolContext())

  const mine = await get('search_notes').run({ query: 'tea' }, toolContext())
  const theirs = await get('search_notes').run({ query: 'tea', limit: 3 }, toolContext({ owner: 'bob' }))

  assert.deepEqual(
    (mine.output as { notes: { text: string; createdAt: string }[] }).notes.map(({ text, createdAt }) => [
      text,
      createdAt,
    ]),
    [['tea at five', '2026-11-03T04:05:06.000Z']],
  )
  assert.equal(mine.summary, '1 note found for “tea”.')
  assert.deepEqual(theirs.output, { notes: [] })
  assert.deepEqual(searches, [
    ['ana', 'tea', 10],
    ['bob', 'tea', 3],
  ])
})

test('arguments outside the bounds are refused', () => {
  const { registry, get } = setUp()
  const check = (name: string, input: never) => registry.check(get(name), input)

  assert.equal(check('remember_note', { text: '' } as never), 'text: must NOT have fewer than 1 characters')
  assert.equal(check('search_notes', { query: 'x', limit: 51 } as never), 'limit: must be <= 50')
  assert.equal(check('search_notes', { query: 'x', limit: 50 } as never), null)
})

test('a description is one line and stays short, also for unchecked arguments', () => {
  const { get } = setUp()

  assert.equal(get('remember_note').describe({ text: 'a\nb' }), 'Save a note: “a b”')
  assert.equal(get('remember_note').describe({ text: '😀'.repeat(200) }), `Save a note: “${'😀'.repeat(119)}…”`)
  assert.equal(get('search_notes').describe(null), 'Search the notes for “”')
  assert.equal(get('current_time').describe({ timezone: 7 }), 'Look up the current time')
})
