// What a person sees when the server has started in a terminal: where it is, what answers, where the data is, and what to
// try. One screen; the settings are in the log at level debug.

import type { Config } from './config.ts'
import { urlWithoutSecrets } from './settings.ts'

export type StartFacts = {
  address: string
  version: string
  defaultModel: string
  config: Pick<Config, 'auth' | 'dataDir' | 'databaseUrl'>
  configFile: string | null
}

export function startScreen({ address, version, defaultModel, config, configFile }: StartFacts): string {
  const isDemo = defaultModel === 'demo/demo'
  const isOpen = config.auth.mode === 'open'
  const where = new URL(address)
  const url = where.port === '3000' ? '' : ` --url ${address}`
  const rows: [string, string][] = [
    ['console', `${address}/`],
    ['API page', `${address}/docs`],
    ['model', isDemo ? `${defaultModel}, built in and offline; set OPENAI_API_KEY for a real one` : defaultModel],
    ['data', config.databaseUrl === null ? config.dataDir : (urlWithoutSecrets(config.databaseUrl) ?? '')],
    ...(configFile === null ? [] : [['settings', configFile] as [string, string]]),
    ['access', isOpen ? 'open to everybody who can reach it' : 'a login is required'],
  ]
  const login = isOpen ? '' : ` -H 'Authorization: Bearer …'`
  const lines = [
    `Polylog serves at ${address} (version ${version})`,
    '',
    ...rows.map(([name, value]) => `  ${name.padEnd(9)} ${value}`),
    '',
    '  To try it, in another terminal:',
    `    npx polylog chat${url}`,
    `    curl -N ${address}/v1/agent/chat -H 'Content-Type: application/json'${login} -d '{"input":"What time is it?"}'`,
    '',
    '  Ctrl-C stops it; unfinished runs go on at the next start.',
  ]
  return `\n${lines.map((line) => (line === '' ? '' : `  ${line}`)).join('\n')}\n\n`
}
