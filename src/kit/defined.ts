// An object without the fields that are undefined. Under exactOptionalPropertyTypes an
// optional field may be absent and may not be undefined; this says so in one word. Not for
// code that runs for every token: it makes a second object.

export type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

export function defined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>
}
