// Contacts as files: import with a report, the same file again, restoring an export, and
// files that are broken, huge, or not what they say.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Json, someone, sharedTestServer } from '../support/test-server.ts'

const server = sharedTestServer()

async function send(user: string, type: string, raw: string | Uint8Array<ArrayBuffer>) {
  const url = new URL('/v1/contacts/import', server.polylog.baseUrl)
  url.searchParams.set('userId', user)
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': type }, body: raw })
  return { status: response.status, body: (await response.json()) as Json }
}

const exported = async (user: string, query = '') => await server.call('GET', `/v1/contacts/export${query}`, { user })

async function contactsOf(user: string): Promise<Json[]> {
  return (await server.call('GET', '/v1/contacts?limit=100', { user })).body.items as Json[]
}

/** What a contact says, without what differs between two users. */
const plain = (contacts: Json[]) =>
  contacts
    .map(({ userId: _user, createdAt: _a, createdAtMs: _b, updatedAt: _c, updatedAtMs: _d, ...rest }) => rest)
    .toSorted((left, right) => (left.name < right.name ? -1 : 1))

const cards = [
  'BEGIN:VCARD\r\nVERSION:3.0\r\nUID:urn:uuid:1\r\nFN:Ann Lee\r\nEMAIL:ann@example.com\r\nBDAY:1990-05-17\r\nEND:VCARD\r\n',
  'BEGIN:VCARD\r\nVERSION:4.0\r\nFN:张伟\r\nTEL:+86 10 1\r\nORG:Acme\r\nCATEGORIES:friend,同事\r\nEND:VCARD\r\n',
]

describe('an import', () => {
  test('creates contacts and reports what was skipped and why', async () => {
    const user = someone()
    const broken = 'BEGIN:VCARD\r\nVERSION:3.0\r\nTEL:1\r\nEND:VCARD\r\n'
    const long = `BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Long\r\nNOTE:${'x'.repeat(10_001)}\r\nEND:VCARD\r\n`

    const { status, body } = await send(user, 'text/vcard', cards[0] + broken + long + cards[1])

    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual([body.created, body.updated, body.unchanged, body.skippedTotal], [2, 0, 0, 2])
    assert.deepEqual(
      (body.skipped as Json[]).map(({ index, line, name }) => [index, line, name]),
      [
        [1, 8, undefined],
        [2, 12, 'Long'],
      ],
    )
    assert.match(body.skipped[0].reason, /no name/)
    assert.match(body.skipped[1].reason, /note is longer than 10000 characters/)
    const [wei, ann] = await contactsOf(user)
    assert.deepEqual([wei?.name, wei?.phone, wei?.company, wei?.tags], ['张伟', '+86 10 1', 'Acme', ['friend', '同事']])
    assert.deepEqual([ann?.uid, ann?.profile], ['urn:uuid:1', { birthday: '1990-05-17' }])
  })

  test('of the same file creates nothing twice, also at the same time', async () => {
    const user = someone()
    const reports = await Promise.all(Array.from({ length: 4 }, () => send(user, 'text/vcard', cards.join(''))))

    const again = await send(user, 'text/x-vcard; charset=utf-8', cards.join(''))

    const sum = (field: string) => reports.reduce((total, { body }) => total + Number(body[field]), 0)
    assert.deepEqual([sum('created'), sum('unchanged')], [2, 6])
    assert.deepEqual(again.body, { created: 0, updated: 0, unchanged: 2, skipped: [], skippedTotal: 0 })
    assert.equal((await contactsOf(user)).length, 2)
  })

  test('changes contacts that are known by email, and keeps what the file does not have', async () => {
    const user = someone()
    const made = await server.call('POST', '/v1/contacts', {
      user,
      body: { name: 'Ann', email: 'ANN@example.com', note: 'kept', tags: ['a'] },
    })

    const { body } = await send(user, 'text/csv', 'name,email,company,tags\nAnn Lee,ann@example.com,Acme,b\n')

    assert.deepEqual([body.created, body.updated], [0, 1])
    const [ann] = await contactsOf(user)
    assert.deepEqual(
      [ann?.id, ann?.name, ann?.company, ann?.note, ann?.tags],
      [made.body.id, 'Ann Lee', 'Acme', 'kept', ['a', 'b']],
    )
  })

  test('takes the charset of the content type; a file in another one is 400 and changes nothing', async () => {
    const user = someone()
    const gbk = Uint8Array.from([...Buffer.from('name,company\n'), 0xd5, 0xc5, 0xce, 0xb0, ...Buffer.from(',Acme\n')])

    const wrong = await send(user, 'text/csv', gbk)
    assert.deepEqual([wrong.status, wrong.body.code], [400, 'contact_file_invalid'])
    assert.deepEqual(await contactsOf(user), [])

    const right = await send(user, 'text/csv; charset="gb18030"', gbk)
    assert.deepEqual([right.status, right.body.created], [200, 1])
    assert.equal((await contactsOf(user))[0]?.name, '张伟')
  })

  test('of anything but vCard and CSV is 415, too large is 413, and without known columns 400', async () => {
    const user = someone()
    for (const type of [
      'application/json',
      'text/plain',
      'application/octet-stream',
      'multipart/form-data; boundary=x',
    ]) {
      const answer = await send(user, type, '{}')
      assert.deepEqual([answer.status, answer.body.code], [415, 'unsupported_media_type'], type)
      assert.match(answer.body.message, /text\/vcard or text\/csv/)
    }
    const large = await send(user, 'text/csv', `name\n${'x'.repeat(8 * 1024 * 1024)}`)
    assert.deepEqual([large.status, large.body.code], [413, 'body_too_large'])
    for (const file of ['', 'foo,bar\n1,2\n']) {
      const answer = await send(user, 'text/csv', file)
      assert.deepEqual([answer.status, answer.body.code], [400, 'contact_file_invalid'], file)
    }
    // The new content types are accepted at this address only.
    const elsewhere = await server.call('POST', '/v1/contacts', {
      user,
      raw: 'name\nAnn',
      headers: { 'content-type': 'text/csv' },
    })
    assert.equal(elsewhere.status, 415)
    assert.deepEqual(await contactsOf(user), [])
  })
})

