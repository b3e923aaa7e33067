// `npm start`: reads the configuration, serves, and stops in order on SIGTERM or SIGINT.
// An error that an operator can fix is printed to stderr as one sentence, without a stack
// trace; the exit code is 1.

import { AppError } from '../errors/app-error.ts'
import { systemClock } from '../kit/clock.ts'
import { compose } from './compose.ts'
import { describeConfig, readConfig, unknownSettings } from './config.ts'
import { riskySettings } from './risky-settings.ts'
import { createLog } from './log.ts'
import { Shutdown } from './shutdown.ts'

try {
  const config = readConfig(process.env)
  const log = createLog({ level: config.logLevel })
  const shutdown = new Shutdown({ clock: systemClock, log, exit: (code) => process.exit(code) })
  // Registered first, because the first process of a container has no default signal handlers.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => shutdown.onSignal(signal))
  exitWithNpm(shutdown)
  for (const { name } of unknownSettings(process.env)) log.warn(`${name} is not a setting of this server`)
  for (const sentence of riskySettings(config)) log.warn(sentence)
  log.info(describeConfig(config), 'settings')

  const app = await compose(config, log, process.env)
  shutdown.stopWith(() => app.stop())
  if (!shutdown.requested) {
    const address = await app.start()
    const who = config.auth.mode === 'open' ? 'open to everybody who can reach it' : 'a login is required'
    log.info(`Polylog serves at ${address} (API page: ${address}/docs), model ${app.defaultModel}, ${who}`)
  }
} catch (error) {
  const sentence = error instanceof AppError ? error.message : ((error as Error).stack ?? String(error))
  process.stderr.write(`Polylog cannot start. ${sentence}\n`)
  process.exit(1)
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
