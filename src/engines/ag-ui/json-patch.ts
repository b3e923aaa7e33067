// Applies JSON Patch (RFC 6902) to a document in place. Remote agents send patches for their
// state, so the number of operations and the growth of the document are bounded.

import type { JsonValue } from '../../journal/event.ts'
import { isValueDeeperThan } from '../../kit/json-depth.ts'
import { isRecord } from '../../kit/is-record.ts'

const operationsMax = 2_000
const pointerCharsMax = 4_000
const segmentsMax = 64
const depthMax = 100

export type PatchTarget = {
  root: JsonValue
  /** An upper bound of the length of `root` as JSON. */
  chars: number
}

/**
 * Returns false if the patch does not fit the document, is malformed, or makes the document longer than `charsMax`. The
 * document may then be half changed and must not be used any more.
 */
export function applyPatch(target: PatchTarget, patch: unknown, charsMax: number): boolean {
  if (!Array.isArray(patch) || patch.length > operationsMax) return false
  for (const operation of patch as unknown[]) {
    if (!isRecord(operation) || !applyOne(target, operation)) return false
    if (target.chars <= charsMax) continue
    // The bound counts what was removed, too; only the real length decides.
    target.chars = JSON.stringify(target.root).length
    if (target.chars > charsMax) return false
  }
  return true
}

function applyOne(target: PatchTarget, operation: Record<string, unknown>): boolean {
  const path = segmentsOf(operation['path'])
  if (path === undefined) return false
  switch (operation['op']) {
    case 'add':
      return operation['value'] !== undefined && write(target, path, operation['value'] as JsonValue, 'add')
    case 'replace':
      return operation['value'] !== undefined && write(target, path, operation['value'] as JsonValue, 'replace')
    case 'remove':
      return remove(target, path) !== undefined
    case 'test': {
      const found = read(target.root, path)
      return found !== undefined && isEqual(found, operation['value'])
    }
    case 'copy': {
      const from = segmentsOf(operation['from'])
      const found = from === undefined ? undefined : read(target.root, from)
      if (found === undefined || isTooDeep(found, path)) return false
      // A copy of its own, because later operations change values in place.
      return write(target, path, structuredClone(found), 'add')
    }
    case 'move': {
      const from = segmentsOf(operation['from'])
      if (from === undefined || isInside(from, path)) return false
      const moved = remove(target, from)
      return moved !== undefined && !isTooDeep(moved, path) && write(target, path, moved, 'add')
    }
    default:
      return false
  }
}

/** Repeated copies and moves could nest a value deeper than recursive code can walk. */
function isTooDeep(value: JsonValue, path: readonly string[]): boolean {
  return isValueDeeperThan(value, depthMax - path.length)
}

/** Undefined if the pointer is malformed or could reach the prototype of an object. */
function segmentsOf(pointer: unknown): string[] | undefined {
  if (typeof pointer !== 'string' || pointer.length > pointerCharsMax) return undefined
  if (pointer === '') return []
  if (!pointer.startsWith('/')) return undefined
  const segments = pointer
    .slice(1)
    .split('/')
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
  return segments.length > segmentsMax || segments.includes('__proto__') ? undefined : segments
}

function read(root: JsonValue, path: readonly string[]): JsonValue | undefined {
  let current: JsonValue | undefined = root
  for (const segment of path) {
    if (Array.isArray(current)) {
      const index = indexOf(segment, current.length - 1)
      current = index === undefined ? undefined : current[index]
    } else current = isRecord(current) && Object.hasOwn(current, segment) ? current[segment] : undefined
    if (current === undefined) return undefined
  }
  return current
}

function write(target: PatchTarget, path: readonly string[], value: JsonValue, mode: 'add' | 'replace'): boolean {
  const key = path.at(-1)
  target.chars += JSON.stringify(value).length + (key?.length ?? 0) + 8
  if (key === undefined) {
    target.root = value
    return true
  }
  const parent = read(target.root, path.slice(0, -1))
  if (Array.isArray(parent)) {
    const index = key === '-' && mode === 'add' ? parent.length : indexOf(key, parent.length - (mode === 'add' ? 0 : 1))
    if (index === undefined) return false
    parent.splice(index, mode === 'add' ? 0 : 1, value)
    return true
  }
  if (!isRecord(parent) || (mode === 'replace' && !Object.hasOwn(parent, key))) return false
  parent[key] = value
  return true
}

/** The removed value; undefined if there is none. */
function remove(target: PatchTarget, path: readonly string[]): JsonValue | undefined {
  const key = path.at(-1)
  if (key === undefined) return undefined
  const parent = read(target.root, path.slice(0, -1))
  if (Array.isArray(parent)) {
    const index = indexOf(key, parent.length - 1)
    return index === undefined ? undefined : parent.splice(index, 1)[0]
  }
  if (!isRecord(parent) || !Object.hasOwn(parent, key)) return undefined
  const removed = parent[key] as JsonValue
  delete parent[key]
  return removed
}

function indexOf(segment: string, max: number): number | undefined {
  if (!/^(?:0|[1-9]\d{0,8})$/.test(segment)) return undefined
  const index = Number(segment)
  return index <= max ? index : undefined
}

function isInside(outer: readonly string[], path: readonly string[]): boolean {
  return path.length > outer.length && outer.every((segment, index) => path[index] === segment)
}

function isEqual(left: unknown, right: unknown): boolean {
  if (left === right) return true
  if (Array.isArray(left)) {
    return (
      Array.isArray(right) && left.length === right.length && left.every((item, index) => isEqual(item, right[index]))
    )
  }
  if (!isRecord(left) || !isRecord(right)) return false
  const names = Object.keys(left)
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => Object.hasOwn(right, name) && isEqual(left[name], right[name]))
  )
}
