// `polylog backup` and `polylog restore`: a whole, checked copy of the database, made while the server runs.

import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { CliContext } from './context.ts'
import { CliError } from './exit-codes.ts'
import { bytesText, durationText, fileStamp } from './times.ts'

type BackupFlags = { force?: boolean; json?: boolean }

export function registerBackup(program: Command, context: CliContext): void {
  program
    .command('backup')
    .description('copy the database to a file, also while the server runs')
    .argument('[file]', 'where to write it (default: polylog-backup-<time>.db)')
    .option('--force', 'replace the file if it exists')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Reads POLYLOG_DATA as the server does. The copy is one moment of the database and is checked before it gets its name.
The workspace folder is not part of it: copy it with the tools of your system. For PostgreSQL, use pg_dump.

Examples:
  $ polylog backup
  $ POLYLOG_DATA=/var/lib/polylog polylog backup /backups/polylog.db --force`,
    )
    .action(async (file: string | undefined, flags: BackupFlags) => await backUp(file, flags, context))

  program
    .command('restore')
    .description('put a backup into the data folder; the server has to be stopped')
    .argument('<file>', 'the backup')
    .option('--force', 'replace the database that is there; it is kept under another name')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ polylog restore polylog-backup-20261116-184606.db
  $ POLYLOG_DATA=/var/lib/polylog polylog restore /backups/polylog.db --force`,
    )
    .action(async (file: string, flags: BackupFlags) => await restore(file, flags, context))
}

async function sqliteFolder(context: CliContext, command: 'backup' | 'restore'): Promise<string> {
  const { loadSettings } = await import('../app/load-settings.ts')
  const { databaseUrl, dataDir } = await loadSettings(context.environment)
  if (databaseUrl === null) return dataDir
  const { urlWithoutSecrets } = await import('../app/settings.ts')
  const url = urlWithoutSecrets(databaseUrl) ?? ''
  const tool =
    command === 'backup'
      ? `pg_dump --format=custom --file=polylog.dump "${url}"`
      : `pg_restore --clean --if-exists --dbname="${url}" polylog.dump`
  throw new CliError(
    'failed',
    `The data is in PostgreSQL, which has its own tool for this: ${tool}`,
    'use_postgres_tools',
  )
}

async function backUp(file: string | undefined, flags: BackupFlags, context: CliContext): Promise<void> {
  const { output, clock } = context
  const dataDir = await sqliteFolder(context, 'backup')
  const { backUpDatabase } = await import('../app/backup.ts')
  const target = resolve(file ?? `polylog-backup-${fileStamp(clock.now())}.db`)
  const progress = output.progress('copying', () => clock.monotonic())
  const startedAt = clock.monotonic()
  const facts = await backUpDatabase({
    dataDir,
    target,
    force: flags.force === true,
    onProgress: (bytes, total) => progress.update(bytes, total, ' bytes'),
  }).finally(() => progress.end())
  if (flags.json === true) output.json({ file: target, ...facts })
  else {
    const took = durationText(clock.monotonic() - startedAt)
    output.line(
      `${target}: ${bytesText(facts.bytes)}, ${facts.conversations} conversations, ${facts.runs} runs, checked, in ${took}`,
    )
  }
}

async function restore(file: string, flags: BackupFlags, context: CliContext): Promise<void> {
  const { output, clock } = context
  const dataDir = await sqliteFolder(context, 'restore')
  const { restoreDatabase } = await import('../app/backup.ts')
  const source = resolve(file)
  const progress = output.progress('restoring', () => clock.monotonic())
  const facts = await restoreDatabase({
    source,
    dataDir,
    force: flags.force === true,
    stamp: fileStamp(clock.now()),
    onProgress: (bytes, total) => progress.update(bytes, total, ' bytes'),
  }).finally(() => progress.end())
  if (flags.json === true) output.json({ file: source, dataDir, ...facts })
  else {
    output.line(`${dataDir}: ${facts.conversations} conversations, ${facts.runs} runs restored.`)
    if (facts.replaced !== null) output.line(`The database that was there is now ${facts.replaced}.`)
  }
}
