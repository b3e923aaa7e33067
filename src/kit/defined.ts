// Removes the undefined fields of an object. With exactOptionalPropertyTypes an optional
// field may be absent, but not undefined. Do not use it in code that runs for every token,
// because it creates a second object.

export type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

export function defined<T extends object>(fields: T): Defined<T> {
  const kept: Record<string, unknown> = {}
  // Not of its keys as a list, because every run calls this dozens of times. The objects are literals and inherit no fields.
  for (const name in fields) {
    const value = fields[name]
    if (value !== undefined) kept[name] = value
  }
  return kept as Defined<T>
}
