// The settings as the server reads them, for commands that work without it.

import { systemClock } from '../kit/clock.ts'
import { loadConfigFile } from './config-file.ts'
import { type Config, readConfig } from './config.ts'

/** Throws `config_invalid` with all problems. */
export async function loadSettings(environment: Readonly<Record<string, string | undefined>>): Promise<Config> {
  const { config } = await loadConfigFile({ ...environment }, process.cwd(), systemClock)
  return readConfig({ ...environment }, config)
}
