// `polylog copy`: opens the two databases by their addresses and copies one into the other.

import { closeSync, openSync, statSync } from 'node:fs'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { AppError } from '../errors/app-error.ts'
import { openPostgresSource, openPostgresTarget } from '../stores/postgres/copy-end.ts'
import { openSqliteSource, openSqliteTarget } from '../stores/sqlite/copy-end.ts'
import { type CopyOptions, type CopyResult, copyStore } from '../stores/store-copy.ts'
import { databaseName, prepareDatabaseFile, prepareDataFolder } from './data-folder.ts'

/** An address is `postgres://…`, a SQLite file, or a data folder. */
export async function copyAllData(
  { from, to }: { from: string; to: string },
  options: CopyOptions & { warn: (sentence: string) => void },
): Promise<CopyResult> {
  if (placeOf(from) === placeOf(to)) {
    throw new AppError('copy_refused', 'The source and the target are the same. Name two databases.')
  }
  const source = isUrl(from) ? await openPostgresSource(from) : openSqliteSource(placeOf(from))
  try {
    const target = isUrl(to) ? await openPostgresTarget(to) : openSqliteTarget(prepareTarget(placeOf(to), options.warn))
    try {
      return await copyStore(source, target, options)
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

function isUrl(address: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(address)
}

function placeOf(address: string): string {
  if (isUrl(address)) return address
  const path = resolve(address)
  const found = statSync(path, { throwIfNoEntry: false })
  // A name without an ending that does not exist yet is a data folder: servers need the folder, not a file of its name.
  const isFolder = found === undefined ? extname(path) === '' : found.isDirectory()
  return isFolder ? join(path, databaseName) : path
}

/** A new file that only its owner may read. */
function prepareTarget(file: string, warn: (sentence: string) => void): string {
  prepareDataFolder(dirname(file), warn)
  if (basename(file) === databaseName) return prepareDatabaseFile(dirname(file), warn)
  closeSync(openSync(file, 'a', 0o600))
  return file
}
