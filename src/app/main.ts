// `npm start`: reads the configuration, serves, and stops in order on SIGTERM or
// SIGINT. A second signal stops at once.

import { AppError } from '../errors/app-error.ts'
import { compose } from './compose.ts'
import { describeConfig, readConfig, unknownSettings } from './config.ts'
import { createLog } from './log.ts'

try {
  const config = readConfig(process.env)
  const log = createLog({ level: config.logLevel })
  for (const name of unknownSettings(process.env)) log.warn(`${name} is not a setting of this server; is it misspelt?`)
  const app = await compose(config, log, process.env)
  const address = await app.start()
  log.info(describeConfig(config), `Polylog serves at ${address} (API page: ${address}/docs)`)

  let stopping = false
  const stop = (signal: string) => {
    if (stopping) process.exit(1)
    stopping = true
    log.info({ signal }, 'stopping: no new runs, unfinished ones go on at the next start')
    app.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, 'the stop failed')
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', () => stop('SIGTERM'))
  process.on('SIGINT', () => stop('SIGINT'))
  exitWithNpm()
} catch (error) {
  // A wrong setting is the operator's to mend: a sentence, not a stack.
  const expected = error instanceof AppError || (error as { code?: string }).code === 'EADDRINUSE'
  process.stderr.write(
    `Polylog cannot start. ${expected ? (error as Error).message : ((error as Error).stack ?? String(error))}\n`,
  )
  process.exit(1)
}

/**
 * `npm start` that is killed cannot tell us; without this the server would go on alone, with its port and its data
 * folder, and the next start would fail. Ending at once is as safe as any crash.
 */
function exitWithNpm(): void {
  if (process.env.npm_lifecycle_event === undefined || process.ppid === 1) return
  const npm = process.ppid
  setInterval(() => {
    if (process.ppid !== npm) process.exit(1)
  }, 200).unref()
}
