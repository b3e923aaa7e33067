// `polylog copy`: moves all data to another database, and proves that it arrived.

import type { Command } from 'commander'
import type { CliContext } from './context.ts'
import { CliError } from './exit-codes.ts'

export function registerCopy(program: Command, { output, clock }: CliContext): void {
  program
    .command('copy')
    .description('copy all data into another, empty database, and compare the two')
    .requiredOption('--from <database>', 'a SQLite file, a data folder, or postgres://…')
    .requiredOption('--to <database>', 'the same; it must be empty, or the target of a copy that did not end')
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      `
The source is read as of one moment; servers may go on using it, but what they write later is not copied. A copy that did not
end is begun again by the same command. Exit code 5: the copy differs from the source, and no server starts on it.

Examples:
  $ polylog copy --from ./data --to postgres://polylog@db.example/polylog
  $ polylog copy --from postgres://polylog@db.example/polylog --to ./data-new`,
    )
    .action(async (options: { from: string; to: string; json?: true }) => {
      const { copyAllData } = await import('../app/copy-store.ts')
      const bars = {
        copying: output.progress('copying', clock.monotonic),
        comparing: output.progress('comparing', clock.monotonic),
      }
      const result = await copyAllData(options, {
        warn: (sentence) => output.note(sentence),
        onProgress: ({ step, table, done, total }) => bars[step].update(done, total, ` ${table}`),
      })
      for (const bar of Object.values(bars)) bar.end()
      if (options.json === true) output.json(result)
      else {
        const rows = result.tables.filter(({ source, target }) => source.rows + target.rows > 0)
        output.table(
          ['TABLE', 'ROWS', 'HASH'],
          rows.map(({ table, source }) => [table, source.rows.toLocaleString('en'), source.hash.slice(0, 16)]),
        )
      }
      if (result.differences.length > 0) {
        const named = result.differences.map(({ table, ids }) =>
          ids.length === 0 ? table : `${table} (${ids.join(', ')})`,
        )
        throw new CliError(
          'checkFailed',
          `The copy differs from the source in ${named.join('; ')}. Copy again.`,
          'copy_differs',
        )
      }
      if (options.json !== true) output.line('The copy is equal to the source.')
    })
}
