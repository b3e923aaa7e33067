// Backup and restore of the SQLite file of a data folder. A backup is made while the server runs; it is checked before it
// gets its name, so a file with that name is always whole. A restore needs the server to be stopped, and keeps what it
// replaces.

import { closeSync, createReadStream, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { AppError } from '../errors/app-error.ts'
import { logEndings } from '../stores/sqlite/command-log.ts'
import { type DatabaseFacts, inspectFile } from '../stores/sqlite/copy-file.ts'
import { lockFile } from '../stores/sqlite/process-lock.ts'
import { databaseName, fileErrorReason, prepareDataFolder } from './data-folder.ts'

const privateMode = 0o600
const progressMs = 200
const copyBytes = 4 * 1024 * 1024

export type BackupOptions = {
  dataDir: string
  target: string
  /** Replaces an existing file. */
  force: boolean
  /** The bytes that were written, and about how many there will be. */
  onProgress?: (bytes: number, total: number) => void
}

export async function backUpDatabase({ dataDir, target, force, onProgress }: BackupOptions): Promise<DatabaseFacts> {
  const file = join(dataDir, databaseName)
  const { bytes } = inspectFile(file)
  if (existsSync(target) && !force) {
    throw new AppError('config_invalid', `${target} exists; name another file, or use --force to replace it.`)
  }
  const partial = `${target}.partial`
  rmSync(partial, { force: true })
  try {
    // Created first, so that no other user can read it while it is written.
    closeSync(openSync(partial, 'wx', privateMode))
  } catch (cause) {
    const reason = fileErrorReason(cause, 'name another file')
    throw new AppError('config_invalid', `${target} cannot be written: ${reason}.`, { cause })
  }
  try {
    const damage = await runWorker(file, partial, () => onProgress?.(statSync(partial).size, bytes))
    if (damage.length > 0) throw new AppError('store_damaged', `The copy is damaged: ${damage.join('; ')}.`)
    const facts = inspectFile(partial)
    renameSync(partial, target)
    syncFolder(dirname(target))
    return facts
  } finally {
    rmSync(partial, { force: true })
  }
}

/** Copies `file`, or checks `target` as it is if `file` is null. Returns what is damaged. */
async function runWorker(file: string | null, target: string, onTick: () => void): Promise<string[]> {
  const worker = new Worker(new URL('./backup-worker.ts', import.meta.url), { workerData: { file, target } })
  const ticks = setInterval(onTick, progressMs)
  try {
    return await new Promise<string[]>((resolve, reject) => {
      worker.on('message', (message: 'copied' | string[]) => {
        if (Array.isArray(message)) resolve(message)
      })
      worker.once('error', reject)
      worker.once('exit', () => reject(new Error('the thread of the backup ended too early')))
    })
  } finally {
    clearInterval(ticks)
    await worker.terminate()
  }
}

export type RestoreOptions = {
  source: string
  dataDir: string
  force: boolean
  stamp: string
  /** The bytes that were copied, and how many there are. Called a last time when they are being checked. */
  onProgress?: (bytes: number, total: number) => void
}

/** `replaced` is where the old database is now; null if there was none. */
export async function restoreDatabase(options: RestoreOptions): Promise<DatabaseFacts & { replaced: string | null }> {
  const { source, dataDir, force, stamp, onProgress } = options
  const facts = inspectBackup(source)
  if (facts.migration > facts.knownMigration) {
    throw new AppError(
      'config_invalid',
      `${source} was written by a newer version (its tables are at ${facts.migration}, this version knows ${facts.knownMigration}). Use that version.`,
    )
  }
  prepareDataFolder(dataDir, () => {})
  const file = join(dataDir, databaseName)
  const lock = lockFile(file, 0)
  const partial = `${file}.partial`
  try {
    const isThere = existsSync(file)
    if (isThere && !force) {
      throw new AppError(
        'config_invalid',
        `${file} exists. Use --force to replace it; the old one is kept beside it under another name.`,
      )
    }
    await copyPrivately(source, partial, onProgress)
    // The copy is checked, and not the source: what is checked is what is used.
    const damage = await runWorker(null, partial, () => {})
    if (damage.length > 0) throw new AppError('store_damaged', `${source} is damaged: ${damage.join('; ')}.`)
    const replaced = isThere ? `${file}.before-${stamp}` : null
    // The WAL and the log belong to their database: they go with the old one.
    for (const ending of ['-wal', '-shm', ...logEndings, '']) {
      if (replaced !== null && existsSync(file + ending)) renameSync(file + ending, replaced + ending)
    }
    renameSync(partial, file)
    syncFolder(dataDir)
    return { ...facts, replaced }
  } finally {
    rmSync(partial, { force: true })
    lock.release()
  }
}

/** The error of a database in use would tell to restore it from a backup. */
function inspectBackup(source: string): DatabaseFacts {
  try {
    return inspectFile(source)
  } catch (cause) {
    if (!(cause instanceof AppError) || cause.code !== 'store_damaged') throw cause
    const message = `${source} is damaged, or it is not a SQLite file. Nothing was changed; restore another backup.`
    throw new AppError('store_damaged', message, { cause })
  }
}

async function copyPrivately(source: string, target: string, onProgress: RestoreOptions['onProgress']): Promise<void> {
  const { size } = statSync(source)
  rmSync(target, { force: true })
  const written = await open(target, 'wx', privateMode)
  try {
    let bytes = 0
    for await (const chunk of createReadStream(source, { highWaterMark: copyBytes }) as AsyncIterable<Buffer>) {
      await written.writeFile(chunk)
      bytes += chunk.length
      onProgress?.(bytes, size)
    }
    await written.sync()
  } finally {
    await written.close()
  }
}

/** A new name is safe on disk only after its folder is. */
function syncFolder(dir: string): void {
  const folder = openSync(dir, 'r')
  fsyncSync(folder)
  closeSync(folder)
}
