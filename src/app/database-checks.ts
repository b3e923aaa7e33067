// The checks of `polylog doctor` on the database: its migrations and settings, the nodes that use it, their leases, runs
// that are stuck, and how fast it answers. They change nothing.

import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../errors/app-error.ts'
import { hasAuthSecret } from '../http/caller.ts'
import { systemClock } from '../kit/clock.ts'
import { withStuckReasons } from '../runs/run-overview.ts'
import type { DatabaseWork } from '../stores/database-work.ts'
import { inspectPostgres, inspectPostgresWork, type PostgresWork } from '../stores/postgres/inspect.ts'
import { damageOf, type FileWork, inspectFile, inspectFileWork } from '../stores/sqlite/copy-file.ts'
import { lockFile } from '../stores/sqlite/process-lock.ts'
import type { Config } from './config.ts'
import { databaseName } from './data-folder.ts'
import type { DiagnosticCheck } from './diagnosis.ts'
import { urlWithoutSecrets } from './settings.ts'

/** The log is truncated to 64 MiB after each checkpoint; far more means that a reader holds checkpoints up. */
const walBytesMax = 512 * 1024 * 1024
/** Every commit of a run waits for the database at least once. */
const slowQueryMs = 50
const slowHintMs = 250
/** Beyond this, times of the journal and of the log cannot be compared. */
const clockDifferenceMs = 2_000
/** A lease that has just run out is about to be taken over. */
const takeoverMs = 10_000
/** More ids say no more. */
const namedMax = 5

export async function checkDatabase(config: Config, { deep }: { deep: boolean }): Promise<DiagnosticCheck[]> {
  try {
    return config.databaseUrl === null ? checkFile(config, deep) : await checkPostgres(config, config.databaseUrl)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return [{ name: 'database', status: 'fail', sentence: error.message }]
  }
}

function checkFile(config: Config, deep: boolean): DiagnosticCheck[] {
  const name = 'database'
  const file = join(config.dataDir, databaseName)
  if (!existsSync(file) || statSync(file).size === 0) {
    return [{ name, status: 'ok', sentence: 'There is no database yet; the first start creates it.' }]
  }
  const facts = inspectFile(file)
  const checks = [
    migrationCheck(facts, `${facts.conversations} conversations, ${facts.runs} runs (${facts.openRuns} not ended)`),
  ]
  const damage = deep ? damageOf(file) : []
  if (damage.length > 0) {
    checks.push({
      name,
      status: 'fail',
      sentence: `The file is damaged: ${damage.join('; ')}. Restore a backup: polylog restore <file>.`,
    })
  } else if (deep) checks.push({ name, status: 'ok', sentence: 'Every page of the file was read, and it is sound.' })
  const inUse = isInUse(file)
  checks.push({ name, status: 'ok', sentence: inUse ? 'A server uses it now.' : 'No server uses it now.' })
  if (facts.migration !== facts.knownMigration) return checks
  const work = inspectFileWork(file, systemClock.now())
  return [...checks, ...fileSettingChecks(work), ...loginChecks(work, config), ...workChecks(work, { isServed: inUse })]
}

function fileSettingChecks({ journalMode, walBytes }: FileWork): DiagnosticCheck[] {
  const name = 'database'
  const checks: DiagnosticCheck[] = []
  if (journalMode !== 'wal') {
    checks.push({
      name,
      status: 'warn',
      sentence: `The journal mode of the file is ${journalMode}; the next start sets it to wal.`,
    })
  }
  if (walBytes > walBytesMax) {
    checks.push({
      name,
      status: 'warn',
      sentence: `The write-ahead log has ${Math.round(walBytes / 1024 / 1024)} MiB. Another program keeps the file open for reading; end it.`,
      details: { walBytes },
    })
  }
  return checks
}

function isInUse(file: string): boolean {
  if (!existsSync(`${file}.lock`)) return false
  try {
    lockFile(file, 0).release()
    return false
  } catch (error) {
    return error instanceof AppError && error.details?.['locked'] === true
  }
}

