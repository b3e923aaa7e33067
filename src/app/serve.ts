// `polylog serve`: reads the configuration, serves, and stops in order on SIGTERM or SIGINT.
// An error that an operator can fix is printed to stderr as one sentence, without a stack
// trace; the exit code is 1.

import { AppError } from '../errors/app-error.ts'
import { systemClock } from '../kit/clock.ts'
import { letMainThreadGoBeforeV8 } from '../kit/thread-priority.ts'
import { loadConfigFile } from './config-file.ts'
import { version } from './compose.ts'
import { describeConfig, readConfig, unknownSettings } from './config.ts'
import { createLog, expendableStdout } from './log.ts'
import { openServer } from './open-server.ts'
import { Shutdown } from './shutdown.ts'
import { startScreen } from './start-screen.ts'
import { containUserCode } from './uncaught.ts'

const signals = ['SIGTERM', 'SIGINT'] as const

/** Resolves when the server listens; from then on signals end the process. */
export async function serve(): Promise<void> {
  try {
    // Registered first, because the first process of a container has no default signal handlers.
    const leave = () => process.exit(0)
    for (const signal of signals) process.on(signal, leave)
    const { file, config: inFile, warnings } = await loadConfigFile(process.env, process.cwd(), systemClock)
    const config = readConfig(process.env, inFile)
    const log = createLog({ level: config.logLevel, destination: expendableStdout() })
    const shutdown = new Shutdown({ clock: systemClock, log, exit: (code) => process.exit(code) })
    for (const signal of signals) process.on(signal, () => shutdown.onSignal(signal)).off(signal, leave)
    exitWithNpm(shutdown)
    letMainThreadGoBeforeV8(systemClock)
    for (const { name } of unknownSettings(process.env)) log.warn(`${name} is not a setting of this server`)
    for (const sentence of warnings) log.warn(sentence)
    log.debug({ configFile: file, ...describeConfig(config) }, 'settings')
    if (file !== null) containUserCode(log)

    const hasStartScreen = process.stdout.isTTY && log.isLevelEnabled('info')
    const server = await openServer(config, inFile, log, {
      environment: process.env,
      ownsProcess: true,
      hasStartScreen,
    })
    shutdown.stopWith(() => server.close())
    if (!shutdown.requested) {
      // The HTTP library logs its addresses; the start screen has them.
      if (hasStartScreen && config.logLevel === 'info') log.level = 'warn'
      const address = await server.listen()
      log.level = config.logLevel
      if (hasStartScreen) {
        const facts = { address, version, defaultModel: server.defaultModel, config, configFile: file }
        process.stdout.write(startScreen(facts))
        return
      }
      const who = config.auth.mode === 'open' ? 'open to everybody who can reach it' : 'a login is required'
      log.info(`Polylog serves at ${address} (API page: ${address}/docs), model ${server.defaultModel}, ${who}`)
    }
  } catch (error) {
    const sentence = error instanceof AppError ? error.message : ((error as Error).stack ?? String(error))
    process.stderr.write(`Polylog cannot start. ${sentence}\n`)
    process.exit(1)
  }
}

/**
 * Exits when the parent npm process is gone. If npm is killed, it sends us no signal; the server would keep its port and
 * data folder, and the next start would fail. Exiting at once is as safe as a crash. A stop in progress is not interrupted.
 */
function exitWithNpm(shutdown: Shutdown): void {
  if (process.env.npm_lifecycle_event === undefined || process.ppid === 1) return
  const npm = process.ppid
  setInterval(() => {
    if (process.ppid !== npm && !shutdown.requested) process.exit(1)
  }, 200).unref()
}
