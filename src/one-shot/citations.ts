// Checks the citations of an answer: a cited record must be one that the model was given,
// and, if the agent requires it, every statement must cite one. Pure; the work is linear in
// the size of the answer.

import type { JsonValue } from '../journal/event.ts'
import type { Citable } from './sources/source.ts'
import { isRecord } from '../kit/is-record.ts'

const errorsMax = 5

type JsonObject = Record<string, JsonValue>

/**
 * A statement is an object in a list of the answer, or the answer itself; what is inside a `citations` list is not. Returns
 * what is wrong, in phrases that the model is told in the repair round.
 */
export function citationErrors(answer: JsonValue, citable: readonly Citable[], required: boolean): string[] {
  const types = new Map<string, Set<string>>()
  for (const { source, type } of citable) {
    const known = types.get(source)
    if (known === undefined) types.set(source, new Set([type]))
    else known.add(type)
  }
  const listed = new Set(citable.map(({ type }) => type))
  const errors: string[] = []

  /** `wanted`: the type that the citation claims, if it claims one. */
  function checkRecord(path: string, source: string, wanted: string | undefined): void {
    const known = types.get(source)
    if (known === undefined || (wanted === undefined && !hasRecord(known))) {
      errors.push(`${path} cites ${JSON.stringify(source)}, which is not the id of a record in the data`)
    } else if (wanted !== undefined && !known.has(wanted)) {
      errors.push(`${path} cites ${JSON.stringify(source)} as ${wanted}, but it is ${[...known].join(' and ')}`)
    }
  }

  function checkCitation(path: string, entry: JsonValue): void {
    if (typeof entry === 'string') checkRecord(path, entry, undefined)
    if (!isRecord(entry)) return
    const { source, type, messageId } = entry
    if (typeof source === 'string') checkRecord(path, source, typeof type === 'string' ? type : undefined)
    if (typeof messageId === 'string' && listed.has('message') && types.get(messageId)?.has('message') !== true) {
      errors.push(`${path} cites the message ${JSON.stringify(messageId)}, which is not in the data`)
    }
  }

  function checkContact(path: string, id: JsonValue | undefined): void {
    if (typeof id !== 'string' || !listed.has('contact') || types.get(id)?.has('contact') === true) return
    errors.push(`${path} names the contact ${JSON.stringify(id)}, which is not in the data`)
  }

  function checkStatement(path: string, statement: JsonObject): void {
    const { citations, contactId, contacts } = statement
    if (Array.isArray(citations)) {
      for (const [index, entry] of citations.entries()) checkCitation(join(path, `citations.${index}`), entry)
    }
    checkContact(join(path, 'contactId'), contactId)
    if (Array.isArray(contacts)) {
      for (const [index, id] of contacts.entries()) checkContact(join(path, `contacts.${index}`), id)
    }
    // Without records there is nothing to cite at the top; a statement about nothing is still an error.
    if (!required || (path === '' && citable.length === 0)) return
    if (!Array.isArray(citations) || citations.length === 0) {
      errors.push(`${path === '' ? 'the answer' : path} cites no record; add the ids that support it, or leave it out`)
    }
  }

  const pending: { path: string; value: JsonValue; inList: boolean }[] = [{ path: '', value: answer, inList: true }]
  for (let next = pending.pop(); next !== undefined && errors.length < errorsMax; next = pending.pop()) {
    const { path, value, inList } = next
    if (Array.isArray(value)) {
      for (const [index, item] of [...value.entries()].toReversed()) {
        pending.push({ path: join(path, String(index)), value: item, inList: true })
      }
    } else if (isRecord(value)) {
      if (inList) checkStatement(path, value)
      for (const [name, inner] of Object.entries(value).toReversed()) {
        if (name !== 'citations') pending.push({ path: join(path, name), value: inner, inList: false })
      }
    }
  }
  return errors.slice(0, errorsMax)
}

/** Messages and contacts are named by fields of their own; a bare id in `citations` means a record. */
function hasRecord(types: ReadonlySet<string>): boolean {
  return [...types].some((type) => type !== 'message' && type !== 'contact')
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}