async function checkPostgres(config: Config, url: string): Promise<DiagnosticCheck[]> {
  const facts = await inspectPostgres(url)
  const where = `PostgreSQL ${facts.version} at ${urlWithoutSecrets(url)}`
  const checks = [migrationCheck(facts, `${where}: ${facts.runs} runs (${facts.openRuns} not ended)`)]
  if (facts.migration !== facts.knownMigration) return checks
  const work = await inspectPostgresWork(url, systemClock)
  const isServed = work.nodes.some(({ live }) => live)
  return [
    ...checks,
    ...postgresSettingChecks(work, config),
    ...lagChecks(work, config),
    ...loginChecks(work, config),
    ...workChecks(work, { isServed }),
  ]
}

function postgresSettingChecks({ settings, nodes }: PostgresWork, config: Config): DiagnosticCheck[] {
  const name = 'database settings'
  const problems: DiagnosticCheck[] = []
  const add = (status: 'warn' | 'fail', sentence: string) =>
    problems.push({ name, status, sentence, details: settings })
  if (!settings.fsync) add('fail', 'fsync is off: a crash of its machine may damage the database. Turn it on.')
  if (!settings.fullPageWrites)
    add('warn', 'full_page_writes is off: a crash of its machine may damage pages. Turn it on.')
  if (settings.synchronousCommit === 'off') {
    add(
      'fail',
      'synchronous_commit is off: a crash may lose runs that were accepted. Turn it on; the server turns it off where that is safe.',
    )
  }
  const live = Math.max(1, nodes.filter((node) => node.live).length)
  const needed = live * (config.databaseConnections + 1)
  const free = settings.connectionsMax - settings.connectionsReserved
  if (needed > free) {
    add(
      'warn',
      `${live} nodes with POLYLOG_DATABASE_CONNECTIONS=${config.databaseConnections} may need ${needed} connections, and the database has ${free}. Raise max_connections, or lower the setting.`,
    )
  }
  if (problems.length > 0) return problems
  return [
    {
      name,
      status: 'ok',
      sentence: `Commits are safe, and ${settings.connectionsUsed} of ${free} connections are used.`,
      details: settings,
    },
  ]
}

function lagChecks({ queryMs, hintMs, now }: PostgresWork, { bus }: Config): DiagnosticCheck[] {
  const name = 'lag'
  const details = { queryMs, hintMs, clockDifferenceMs: now - systemClock.now() }
  const problems: DiagnosticCheck[] = []
  const warn = (sentence: string) => problems.push({ name, status: 'warn', sentence, details })
  if (queryMs > slowQueryMs) warn(`A query takes ${Math.round(queryMs)} ms. Place the servers near the database.`)
  if (hintMs === null && bus === 'postgres') {
    problems.push({
      name,
      status: 'fail',
      sentence:
        'The database takes LISTEN and delivers nothing. Connect without a pooler, or set POLYLOG_BUS to a NATS server.',
      details,
    })
  } else if (hintMs !== null && hintMs > slowHintMs) warn(`A hint between nodes takes ${Math.round(hintMs)} ms.`)
  if (Math.abs(details.clockDifferenceMs) > clockDifferenceMs) {
    warn(`The clocks of this machine and of the database differ by ${Math.round(details.clockDifferenceMs / 1000)} s.`)
  }
  if (problems.length > 0) return problems
  const hint = hintMs === null ? '' : `, and a hint between nodes ${shownMs(hintMs)}`
  return [{ name, status: 'ok', sentence: `A query takes ${shownMs(queryMs)}${hint}.`, details }]
}

