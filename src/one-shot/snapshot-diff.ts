// The difference between two results of the same agent, field by field. Pure. Entries of a
// list are matched by the field that identifies them, so that a new entry at the top of a
// list is one addition and not a change of every entry. The work is linear in the size of
// the two values, and the answer is bounded.

import type { JsonValue } from '../journal/event.ts'
import { sortedJson } from '../kit/sorted-json.ts'
import { isRecord } from '../kit/is-record.ts'

export type SnapshotChange = {
  /** For example `profileSummary` or `risks[title=Long silence].severity`. */
  path: string
  change: 'added' | 'removed' | 'changed'
  before?: JsonValue
  after?: JsonValue
}

/** `truncated`: there are more changes than are listed. */
export type SnapshotDiff = { changes: SnapshotChange[]; truncated: boolean }

const changesMax = 500
const charsMax = 512 * 1024
const depthMax = 32
const labelCharsMax = 80

/** The first one that every entry of both lists has, and that is unique in each, identifies the entries. */
const identityFields = ['contactId', 'source', 'title', 'action', 'id'] as const

type JsonObject = Record<string, JsonValue>

export function diffResults(before: JsonValue, after: JsonValue): SnapshotDiff {
  const diff = new Diff()
  diff.compare('', before, after, 0)
  return { changes: diff.changes, truncated: diff.truncated }
}

class Diff {
  readonly changes: SnapshotChange[] = []
  truncated = false
  #chars = 0

  compare(path: string, before: JsonValue, after: JsonValue, depth: number): void {
    if (this.truncated) return
    if (depth < depthMax && isRecord(before) && isRecord(after)) this.#objects(path, before, after, depth)
    else if (depth < depthMax && Array.isArray(before) && Array.isArray(after)) this.#lists(path, before, after, depth)
    else if (sortedJson(before) !== sortedJson(after)) this.#report({ path, change: 'changed', before, after })
  }

  #objects(path: string, before: JsonObject, after: JsonObject, depth: number): void {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const where = path === '' ? name : `${path}.${name}`
      const [old, now] = [own(before, name), own(after, name)]
      if (old === undefined && now !== undefined) this.#report({ path: where, change: 'added', after: now })
      else if (now === undefined && old !== undefined) this.#report({ path: where, change: 'removed', before: old })
      else if (old !== undefined && now !== undefined) this.compare(where, old, now, depth + 1)
    }
  }

  #lists(path: string, before: JsonValue[], after: JsonValue[], depth: number): void {
    const field = identityOf(before, after)
    if (field !== undefined) {
      this.#identified(path, field, before as JsonObject[], after as JsonObject[], depth)
      return
    }
    // Equal entries are matched wherever they stand; the others are paired in their order if both are objects.
    const { removed, added } = unmatched(before, after)
    for (let index = 0; index < Math.max(removed.length, added.length); index++) {
      const [old, now] = [removed[index], added[index]]
      if (old !== undefined && now !== undefined && isRecord(old.value) && isRecord(now.value)) {
        this.compare(`${path}[${now.index}]`, old.value, now.value, depth + 1)
        continue
      }
      if (old !== undefined) this.#report({ path: `${path}[${old.index}]`, change: 'removed', before: old.value })
      if (now !== undefined) this.#report({ path: `${path}[${now.index}]`, change: 'added', after: now.value })
    }
  }

  #identified(path: string, field: string, before: JsonObject[], after: JsonObject[], depth: number): void {
    const where = (entry: JsonObject) => `${path}[${field}=${String(entry[field]).slice(0, labelCharsMax)}]`
    const old = new Map(before.map((entry) => [entry[field], entry]))
    const now = new Set(after.map((entry) => entry[field]))
    for (const entry of before) {
      if (!now.has(entry[field])) this.#report({ path: where(entry), change: 'removed', before: entry })
    }
    for (const entry of after) {
      const earlier = old.get(entry[field])
      if (earlier === undefined) this.#report({ path: where(entry), change: 'added', after: entry })
      else this.compare(where(entry), earlier, entry, depth + 1)
    }
  }

  #report(change: SnapshotChange): void {
    if (this.truncated) return
    this.#chars += JSON.stringify(change).length
    // One change is always listed, however large.
    if (this.changes.length >= changesMax || (this.#chars > charsMax && this.changes.length > 0)) this.truncated = true
    else this.changes.push(change)
  }
}

function identityOf(before: JsonValue[], after: JsonValue[]): string | undefined {
  if (before.length === 0 && after.length === 0) return undefined
  return identityFields.find((field) => [before, after].every((list) => identifies(field, list)))
}

function identifies(field: string, list: JsonValue[]): boolean {
  const seen = new Set<JsonValue>()
  for (const entry of list) {
    const value = isRecord(entry) ? own(entry, field) : undefined
    if ((typeof value !== 'string' && typeof value !== 'number') || seen.has(value)) return false
    seen.add(value)
  }
  return true
}

type Entry = { index: number; value: JsonValue }

function unmatched(before: JsonValue[], after: JsonValue[]): { removed: Entry[]; added: Entry[] } {
  const left = new Map<string, Entry[]>()
  for (const [index, value] of before.entries()) {
    const text = sortedJson(value)
    const same = left.get(text)
    if (same === undefined) left.set(text, [{ index, value }])
    else same.push({ index, value })
  }
  const added: Entry[] = []
  for (const [index, value] of after.entries()) {
    if (left.get(sortedJson(value))?.shift() === undefined) added.push({ index, value })
  }
  const removed = [...left.values()].flat().toSorted((a, b) => a.index - b.index)
  return { removed, added }
}

/** Names come from outside, so only own properties count. */
function own(value: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(value, name) ? value[name] : undefined
}
