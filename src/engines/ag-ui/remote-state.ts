// The state of a remote agent, built from snapshots and patches. Its changes are shown as
// patches of the session layer: the top-level fields that changed, null for a removed one.

import type { JsonValue } from '../../journal/event.ts'
import { applyPatch, type PatchTarget } from './json-patch.ts'
import { isRecord } from '../../kit/is-record.ts'

/** A larger state is not kept. */
const stateCharsMax = 256 * 1024
/** How much state one turn may write to the journal; further changes are shown only at the end of the turn. */
const shownCharsMax = 4 * 1024 * 1024
/** Fields of the session layer that belong to the server. */
const reservedNames = new Set(['conversationId', 'sessionId'])

type JsonRecord = { [name: string]: JsonValue }

export class RemoteState {
  private target: PatchTarget
  /** False after a patch that did not fit, until the next snapshot. */
  private valid = true
  private readonly changed = new Set<string>()
  private shownChars = 0

  constructor(state: JsonValue = {}) {
    // A copy, because patches change it in place, and the given one may belong to an event that others read.
    const text = JSON.stringify(state)
    this.target = { root: JSON.parse(text) as JsonValue, chars: text.length }
  }

  /** Undefined if the state is not known, because a patch did not fit it or it is too large. */
  get value(): JsonValue | undefined {
    return this.valid ? this.target.root : undefined
  }

  replace(snapshot: unknown): void {
    const chars = JSON.stringify(snapshot ?? null).length
    this.valid = chars <= stateCharsMax
    if (!this.valid) return
    const before = this.target.root
    this.target = { root: (snapshot ?? {}) as JsonValue, chars }
    for (const state of [before, this.target.root]) for (const name of namesOf(state)) this.changed.add(name)
  }

  patch(delta: unknown): void {
    if (!this.valid) return
    const before = namesOf(this.target.root)
    this.valid = applyPatch(this.target, delta, stateCharsMax)
    if (!this.valid) return
    // An operation on the whole document may change every field.
    const all = () => [...before, ...namesOf(this.target.root)]
    for (const { path, from } of delta as { path: string; from?: string }[]) {
      for (const pointer of from === undefined ? [path] : [path, from]) {
        for (const name of pointer === '' ? all() : [firstName(pointer)]) this.changed.add(name)
      }
    }
  }

  /** The changes since the last call; undefined if there are none or enough was shown. `last`: the turn ends. */
  takeChanges(last: boolean): JsonRecord | undefined {
    if (this.changed.size === 0 || !this.valid || (this.shownChars > shownCharsMax && !last)) return undefined
    const state = this.target.root
    const patch: JsonRecord = {}
    for (const name of this.changed) {
      if (reservedNames.has(name) || name === '__proto__') continue
      patch[name] = isRecord(state) && Object.hasOwn(state, name) ? (state[name] as JsonValue) : null
    }
    this.changed.clear()
    if (Object.keys(patch).length === 0) return undefined
    // A copy, because later patches change the state in place before the event is written.
    const text = JSON.stringify(patch)
    this.shownChars += text.length
    return JSON.parse(text) as JsonRecord
  }
}

function namesOf(state: JsonValue): string[] {
  return isRecord(state) ? Object.keys(state) : []
}

function firstName(pointer: string): string {
  return (pointer.split('/', 2)[1] ?? '').replaceAll('~1', '/').replaceAll('~0', '~')
}
