// Reads single arguments of the workspace tools. The tool registry has already checked
// them against the tool's schema, so nothing is validated here.

import type { JsonValue } from '../../journal/event.ts'
import { isRecord } from '../../kit/is-record.ts'

export function booleanField(input: JsonValue, name: string): boolean {
  return field(input, name) === true
}

export function integerField(input: JsonValue, name: string, fallback: number): number {
  const value = field(input, name)
  return typeof value === 'number' ? value : fallback
}

export function field(input: JsonValue, name: string): JsonValue | undefined {
  return isRecord(input) ? input[name] : undefined
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return count === 1 ? `1 ${one}` : `${count} ${many}`
}
