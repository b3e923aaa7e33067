// The version of the package, without loading the server.

import { readFileSync } from 'node:fs'

export function programVersion(): string {
  const file = new URL('../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
