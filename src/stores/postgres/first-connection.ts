// The first connection of a start: waits for a database that is not up yet, and checks that it
// can hold the store. Each problem that an operator can fix is one sentence, which never contains
// the URL, because the URL may contain a password.

import type { Pool } from 'pg'
import { AppError } from '../../errors/app-error.ts'
import type { Clock } from '../../kit/clock.ts'

/** The oldest version that its makers still repair. 140000 is PostgreSQL 14.0. */
const versionMin = 140_000

/** The wait between two attempts. */
const retryMs = 500

export type FirstConnectionOptions = {
  clock: Pick<Clock, 'monotonic'>
  /** How long to wait for a database that does not answer. */
  waitMs: number
  /** Waits. Unlike the timers of a clock it keeps the process alive, because nothing else does so early in a start. */
  pause: (ms: number) => Promise<void>
  /** Called once, before the first wait. */
  onWait?: (reason: string) => void
}

/** Throws `store_unavailable` if the database does not answer in time, `config_invalid` if it cannot be used as it is. */
export async function waitForDatabase(
  pool: Pool,
  { clock, waitMs, pause, onWait }: FirstConnectionOptions,
): Promise<void> {
  const startedAt = clock.monotonic()
  for (let attempt = 1; ; attempt += 1) {
    try {
      await checkDatabase(pool)
      return
    } catch (error) {
      if (error instanceof AppError) throw error
      const reason = absenceOf(error)
      if (reason === undefined || clock.monotonic() - startedAt >= waitMs) throw startError(error)
      if (attempt === 1) onWait?.(reason)
      await pause(retryMs)
    }
  }
}

type ServerFacts = { version: number; encoding: string; standby: boolean }

async function checkDatabase(pool: Pool): Promise<void> {
  const { rows } = await pool.query<ServerFacts>(
    `SELECT current_setting('server_version_num')::int AS version, current_setting('server_encoding') AS encoding,
       pg_is_in_recovery() AS standby`,
  )
  const [facts] = rows
  if (facts === undefined) throw new Error('the database told nothing about itself')
  checkFacts(facts)
}

export function checkFacts({ version, encoding, standby }: ServerFacts): void {
  if (version < versionMin) {
    throw new AppError(
      'config_invalid',
      `The database of POLYLOG_DATABASE_URL is PostgreSQL ${Math.floor(version / 10_000)}; this server needs version ${versionMin / 10_000} or newer.`,
    )
  }
  if (encoding !== 'UTF8') {
    throw new AppError(
      'config_invalid',
      `The database of POLYLOG_DATABASE_URL has the encoding ${encoding}; create one with ENCODING 'UTF8'.`,
    )
  }
  if (standby) {
    throw new AppError(
      'config_invalid',
      'POLYLOG_DATABASE_URL names a standby, which can only be read. Name the primary server.',
    )
  }
}

const absences: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens at its address',
  ECONNRESET: 'it closed the connection',
  EPIPE: 'it closed the connection',
  ENOENT: 'its socket does not exist',
  ENOTFOUND: 'the name of its host is not known',
  EAI_AGAIN: 'the name of its host cannot be looked up',
  ETIMEDOUT: 'its host does not answer',
  EHOSTUNREACH: 'its host cannot be reached',
  ENETUNREACH: 'its host cannot be reached',
  // Codes of PostgreSQL.
  '57P01': 'it is being stopped',
  '57P02': 'it crashed',
  '57P03': 'it is starting or stopping',
  '53300': 'it has no free connection (raise its max_connections, or lower POLYLOG_DATABASE_CONNECTIONS)',
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | null)?.code ?? '')
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Why the database is not there, if another attempt may find it. */
function absenceOf(error: unknown): string | undefined {
  // Node tries all addresses of a host and reports the failures together.
  if (error instanceof AggregateError) {
    for (const each of error.errors) {
      const reason = absenceOf(each)
      if (reason !== undefined) return reason
    }
  }
  const known = absences[codeOf(error)]
  if (known !== undefined) return known
  const text = textOf(error)
  if (/timeout|timed out/i.test(text)) return 'its host does not answer'
  return /connection terminated/i.test(text) ? 'it closed the connection' : undefined
}

const refusals: Readonly<Record<string, string>> = {
  '28P01': 'refused the password of POLYLOG_DATABASE_URL. Correct the user or the password.',
  '28000':
    'refused the user of POLYLOG_DATABASE_URL. Correct the user, or let it connect from this host (pg_hba.conf).',
  '3D000': 'has no database with the name in POLYLOG_DATABASE_URL. Create it (CREATE DATABASE), or correct the name.',
  '42501':
    'does not let the user of POLYLOG_DATABASE_URL create tables. Make it the owner of the database, or GRANT CREATE ON SCHEMA public to it.',
  '25006': 'is read-only. Let POLYLOG_DATABASE_URL name the primary server.',
}

/** What the operator is told if the start fails with this error. */
export function startError(error: unknown): AppError {
  if (error instanceof AppError) return error
  const absence = absenceOf(error)
  if (absence !== undefined) {
    return new AppError(
      'store_unavailable',
      `The database of POLYLOG_DATABASE_URL cannot be reached: ${absence}. Start PostgreSQL, or correct the URL.`,
      { cause: error },
    )
  }
  const known = refusals[codeOf(error)]
  if (known !== undefined) return new AppError('config_invalid', `PostgreSQL ${known}`, { cause: error })
  const text = textOf(error)
  if (text.startsWith('SASL')) {
    return new AppError('config_invalid', 'PostgreSQL asks for a password; put it into POLYLOG_DATABASE_URL.', {
      cause: error,
    })
  }
  if (/SSL|certificate/i.test(text)) {
    return new AppError(
      'config_invalid',
      'The encrypted connection to PostgreSQL failed. Correct sslmode in POLYLOG_DATABASE_URL, or name the certificate of its authority with sslrootcert.',
      { cause: error },
    )
  }
  return new AppError(
    'config_invalid',
    'The database of POLYLOG_DATABASE_URL cannot be used. Correct the URL; the log of PostgreSQL may have the reason.',
    { cause: error },
  )
}
