// `polylog keys`: API keys that are stored in the database, as hashes.

import { type Command, InvalidArgumentError } from 'commander'
import type { KeyDesk } from '../app/key-desk.ts'
import type { ApiKeyRow } from '../stores/key-store.ts'
import type { CliContext } from './context.ts'
import { CliError } from './exit-codes.ts'
import { printableLine } from './output.ts'
import { localTime } from './times.ts'

type CreateFlags = { name?: string; expires?: number; json?: true }

const day = 24 * 60 * 60_000
const unitMs: Record<string, number> = { m: 60_000, h: 60 * 60_000, d: day, y: 365 * day }

export function registerKeys(program: Command, context: CliContext): void {
  const keys = program
    .command('keys')
    .description('make, list and revoke API keys')
    .addHelpText(
      'after',
      `
Keys are stored in the database of POLYLOG_DATABASE_URL or POLYLOG_DATA, also while servers use it. Only hashes are stored. A
new key works at once, and a revoked one is refused by every node within two seconds.

Examples:
  $ polylog keys create ada --name laptop --expires 90d
  $ KEY=$(polylog keys create prometheus)
  $ polylog keys list
  $ polylog keys revoke key_01KXYZ`,
    )
  keys
    .command('create')
    .description('make a key and print it; it cannot be shown again')
    .argument('<user>', 'the user that requests with this key come from')
    .option('--name <text>', 'a name, to tell keys apart')
    .option('--expires <time>', 'how long it works: 30m, 12h, 90d or 1y (default: until it is revoked)', duration)
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
The key alone goes to stdout, and everything else to stderr.

Examples:
  $ polylog keys create ada
  $ polylog keys create ci --name 'nightly tests' --expires 30d --json`,
    )
    .action(
      async (owner: string, flags: CreateFlags) =>
        await atDesk(context, async (desk) => {
          const request = { owner, name: flags.name ?? null, expiresInMs: flags.expires ?? null }
          const { key, row } = await desk.make(request)
          if (flags.json === true) {
            context.output.json({ key, ...viewOf(row) })
            return
          }
          const until = row.expiresAt === null ? '' : `, until ${localTime(row.expiresAt)}`
          context.output.note(`${row.id} for ${printableLine(row.owner)}${until}. Keep the key: it is not shown again.`)
          context.output.line(key)
        }),
    )
  keys
    .command('list')
    .description('list the keys, newest first; never the keys themselves')
    .option('--user <id>', 'only those of a user')
    .option('--json', 'print JSON, one key on each line')
    .addHelpText('after', `\nExamples:\n  $ polylog keys list\n  $ polylog keys list --user ada --json`)
    .action(
      async (flags: { user?: string; json?: true }) => await atDesk(context, (desk) => list(desk, flags, context)),
    )
  keys
    .command('revoke')
    .description('make a key useless; every node refuses it within two seconds')
    .argument('<id>', 'the id of the key, as keys list shows it')
    .option('--json', 'print JSON')
    .addHelpText('after', `\nExamples:\n  $ polylog keys revoke key_01KXYZ`)
    .action(
      async (id: string, flags: { json?: true }) =>
        await atDesk(context, async (desk) => {
          const row = await desk.revoke(id)
          if (row === undefined)
            throw new CliError('notFound', `There is no key ${printableLine(id)}.`, 'key_not_found')
          if (flags.json === true) context.output.json(viewOf(row))
          else context.output.line(`${row.id} of ${printableLine(row.owner)} is revoked.`)
        }),
    )
}

async function atDesk(
  { environment, clock, output }: CliContext,
  work: (desk: KeyDesk) => Promise<void>,
): Promise<void> {
  const { loadSettings } = await import('../app/load-settings.ts')
  const { KeyDesk: Desk } = await import('../app/key-desk.ts')
  const desk = await Desk.open(await loadSettings(environment), clock, (sentence) => output.note(sentence))
  try {
    await work(desk)
  } finally {
    await desk.close()
  }
}

async function list(
  desk: KeyDesk,
  flags: { user?: string; json?: true },
  { output, clock }: CliContext,
): Promise<void> {
  const rows = await desk.list(flags.user)
  if (flags.json === true) {
    for (const row of rows) output.json(viewOf(row))
    return
  }
  if (rows.length === 0) {
    output.note('There are no such keys. Make one: polylog keys create <user>')
    return
  }
  const now = clock.now()
  output.table(
    ['KEY', 'USER', 'NAME', 'CREATED', 'LAST USED', 'STATE'],
    rows.map((row) => [
      row.id,
      row.owner,
      row.name ?? '',
      localTime(row.createdAt),
      row.lastUsedAt === null ? 'never' : localTime(row.lastUsedAt),
      stateOf(row, now),
    ]),
  )
}

function stateOf({ revokedAt, expiresAt }: ApiKeyRow, now: number): string {
  if (revokedAt !== null) return `revoked ${localTime(revokedAt)}`
  if (expiresAt === null) return 'valid'
  return `${expiresAt <= now ? 'expired' : 'valid until'} ${localTime(expiresAt)}`
}

function viewOf({ owner, createdAt, expiresAt, revokedAt, lastUsedAt, ...row }: ApiKeyRow): Record<string, unknown> {
  return {
    ...row,
    userId: owner,
    createdAtMs: createdAt,
    expiresAtMs: expiresAt,
    revokedAtMs: revokedAt,
    lastUsedAtMs: lastUsedAt,
  }
}

function duration(text: string): number {
  const [, count, unit] = /^([1-9]\d{0,5})([mhdy])$/.exec(text) ?? []
  if (count === undefined || unit === undefined) {
    throw new InvalidArgumentError('It has to be a number with a unit: 30m, 12h, 90d or 1y.')
  }
  return Number(count) * (unitMs[unit] ?? 0)
}
