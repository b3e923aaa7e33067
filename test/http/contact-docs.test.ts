// The commands of docs/contacts.md, in their order, against a fresh server.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { startPolylog } from '../support/polylog.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/contacts.md'), 'utf8')

test('the commands of docs/contacts.md do what it says', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-contacts-'))
  const server = await startPolylog()
  context.after(async () => {
    await server.dispose()
    rmSync(folder, { recursive: true })
  })
  const blocks = [...page.matchAll(/^```bash\n(.*?)^```$/gms)].map((match) => match[1] ?? '')
  const script = blocks.join('\n').replaceAll('http://localhost:3000', server.baseUrl)
  // Every answer ends in a line of its own.
  const lines = script.replaceAll('curl -s', "curl -s --fail-with-body -w '\\n#%{http_code}\\n'")

  const { stdout } = await promisify(execFile)('bash', ['-e', '-c', lines], { cwd: folder })

  const answers = stdout.split(/\n#(?=\d{3}\n)/).map((part) => part.replace(/^\d{3}\n/, ''))
  const statuses = [...stdout.matchAll(/^#(\d{3})$/gm)].map((match) => match[1])
  assert.deepEqual(statuses, [
    '201',
    '200',
    '200',
    '200',
    '201',
    '201',
    '201',
    ...Array.from({ length: 12 }, () => '200'),
  ])
  const [made, read, changed, list, , todo, event, known, conversation, linked, report] = answers
    .slice(0, 11)
    .map((answer) => JSON.parse(answer))
  assert.deepEqual([made.id, made.name, made.userId, made.note], ['contact_456', '张伟', 'user_123', null])
  assert.deepEqual(read, made)
  assert.equal(changed.position, 'CEO')
  assert.deepEqual([list.total, list.items[0].id], [1, 'contact_456'])
  assert.equal(todo.dueAt, '2026-12-01T09:00:00.000Z')
  assert.equal(event.eventDate, '2026-11-20T00:00:00.000Z')
  assert.deepEqual([known.facts.length, known.openActions[0].id, known.recentEvents[0].id], [1, todo.id, event.id])
  assert.deepEqual([linked.total, linked.items[0].id], [1, conversation.id])
  assert.deepEqual(
    [report.created, report.updated, report.unchanged, report.skippedTotal, report.skipped[0].line],
    [1, 0, 0, 1, 4],
  )
  assert.match(answers[11] ?? '', /BEGIN:VCARD\r\nVERSION:3\.0\r\nUID:contact_456\r\nFN:张伟\r\n/)
  assert.match(answers[12] ?? '', /\r\n[^,]+,Ann Lee,,ann@example\.com,,Acme,,friend,/)
  const [archive, applied, brief, stored, refreshed] = answers.slice(14, 19).map((answer) => JSON.parse(answer))
  assert.deepEqual([archive.status, archive.computed, archive.conversationId], ['ready_for_review', true, 'conv_123'])
  assert.deepEqual([applied.id, applied.status], [archive.id, 'applied'])
  assert.deepEqual(stored, { ...brief, cached: true })
  assert.notEqual(refreshed.snapshotId, brief.snapshotId)
})
