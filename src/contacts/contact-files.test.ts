// An import that fails in the middle: whole batches, and an error that says what was stored.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { manualClock } from '../../test/support/manual-clock.ts'
import { AppError } from '../errors/app-error.ts'
import type { ContactImport } from '../stores/contact-store.ts'
import { ContactFiles } from './contact-files.ts'

function filesWith(importContacts: (entries: readonly ContactImport[]) => void) {
  let ids = 0
  return new ContactFiles({
    store: {
      async importContacts(_owner, entries) {
        importContacts(entries)
        return entries.map(({ newId }) => ({ outcome: 'created', id: newId }))
      },
      pageOfContacts: () => Promise.resolve({ rows: [], more: false, next: null }),
    },
    clock: manualClock(),
    ids: () => `id-${++ids}`,
  })
}

const csv = (rows: number) =>
  new TextEncoder().encode(`name\n${Array.from({ length: rows }, (_, at) => `n${at}`).join('\n')}\n`)

describe('an import', () => {
  it('stores batches of a bounded size, in the order of the file', async () => {
    const batches: number[] = []
    const names: string[] = []
    const files = filesWith((entries) => {
      batches.push(entries.length)
      names.push(...entries.map(({ name }) => name))
    })

    const report = await files.import('ann', { format: 'csv', bytes: csv(450) })

    assert.deepEqual([batches, report.created], [[200, 200, 50], 450])
    assert.deepEqual([names[0], names[449]], ['n0', 'n449'])
  })

  it('that fails in the middle says how many contacts were stored, with the code of the failure', async () => {
    let batches = 0
    const files = filesWith(() => {
      batches += 1
      if (batches === 2) throw new AppError('store_unavailable', 'The disk is full.')
    })

    await assert.rejects(files.import('ann', { format: 'csv', bytes: csv(450) }), (error: AppError) => {
      assert.deepEqual([error.code, error.retryable], ['store_unavailable', true])
      assert.match(error.message, /^The disk is full\. 200 contacts of the file were stored before\./)
      assert.deepEqual(error.details, { imported: { created: 200, updated: 0, unchanged: 0, skippedTotal: 0 } })
      return true
    })
    assert.equal(batches, 2)
  })

  it('that fails before the first batch reports the failure as it is', async () => {
    const failure = new AppError('contacts_full', 'Too many.')
    const files = filesWith(() => {
      throw failure
    })

    await assert.rejects(files.import('ann', { format: 'csv', bytes: csv(3) }), (error) => error === failure)
  })

  it('lists a bounded number of the entries that it skipped, and counts all', async () => {
    const files = filesWith(() => {})
    const rows = Array.from({ length: 1500 }, () => ',x').join('\n')

    const report = await files.import('ann', {
      format: 'csv',
      bytes: new TextEncoder().encode(`name,phone\n${rows}\n`),
    })

    assert.deepEqual([report.skipped.length, report.skippedTotal, report.created], [1000, 1500, 0])
  })
})
