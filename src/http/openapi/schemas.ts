// Cleans up the named schemas: one name for each shape, no unused schemas, and no unions
// with an empty member.

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

const prefix = '#/components/schemas/'

export function tidySchemas<T extends { paths: unknown; components: Record<string, unknown> }>(document: T): T {
  const simple = simplify(document as unknown as Json) as unknown as T
  const schemas = (simple.components['schemas'] ?? {}) as Record<string, Json>
  const used = reachable(simple.paths as Json, schemas)
  // The generator writes a request schema as `NameInput`, next to a `Name` that is often unused; use the short name then.
  const names = new Map(
    [...used].map((name) => {
      const short = name.replace(/Input$/, '')
      return [name, used.has(short) ? name : short]
    }),
  )
  const kept = Object.fromEntries([...used].toSorted().map((name) => [names.get(name) ?? name, schemas[name] ?? {}]))
  return rename(
    { ...simple, components: { ...simple.components, schemas: kept } } as unknown as Json,
    names,
  ) as unknown as T
}

function referencesIn(value: Json, found: Set<string>): void {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value) && typeof value['$ref'] === 'string') found.add(value['$ref'].slice(prefix.length))
  for (const inner of Object.values(value)) referencesIn(inner, found)
}

function reachable(from: Json, schemas: Record<string, Json>): Set<string> {
  const found = new Set<string>()
  referencesIn(from, found)
  // Iterating a Set also visits entries added during the loop, so indirect references are found, too.
  for (const name of found) referencesIn(schemas[name] ?? null, found)
  return found
}

function rename(value: Json, names: ReadonlyMap<string, string>): Json {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((inner) => rename(inner, names))
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) =>
      key === '$ref' && typeof inner === 'string'
        ? [key, prefix + (names.get(inner.slice(prefix.length)) ?? inner.slice(prefix.length))]
        : [key, rename(inner, names)],
    ),
  )
}

/** Removes an `anyOf` with an empty member, such as `anyOf: [{}, {type: null}]`, because it allows any value. */
function simplify(value: Json): Json {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(simplify)
  const { anyOf, ...rest } = value
  const says = (schema: Json) => Object.keys(schema ?? {}).some((key) => key !== 'description')
  if (Array.isArray(anyOf) && anyOf.some((schema) => !says(schema))) return simplify(rest)
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, simplify(inner)]))
}
