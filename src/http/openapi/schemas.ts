// Named schemas as a reader expects them: one name for one shape, nothing unused, no
// union with a member that says nothing.

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

const prefix = '#/components/schemas/'

export function tidySchemas<T extends { paths: unknown; components: Record<string, unknown> }>(document: T): T {
  const simple = simplify(document as unknown as Json) as unknown as T
  const schemas = (simple.components['schemas'] ?? {}) as Record<string, Json>
  const used = reachable(simple.paths as Json, schemas)
  // A schema of requests only is generated as `NameInput`, beside a `Name` that nothing uses.
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
  // A set grows while it is walked: schemas that schemas refer to are found too.
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

/** `anyOf: [{}, {type: null}]` is anything at all. */
function simplify(value: Json): Json {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(simplify)
  const { anyOf, ...rest } = value
  const says = (schema: Json) => Object.keys(schema ?? {}).some((key) => key !== 'description')
  if (Array.isArray(anyOf) && anyOf.some((schema) => !says(schema))) return simplify(rest)
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, simplify(inner)]))
}
