// The commands, their help, and how an error becomes a sentence and an exit code. Commands load what they need when they
// run, so that `polylog --help` is fast.

import { Command, CommanderError } from 'commander'
import { PolylogError } from '../../client/src/error.ts'
import { AppError } from '../errors/app-error.ts'
import { nearestName } from '../kit/nearest-name.ts'
import { registerBackup } from './backup.ts'
import { registerChat } from './chat.ts'
import { failureOfRequest } from './connection.ts'
import { registerDoctor } from './doctor.ts'
import { registerCopy } from './copy.ts'
import { CliError, type ExitName, exitCodes } from './exit-codes.ts'
import type { CliContext, RegisterCommand } from './context.ts'
import { registerKeys } from './keys.ts'
import { registerMigrate } from './migrate.ts'
import { registerReplay } from './replay.ts'
import { registerRuns } from './runs.ts'
import { registerServe } from './serve.ts'
import { registerShow } from './show.ts'
import { registerExport } from './transfer.ts'
import { registerTail } from './tail.ts'
import { programVersion } from './version.ts'

const commands: readonly RegisterCommand[] = [
  registerServe,
  registerChat,
  registerRuns,
  registerShow,
  registerTail,
  registerReplay,
  registerExport,
  registerBackup,
  registerDoctor,
  registerMigrate,
  registerKeys,
  registerCopy,
]

/** The exit code; undefined if the command keeps the process running. */
export async function runCommandLine(args: readonly string[], context: CliContext): Promise<number | undefined> {
  const asJson = args.includes('--json')
  try {
    const program = buildProgram(context)
    refuseUnknownCommand(program, args)
    await program.parseAsync([...args], { from: 'user' })
    return undefined
  } catch (error) {
    const { exit, code, message } = failureOf(error)
    if (message !== '')
      context.output.note(asJson ? JSON.stringify({ error: { code, message } }) : `polylog: ${message}`)
    return exitCodes[exit]
  }
}

export function buildProgram(context: CliContext): Command {
  const program = new Command('polylog')
  program
    .description(
      'Runs AI agents: one durable journal per run, read live, resumed or replayed. Without a command, it serves.',
    )
    .version(programVersion(), '--version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command]', 'show the help of a command')
    .addHelpText(
      'after',
      `
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 cannot connect, 5 a check failed.
Every command has examples: polylog help <command>.`,
    )
  for (const register of commands) register(program, context)
  for (const command of [program, ...program.commands, ...program.commands.flatMap((each) => each.commands)]) {
    command.exitOverride().configureOutput({ writeErr: () => {} })
  }
  return program
}

/** Without this check the name would be an argument of the default command. */
function refuseUnknownCommand(program: Command, args: readonly string[]): void {
  const [first] = args[0] === 'help' ? args.slice(1) : args
  if (first === undefined || first.startsWith('-')) return
  const known = ['help', ...program.commands.flatMap((command) => [command.name(), ...command.aliases()])]
  if (known.includes(first)) return
  const meant = nearestName(first, known)
  const hint = meant === undefined ? 'Run polylog --help for the list of commands.' : `Did you mean ${meant}?`
  throw new CliError('usage', `There is no command ${first}. ${hint}`)
}

function failureOf(error: unknown): Pick<CliError, 'exit' | 'code' | 'message'> {
  if (error instanceof CliError) return error
  if (error instanceof CommanderError) {
    // Help and version were printed; they are reported as errors with exit code 0.
    if (error.exitCode === 0) return { exit: 'ok', code: 'ok', message: '' }
    if (error.code === 'commander.help') {
      return { exit: 'usage', code: 'usage', message: 'Say what to do. Add --help for the list of commands.' }
    }
    return { exit: 'usage', code: 'usage', message: error.message.replace(/^error: /, '').replace(/([^.?)])$/, '$1.') }
  }
  if (error instanceof PolylogError) return failureOfRequest(error)
  if (error instanceof AppError) {
    return { exit: exitOf(error), code: error.code, message: error.message }
  }
  return {
    exit: 'failed',
    code: 'failed',
    message: error instanceof Error ? (error.stack ?? error.message) : String(error),
  }
}

function exitOf({ code }: AppError): ExitName {
  if (code === 'invalid_request') return 'usage'
  return code === 'store_damaged' ? 'checkFailed' : 'failed'
}
