// `polylog doctor`: checks the settings, the data and the providers of this machine, and with --url a running server with
// everything between. Ends with 5 if a check fails, so that a deployment can use it.

import type { Command } from 'commander'
import type { DiagnosticCheck } from '../app/diagnosis.ts'
import { PolylogError } from '../../client/src/error.ts'
import { doctorStream } from '../../client/src/doctor.ts'
import { connectTo, failureOfRequest } from './connection.ts'
import type { CliContext } from './context.ts'
import { CliError } from './exit-codes.ts'
import { printableLine } from './output.ts'
import { wholeNumber } from './runs.ts'
import { stylesOf } from './styles.ts'

type DoctorFlags = {
  url?: string
  user?: string
  token?: string
  json?: boolean
  providers?: boolean
  deep?: boolean
  frames: number
  interval: number
}

export function registerDoctor(program: Command, context: CliContext): void {
  program
    .command('doctor')
    .description('check the settings, the data, the providers, and the way to a running server')
    .option('--providers', 'ask each provider for one token, which costs a little')
    .option('--deep', 'read every page of the database file')
    .option('--url <url>', 'check a running server instead: is it healthy, and do streams arrive as they are sent?')
    .option('--user <id>', 'the user for --url, if the server requires no login')
    .option('--token <token>', 'an API key or token for --url (better: set POLYLOG_TOKEN)')
    .option('--frames <number>', 'with --url: how many frames are sent', wholeNumber, 12)
    .option(
      '--interval <ms>',
      'with --url: the time between two frames; 60000 finds proxies that cut idle streams',
      wholeNumber,
      250,
    )
    .option('--json', 'print JSON, one check on each line')
    .addHelpText(
      'after',
      `
Ends with 0 if no check fails (warnings are allowed), and with 5 otherwise.

Examples:
  $ polylog doctor
  $ polylog doctor --providers --json
  $ polylog doctor --url https://agents.example.com`,
    )
    .action(async (flags: DoctorFlags) => {
      const checks = flags.url === undefined ? await checkMachine(flags, context) : await checkServer(flags, context)
      report(checks, flags, context)
    })
}

async function checkMachine(flags: DoctorFlags, { environment }: CliContext): Promise<DiagnosticCheck[]> {
  const diagnosis = await import('../app/diagnosis.ts')
  const { checkDatabase } = await import('../app/database-checks.ts')
  const { checks, config } = await diagnosis.checkSettings(environment)
  if (config === null) return checks
  return [
    ...checks,
    ...diagnosis.checkNamedFiles(config),
    ...diagnosis.checkDataFolder(config),
    ...(await checkDatabase(config, { deep: flags.deep === true })),
    ...(await diagnosis.checkProviders(config, environment, { ask: flags.providers === true })),
  ]
}

async function checkServer(flags: DoctorFlags, context: CliContext): Promise<DiagnosticCheck[]> {
  const { options, transport, url } = connectTo(flags, context)
  const checks: DiagnosticCheck[] = []
  try {
    const health = await transport.json<{ status?: string; version?: string }>({ method: 'GET', path: '/v1/health' })
    const sentence = `${url} answers${health.version === undefined ? '' : `, version ${health.version}`}.`
    checks.push({ name: 'server', status: 'ok', sentence, details: health })
    await transport.json({ method: 'GET', path: '/v1/ready' })
    checks.push({ name: 'ready', status: 'ok', sentence: 'It can take work.' })
  } catch (error) {
    if (!(error instanceof PolylogError)) throw error
    const { exit, message } = failureOfRequest(error)
    if (exit === 'cannotConnect') throw error
    checks.push({ name: checks.length === 0 ? 'server' : 'ready', status: 'fail', sentence: message })
  }
  try {
    const report = await doctorStream({ ...options, frames: flags.frames, intervalMs: flags.interval })
    const { delayMs, findings, observation } = report
    for (const { message, advice, problem } of findings) {
      checks.push({ name: 'stream', status: 'fail', sentence: `${message} ${advice}`, details: { problem } })
    }
    if (report.ok) {
      const sentence = `${observation.received.length} frames came one by one, with at most ${delayMs.max} ms of delay.`
      checks.push({ name: 'stream', status: 'ok', sentence, details: { delayMs } })
    }
  } catch (error) {
    if (!(error instanceof PolylogError)) throw error
    checks.push({ name: 'stream', status: 'fail', sentence: failureOfRequest(error).message })
  }
  return checks
}

function report(checks: readonly DiagnosticCheck[], flags: DoctorFlags, context: CliContext): void {
  const { output } = context
  const styles = stylesOf(context)
  const marks = { ok: styles.green('✔'), warn: styles.yellow('!'), fail: styles.red('✖') }
  for (const check of checks) {
    if (flags.json === true) output.json(check)
    else output.line(`${marks[check.status]} ${check.name}: ${printableLine(check.sentence)}`)
  }
  const failed = checks.filter(({ status }) => status === 'fail').length
  if (failed > 0)
    throw new CliError('checkFailed', failed === 1 ? 'One check failed.' : `${failed} checks failed.`, 'check_failed')
}