function shownMs(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

/** The server refuses to start if nobody can log in. */
function loginChecks({ apiKeys }: DatabaseWork, { auth }: Config): DiagnosticCheck[] {
  if (auth.mode !== 'required' || hasAuthSecret(auth) || apiKeys > 0) return []
  const sentence = 'A login is required, and there is none: make an API key with polylog keys create <user>.'
  return [{ name: 'logins', status: 'fail', sentence }]
}

/** `isServed`: a server uses the database now. */
function workChecks(work: DatabaseWork, { isServed }: { isServed: boolean }): DiagnosticCheck[] {
  const { nodes, openRuns, now } = work
  if (!isServed) {
    const waiting = openRuns.length === 0 ? 'no run waits' : `${openRuns.length} runs go on at the next start`
    return [{ name: 'nodes', status: 'ok', sentence: `No node works now; ${waiting}.` }]
  }
  return [nodeCheck(nodes), leaseCheck(openRuns, now), ...stuckChecks(openRuns, now)]
}

function nodeCheck(nodes: DatabaseWork['nodes']): DiagnosticCheck {
  const name = 'nodes'
  const live = nodes.filter((node) => node.live)
  const listed = nodes.map((node) => {
    const state = node.live ? (node.draining ? 'draining' : 'live') : 'dead'
    return { name: node.name, version: node.version, state, running: node.running }
  })
  const details = { nodes: listed }
  if (live.length === 0) {
    return { name, status: 'fail', sentence: 'A server has the database open, but its heartbeat has stopped.', details }
  }
  const versions = [...new Set(live.map(({ version }) => version))]
  const shown = live.map((node) => `${node.name} (${node.running} runs${node.draining ? ', draining' : ''})`).join(', ')
  if (versions.length > 1) {
    const sentence = `The live nodes have different versions (${versions.join(', ')}): ${shown}. Finish the upgrade.`
    return { name, status: 'warn', sentence, details }
  }
  const dead = nodes.length - live.length
  const gone = dead === 0 ? '' : `; ${dead} ended without saying so in the last day`
  return { name, status: 'ok', sentence: `${live.length} live: ${shown}${gone}.`, details }
}

function leaseCheck(openRuns: DatabaseWork['openRuns'], now: number): DiagnosticCheck {
  const leased = openRuns.filter(({ leaseOwner }) => leaseOwner !== null)
  const overdue = leased.filter(({ leaseUntil }) => leaseUntil !== null && now - leaseUntil > takeoverMs)
  const details = { leases: leased.length, overdue: overdue.length }
  const name = 'leases'
  if (overdue.length === 0) {
    return { name, status: 'ok', sentence: `${leased.length} runs have a lease, and all are renewed.`, details }
  }
  const ids = namesOf(overdue.map(({ id }) => id))
  const sentence = `${overdue.length} runs have a lease that has run out, and no node has taken them over: ${ids}.`
  return { name, status: 'fail', sentence, details }
}

const stuckSentences = {
  no_node: 'should run, and no node has them',
  cancel_pending: 'were to be cancelled more than 30 s ago',
  queued_long: 'have been queued for more than a minute; the nodes may be full',
  deadline_passed: 'should have gone on more than 30 s ago',
} as const

function stuckChecks(openRuns: DatabaseWork['openRuns'], now: number): DiagnosticCheck[] {
  const name = 'stuck runs'
  const judged = withStuckReasons(openRuns, now)
  const checks: DiagnosticCheck[] = []
  for (const [reason, sentence] of Object.entries(stuckSentences)) {
    const ids = judged.filter(({ stuck }) => stuck === reason).map(({ run }) => run.id)
    if (ids.length === 0) continue
    checks.push({
      name,
      status: reason === 'queued_long' ? 'warn' : 'fail',
      sentence: `${ids.length} runs ${sentence}: ${namesOf(ids)}.`,
      details: { reason, count: ids.length, runIds: ids.slice(0, namedMax) },
    })
  }
  if (checks.length > 0) return checks
  return [{ name, status: 'ok', sentence: `None of ${openRuns.length} unfinished runs is stuck.` }]
}

function namesOf(ids: readonly string[]): string {
  return `${ids.slice(0, namedMax).join(', ')}${ids.length > namedMax ? ' …' : ''}`
}

function migrationCheck(
  facts: { migration: number; knownMigration: number; bytes: number },
  content: string,
): DiagnosticCheck {
  const { migration, knownMigration } = facts
  const name = 'database'
  if (migration > knownMigration) {
    const sentence = `A newer version wrote the database (its tables are at ${migration}, this version knows ${knownMigration}); use that version.`
    return { name, status: 'fail', sentence, details: facts }
  }
  if (migration < knownMigration) {
    const sentence = `${content}; its tables are at ${migration} and the next start, or polylog migrate, brings them to ${knownMigration}. Make a backup first.`
    return { name, status: 'warn', sentence, details: facts }
  }
  return { name, status: 'ok', sentence: `${content}; all migrations are applied.`, details: facts }
}
