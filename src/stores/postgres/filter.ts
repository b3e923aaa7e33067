// The conditions of a list, from the fields that a caller filters by.

import type { Value } from './connection.ts'

/** A condition with one `?` and its value; without a value it does not count. */
type Condition = readonly [sql: string, value: Value | undefined]

export function filterOf(...conditions: readonly Condition[]): { where: string; values: Value[] } {
  const given = conditions.filter((each): each is [string, Value] => each[1] !== undefined)
  return { where: given.map(([sql]) => sql).join(' AND '), values: given.map(([, value]) => value) }
}
