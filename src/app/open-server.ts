// Builds a server from checked settings: for main.ts, and for programs that embed it.

import { AppError } from '../errors/app-error.ts'
import type { CheckedConfig } from './check-config.ts'
import { compose } from './compose.ts'
import type { Config } from './config.ts'
import type { Log } from './log.ts'
import type { PolylogServer } from './polylog-server.ts'
import { riskySettings } from './risky-settings.ts'

export async function openServer(
  settings: Config,
  { tools, hooks }: Pick<CheckedConfig, 'tools' | 'hooks'>,
  log: Log,
  {
    environment,
    ownsProcess,
    hasStartScreen = false,
  }: {
    environment: Readonly<Record<string, string | undefined>>
    ownsProcess: boolean
    hasStartScreen?: boolean
  },
): Promise<PolylogServer> {
  for (const sentence of riskySettings(settings)) log.warn(sentence)
  const app = await compose(settings, log, {
    environment: { ...environment },
    tools,
    hooks,
    ownsProcess,
    hasStartScreen,
  })
  let url: string | undefined
  return {
    defaultModel: app.defaultModel,
    get url() {
      if (url === undefined) throw new AppError('config_invalid', 'The server has no URL before listen() has resolved.')
      return url
    },
    async listen() {
      url = await app.start()
      return url
    },
    close: () => app.stop(),
  }
}
