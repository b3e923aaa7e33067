// Modules of the console that need no browser, for tests of what they compute. The client is that of the sources, as in the
// built console. The compiler does not follow these imports, because the console has settings of its own; a test names the types.

import { registerHooks } from 'node:module'

const clientSources = new URL('../../client/src/', import.meta.url)
const consoleSources = new URL('../../console/src/', import.meta.url)

registerHooks({
  resolve(specifier, context, next) {
    const named = /^@polylog\/client(?:\/(.+))?$/.exec(specifier)
    if (named === null) return next(specifier, context)
    return { url: new URL(`${named[1] ?? 'index'}.ts`, clientSources).href, shortCircuit: true }
  },
})

/** `path` is a file of console/src. */
export async function consoleModule<Exports>(path: string): Promise<Exports> {
  return (await import(new URL(path, consoleSources).href)) as Exports
}