describe('an export', () => {
  const contacts = [
    {
      id: 'contact_456',
      name: '张伟',
      alias: '小张',
      phone: '+86 1',
      company: 'Acme, Inc.; "A"',
      tags: ['a;b', 'c,d'],
    },
    {
      name: 'Ann Lee',
      email: 'ann@example.com',
      position: '=SUM(A1)',
      note: 'two\nlines',
      profile: { birthday: '--05-17', otherEmails: ['a@example.com'], otherPhones: ['+2', '+3'] },
    },
  ]

  for (const [format, query, type] of [
    ['vcard', '', 'text/vcard'],
    ['vcard 4.0', '?format=vcard&version=4.0', 'text/vcard'],
    ['csv', '?format=csv', 'text/csv'],
  ] as const) {
    test(`as ${format} is a file that another user imports as the same contacts, with their ids`, async () => {
      const [user, other] = [someone(), someone()]
      for (const body of contacts) await server.call('POST', '/v1/contacts', { user, body })

      const file = await exported(user, query)
      const imported = await send(other, type, file.text)
      const again = await send(user, type, file.text)

      assert.equal(file.status, 200)
      assert.match(file.headers.get('content-type') ?? '', new RegExp(`^${type}; charset=utf-8`))
      assert.match(file.headers.get('content-disposition') ?? '', /^attachment; filename="contacts\.(vcf|csv)"$/)
      assert.deepEqual([imported.body.created, imported.body.skippedTotal], [2, 0])
      const ignoringUid = (list: Json[]) => plain(list).map((contact) => ({ ...contact, uid: null }))
      assert.deepEqual(ignoringUid(await contactsOf(other)), ignoringUid(await contactsOf(user)))
      assert.deepEqual([again.body.created, again.body.skippedTotal], [0, 0])
      assert.deepEqual(ignoringUid(await contactsOf(user)), ignoringUid(await contactsOf(other)))
    })
  }

  test('holds every contact once, over many pages, and only the user’s own', async () => {
    const [user, other] = [someone(), someone()]
    const rows = Array.from({ length: 450 }, (_, at) => `Name ${at},n${at}@example.com`)
    const report = await send(user, 'text/csv', `name,email\n${rows.join('\n')}\n`)

    const lines = (await exported(user, '?format=csv')).text.trim().split('\r\n')

    assert.equal(report.body.created, 450)
    assert.equal(lines.length, 451)
    assert.equal(new Set(lines).size, 451)
    assert.equal((await exported(other)).text, '')
    assert.equal((await exported(user, '?format=xml')).status, 400)
  })
})
