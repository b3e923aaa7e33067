// Finds options that an adapter of the AI SDK ignores. The adapters read the options that they know and say
// nothing about the others, so the options are handed over in an object that notes what is read.

export type WatchedOptions<Options> = { options: Options; unread(): string[] }

export function watchOptions<Options extends Record<string, unknown>>(options: Options): WatchedOptions<Options> {
  const read = new Set<string | symbol>()
  const watched = new Proxy(options, {
    get(target, name, receiver) {
      read.add(name)
      return Reflect.get(target, name, receiver) as unknown
    },
  })
  return { options: watched, unread: () => Object.keys(options).filter((name) => !read.has(name)) }
}
