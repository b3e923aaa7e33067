// Imports contacts from vCard and CSV files, and exports them. An import writes batches:
// each is stored as a whole or not at all. Sending the same file again creates nothing
// twice, so an import that failed in the middle is simply repeated.

import { AppError, toAppError } from '../errors/app-error.ts'
import type { JsonValue } from '../journal/event.ts'
import type { Clock } from '../kit/clock.ts'
import { defined } from '../kit/defined.ts'
import type { Ids } from '../kit/ids.ts'
import type { ContactImport, ContactRow, ContactStore } from '../stores/contact-store.ts'
import type { ContactDraft, FileEntry } from './contact-draft.ts'
import { contactLimits, isContactId } from './contact-limits.ts'
import { csvHeader, csvRow, readCsv } from './csv.ts'
import { readVCards, type VCardVersion, writeVCard } from './vcard.ts'

export type ContactFormat = 'vcard' | 'csv'

export type ContactFile = { format: ContactFormat; bytes: Uint8Array; charset?: string | undefined }

export type SkippedEntry = { index: number; line: number; name?: string; reason: string }

export type ImportReport = {
  created: number
  updated: number
  /** Contacts that have all of this already. */
  unchanged: number
  /** The first of them; `skippedTotal` counts all. */
  skipped: SkippedEntry[]
  skippedTotal: number
}

export type ContactFileDependencies = {
  store: Pick<ContactStore, 'importContacts' | 'pageOfContacts'>
  clock: Clock
  ids: Ids
}

/** One batch is one transaction of the writer; it takes a few milliseconds. */
const batchSize = 200
/** A page of an export. */
const pageRows = 200
const skippedShownMax = 1000

export class ContactFiles {
  private readonly dependencies: ContactFileDependencies

  constructor(dependencies: ContactFileDependencies) {
    this.dependencies = dependencies
  }

  /**
   * If it fails after a batch was stored, the error says how many contacts were (`details.imported`). If it fails before,
   * nothing has changed.
   */
  async import(owner: string, file: ContactFile): Promise<ImportReport> {
    const report: ImportReport = { created: 0, updated: 0, unchanged: 0, skipped: [], skippedTotal: 0 }
    let batch: ContactImport[] = []
    const store = async (): Promise<void> => {
      const entries = batch
      batch = []
      if (entries.length === 0) return
      const at = this.dependencies.clock.now()
      const outcomes = await this.dependencies.store.importContacts(owner, entries, at, contactLimits.contacts)
      for (const { outcome } of outcomes) report[outcome] += 1
    }
    try {
      for await (const entry of entriesOf(file)) {
        const problem = entry.ok ? problemOf(entry.contact) : entry.reason
        if (entry.ok && problem === null) batch.push(this.toImport(entry.contact))
        else skip(report, entry, problem ?? '')
        if (batch.length >= batchSize) await store()
      }
      await store()
    } catch (error) {
      throw interrupted(error, report)
    }
    return report
  }

  /** The whole file in pieces, in the order of creation. Contacts that are added meanwhile may be missing. */
  async *export(owner: string, format: ContactFormat, version: VCardVersion): AsyncGenerator<string> {
    if (format === 'csv') yield csvHeader()
    let after: number | null = 0
    while (after !== null) {
      const page: Awaited<ReturnType<ContactStore['pageOfContacts']>> = await this.dependencies.store.pageOfContacts(
        owner,
        { limit: pageRows, after },
      )
      const write = format === 'csv' ? csvRow : (draft: ContactDraft) => writeVCard(draft, version)
      if (page.rows.length > 0) yield page.rows.map((row) => write(toDraft(row))).join('')
      after = page.next
    }
  }

  private toImport(draft: ContactDraft): ContactImport {
    const { uid, name, alias, email, phone, company, position, note, tags } = draft
    const fields = { uid, alias, email, phone, company, position, note }
    const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
    return {
      ...given,
      name,
      tags,
      profile: profileOf(draft),
      newId: this.dependencies.ids(),
      // An exported id comes back as the uid: a contact that is restored keeps its id.
      ...(uid !== null && isContactId(uid) ? { id: uid } : {}),
    }
  }
}

async function* entriesOf({ format, bytes, charset }: ContactFile): AsyncGenerator<FileEntry> {
  if (format === 'csv') yield* readCsv(bytes, { charset })
  else yield* readVCards(bytes)
}

function skip(report: ImportReport, entry: FileEntry, reason: string): void {
  report.skippedTotal += 1
  if (report.skipped.length >= skippedShownMax) return
  const name = (entry.ok ? entry.contact.name : entry.name)?.slice(0, contactLimits.nameChars)
  report.skipped.push({ index: entry.index, line: entry.line, ...defined({ name }), reason })
}

/** Why a contact cannot be stored; null if it can. */
function problemOf(draft: ContactDraft): string | null {
  const bounds: [what: string, length: number, max: number][] = [
    ['UID', draft.uid?.length ?? 0, contactLimits.idChars],
    ['name', draft.name.length, contactLimits.nameChars],
    ['nickname', draft.alias?.length ?? 0, contactLimits.nameChars],
    ['email', draft.email?.length ?? 0, contactLimits.emailChars],
    ['phone', draft.phone?.length ?? 0, contactLimits.phoneChars],
    ['company', draft.company?.length ?? 0, contactLimits.nameChars],
    ['position', draft.position?.length ?? 0, contactLimits.nameChars],
    ['note', draft.note?.length ?? 0, contactLimits.noteChars],
    ['longest tag', Math.max(0, ...draft.tags.map((tag) => tag.length)), contactLimits.tagChars],
    ['list of other emails and phones', JSON.stringify(profileOf(draft)).length, contactLimits.jsonChars],
  ]
  const long = bounds.find(([, length, max]) => length > max)
  if (long !== undefined) return `The ${long[0]} is longer than ${long[2]} characters.`
  return draft.tags.length > contactLimits.tags ? `There are more than ${contactLimits.tags} tags.` : null
}

function profileOf({ birthday, otherEmails, otherPhones }: ContactDraft): Record<string, JsonValue> {
  return {
    ...(birthday === null ? {} : { birthday }),
    ...(otherEmails.length === 0 ? {} : { otherEmails }),
    ...(otherPhones.length === 0 ? {} : { otherPhones }),
  }
}

function toDraft(row: ContactRow): ContactDraft {
  const { name, alias, email, phone, company, position, note, tags, profile } = row
  const { birthday } = profile
  return {
    uid: row.uid ?? row.id,
    name,
    alias,
    email,
    phone,
    company,
    position,
    note,
    tags,
    birthday: typeof birthday === 'string' ? birthday : null,
    otherEmails: textsOf(profile['otherEmails']),
    otherPhones: textsOf(profile['otherPhones']),
  }
}

function textsOf(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}

function interrupted(thrown: unknown, { skipped: _skipped, ...imported }: ImportReport): unknown {
  const stored = imported.created + imported.updated + imported.unchanged
  if (stored === 0) return thrown
  const error = toAppError(thrown)
  return new AppError(
    error.code,
    `${error.message} ${stored} contacts of the file were stored before. Sending the file again creates none of them twice.`,
    { retryable: error.retryable, details: { ...error.details, imported }, cause: thrown },
  )
}
