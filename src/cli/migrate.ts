// `polylog migrate`: brings the tables of the database to this version before any server starts.

import type { Command } from 'commander'
import type { CliContext } from './context.ts'
import { CliError } from './exit-codes.ts'

export function registerMigrate(program: Command, context: CliContext): void {
  program
    .command('migrate')
    .description('bring the tables of the database to this version; a server does the same at its start')
    .option('--check', 'only list the migrations that are missing; ends with 5 if there are any')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Reads POLYLOG_DATABASE_URL, or POLYLOG_DATA, as the server does. Each migration is one transaction. Several may run at once:
one works, the others wait and find it done. Make a backup first.

Examples:
  $ polylog migrate --check
  $ POLYLOG_DATABASE_URL=postgres://polylog@db.example/polylog polylog migrate`,
    )
    .action(async (flags: { check?: true; json?: true }) => {
      const { output, environment } = context
      const { loadSettings } = await import('../app/load-settings.ts')
      const { migrateDatabase } = await import('../app/migrate-database.ts')
      const report = await migrateDatabase(await loadSettings(environment), {
        check: flags.check === true,
        note: (sentence) => output.note(sentence),
      })
      const { database, applied, pending } = report
      if (flags.json === true) output.json(report)
      else {
        for (const name of applied) output.line(`applied ${name}`)
        for (const name of pending) output.line(`missing ${name}`)
        if (pending.length === 0) output.line(`${database}: all migrations are applied.`)
      }
      if (pending.length > 0) {
        throw new CliError(
          'checkFailed',
          `${pending.length === 1 ? 'One migration is' : `${pending.length} migrations are`} missing. Run polylog migrate.`,
          'migrations_missing',
        )
      }
    })
}
