// A folder with a polylog.config file, in which the package `polylog` is installed as npm
// installs a local folder: by a link to this clone.

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { ServerCommand } from './polylog-process.ts'

const root = join(import.meta.dirname, '../..')

export type ConfigFolder = {
  readonly path: string
  write(name: string, text: string): string
  /** Starts the server here, with Node's own options if given. */
  command(...nodeOptions: string[]): ServerCommand
  remove(): void
}

export function configFolder(): ConfigFolder {
  const path = mkdtempSync(join(tmpdir(), 'polylog-config-'))
  mkdirSync(join(path, 'node_modules'))
  symlinkSync(root, join(path, 'node_modules/polylog'), 'junction')
  writeFileSync(join(path, 'package.json'), '{ "type": "module" }\n')
  return {
    path,
    write(name, text) {
      const file = join(path, name)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text)
      return file
    },
    command: (...nodeOptions) => ({
      file: process.execPath,
      args: [...nodeOptions, join(root, 'src/app/main.ts')],
      cwd: path,
    }),
    remove: () => rmSync(path, { recursive: true, force: true }),
  }
}
