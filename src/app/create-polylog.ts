// `createPolylog`: the server inside of another program. It reads no environment by itself,
// installs no signal handlers, never ends the process and keeps nothing outside of the server
// that it returns, so several servers can live in one process, each with its own data folder.

import { checkConfig } from './check-config.ts'
import { readConfig } from './config.ts'
import type { PolylogConfig } from './define-config.ts'
import { createLog } from './log.ts'
import { openServer } from './open-server.ts'
import type { PolylogServer } from './polylog-server.ts'

export type PolylogOptions = {
  /**
   * Variables that win over the configuration, usually `process.env`. Absent: none are read, so that a variable such as
   * PORT, which is meant for the whole program, does not change its servers.
   */
  environment?: Readonly<Record<string, string | undefined>>
}

export async function createPolylog(config: PolylogConfig = {}, options: PolylogOptions = {}): Promise<PolylogServer> {
  const checked = checkConfig(config, { folder: process.cwd(), placeOf: () => null })
  const settings = readConfig({ ...options.environment }, checked)
  const log = createLog({ level: settings.logLevel })
  // MCP servers that are child processes need PATH and others, whoever configures them.
  return await openServer(settings, checked, log, {
    environment: options.environment ?? process.env,
    ownsProcess: false,
  })
}
