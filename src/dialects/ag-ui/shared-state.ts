// The state that an AG-UI client shares with its agent: the state that the client sent with its
// request, and the context patches of the run on top of it. A patch changes top-level fields;
// null removes one.

import type { EventData, JsonValue } from '../../journal/event.ts'
import type { Frame } from '../dialect.ts'
import { agUiFrame } from './ag-ui-frame.ts'
import { isRecord } from '../../kit/is-record.ts'

/** What the client has, as far as the run knows. Undefined if that is not an object, or not known. */
export type SharedState = { readonly [name: string]: JsonValue } | undefined

/** Fields of the session layer that name things of the server and are no state of the application. */
const reservedNames: ReadonlySet<string> = new Set(['conversationId', 'sessionId', '__proto__'])

export function sharedStateOf(state: JsonValue | undefined): SharedState {
  return isRecord(state) ? state : undefined
}

/** The state after a context patch, and the frame that makes the same change at the client; null if there is none. */
export function patchShared(
  shared: SharedState,
  { patch }: EventData<'context.patch'>,
): { shared: SharedState; frame: Frame | null } {
  const changes = Object.entries(patch).filter(([name]) => !reservedNames.has(name))
  const next: { [name: string]: JsonValue } = { ...shared }
  const delta: object[] = []
  for (const [name, value] of changes) {
    const path = `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    if (value !== null) {
      // `add` also replaces a field that is there.
      delta.push({ op: 'add', path, value })
      next[name] = value
    } else if (Object.hasOwn(next, name)) {
      delta.push({ op: 'remove', path })
      delete next[name]
    }
  }
  if (delta.length === 0) return { shared, frame: null }
  // A patch needs an object to apply to.
  const frame =
    shared === undefined ? agUiFrame('STATE_SNAPSHOT', { snapshot: next }) : agUiFrame('STATE_DELTA', { delta })
  return { shared: next, frame }
}
