// Arguments of the workspace tools: the schema has checked them, these only read
// them out.

import type { JsonValue } from '../../journal/event.ts'

export function flag(input: JsonValue, name: string): boolean {
  return field(input, name) === true
}

export function whole(input: JsonValue, name: string, fallback: number): number {
  const value = field(input, name)
  return typeof value === 'number' ? value : fallback
}

export function field(input: JsonValue, name: string): JsonValue | undefined {
  return typeof input === 'object' && input !== null && !Array.isArray(input) ? input[name] : undefined
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return count === 1 ? `1 ${one}` : `${count} ${many}`
}
