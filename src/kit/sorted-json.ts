// Canonical JSON: keys are sorted, so equal values always give the same text.

import { isRecord } from './is-record.ts'

export function sortedJson(value: unknown): string {
  const text = JSON.stringify(value, (_key, inner: unknown) =>
    isRecord(inner)
      ? Object.fromEntries(
          Object.entries(inner).toSorted(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0)),
        )
      : inner,
  ) as string | undefined
  return text ?? 'null'
}
