// Checks a configuration that was written in code. Plain JavaScript can pass anything, so
// nothing is believed. An unknown key is an error with the nearest known name. All problems
// are collected, and each names the place in the file if it is known.

import { resolve } from 'node:path'
import { AppError } from '../errors/app-error.ts'
import { nearestName } from '../kit/nearest-name.ts'
import type { ModelConfig } from '../models/model.ts'
import { parseModelSets } from '../models/model-configs.ts'
import { type NamedProvider, parseNamedProviders } from '../models/named-providers.ts'
import { type McpConfig, parseMcpServers } from '../tools/mcp-config.ts'
import type { RunHooks } from './define-config.ts'
import { fileNameOf } from './setting-names.ts'
import { environmentOnly, type SettingName, settingTable } from './setting-table.ts'
import type { FileSettings, Problem } from './settings.ts'
import { isRecord } from '../kit/is-record.ts'

/** The parts of a configuration that no environment variable holds. */
export type CheckedConfig = {
  settings: FileSettings
  /** Checked later, together with the names of the built-in tools. */
  tools: readonly unknown[]
  /** Absolute. */
  agents: readonly string[]
  mcp: McpConfig | null
  models: readonly ModelConfig[] | null
  providers: readonly NamedProvider[] | null
  hooks: RunHooks
}

export type ConfigSource = {
  /** Relative paths start here. */
  folder: string
  /** Where a key stands, such as `polylog.config.ts:12`; null if that is not known. */
  placeOf(key: string): string | null
}

const settingOfKey = new Map<string, SettingName>(
  (Object.keys(settingTable) as SettingName[])
    .filter((variable) => !(environmentOnly as readonly string[]).includes(variable))
    .map((variable) => [fileNameOf(variable), variable]),
)
const partKeys = ['tools', 'agents', 'mcpServers', 'models', 'providers', 'hooks'] as const
const knownKeys = [...partKeys, ...settingOfKey.keys()]
const hookNames = ['onRunEnded']

/** Two keys that say the same thing: a value in the file, and a setting that names another file. */
const rivals: [part: (typeof partKeys)[number], setting: string][] = [
  ['mcpServers', 'mcpConfig'],
  ['models', 'modelConfigs'],
  ['agents', 'agentsDir'],
]

export function checkConfig(given: unknown, source: ConfigSource): CheckedConfig {
  const problems: Problem[] = []
  const complain = (key: string, sentence: string) => {
    const place = source.placeOf(key)
    problems.push({ variable: key, message: place === null ? sentence : `${place}: ${sentence}` })
  }
  const config = isRecord(given) ? given : {}
  if (!isRecord(given)) complain('', 'The configuration must be an object: defineConfig({ … }).')

  const values = new Map<SettingName, string>()
  for (const [key, value] of Object.entries(config)) {
    const variable = settingOfKey.get(key)
    if (variable === undefined) {
      if (!(partKeys as readonly string[]).includes(key)) complain(key, unknownKey(key))
    } else if (value !== undefined) {
      const text = textOf(variable, value)
      if (text === null) complain(key, `${key} is ${typeName(value)}; it must be ${wantedOf(variable)}.`)
      else values.set(variable, text)
    }
  }
  for (const [part, setting] of rivals) {
    if (config[part] !== undefined && config[setting] !== undefined)
      complain(part, `${part} and ${setting} say the same thing; keep one of them.`)
  }
  const { tools = [], agents = [], mcpServers, models, providers, hooks = {} } = config
  if (!Array.isArray(tools)) complain('tools', 'tools must be a list: [defineTool({ … })].')
  const hasAgents = Array.isArray(agents) && agents.every((folder) => typeof folder === 'string' && folder !== '')
  if (!hasAgents) complain('agents', `agents must be a list of folders: ['./agents'].`)
  const attempt = <T>(key: string, work: () => T): T | null => {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      complain(key, error.message)
      return null
    }
  }
  return {
    settings: { values, folder: source.folder, placeOf: source.placeOf, problems },
    tools: Array.isArray(tools) ? tools : [],
    agents: hasAgents ? (agents as string[]).map((folder) => resolve(source.folder, folder)) : [],
    mcp: mcpServers === undefined ? null : attempt('mcpServers', () => mcpOf(mcpServers, source.folder)),
    models: models === undefined ? null : attempt('models', () => parseModelSets(models)),
    providers: providers === undefined ? null : attempt('providers', () => parseNamedProviders(providers, 'providers')),
    hooks: hooksOf(hooks, (sentence) => complain('hooks', sentence)),
  }
}

function unknownKey(key: string): string {
  const written = settingOfKey.has(fileNameOf(key)) ? fileNameOf(key) : nearestName(key, knownKeys)
  return `${key} is not a setting; ${written === undefined ? 'docs/configuration-file.md lists them all.' : `did you mean ${written}?`}`
}

/** The value as its variable would be written. Null if it has another type. */
function textOf(variable: SettingName, value: unknown): string | null {
  const { kind } = settingTable[variable]
  const isList = Array.isArray(value) && value.every((entry) => typeof entry === 'string' && !entry.includes(','))
  switch (kind) {
    case 'whole':
    case 'decimal':
      return typeof value === 'number' ? String(value) : null
    case 'boolean':
      return typeof value === 'boolean' ? String(value) : null
    case 'list':
      return isList ? value.join(',') : null
    case 'mixed':
      if (isList) return value.join(',')
      return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : null
    case 'text':
    case 'secret':
    case 'path':
    case 'url':
    case 'oneOf':
      return typeof value === 'string' ? value : null
  }
}

function wantedOf(variable: SettingName): string {
  const setting = settingTable[variable]
  switch (setting.kind) {
    case 'whole':
    case 'decimal':
      return `a number from ${setting.least} to ${setting.most}`
    case 'boolean':
      return 'true or false'
    case 'list':
      return 'a list of texts, none of which holds a comma'
    case 'mixed':
      return 'a text, a number, true, false or a list of texts'
    case 'oneOf':
      return `one of ${setting.allowed.map((choice) => `'${choice}'`).join(', ')}`
    case 'text':
    case 'secret':
    case 'path':
    case 'url':
      return 'a text'
  }
}

/** Never the value itself: it may be a secret. */
function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return 'a text'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function mcpOf(mcpServers: unknown, folder: string): McpConfig {
  const parsed = parseMcpServers(mcpServers, 'the configuration')
  for (const server of Object.values(parsed.mcpServers))
    if ('command' in server && server.cwd !== undefined) server.cwd = resolve(folder, server.cwd)
  return parsed
}

function hooksOf(hooks: unknown, complain: (sentence: string) => void): RunHooks {
  if (!isRecord(hooks)) {
    complain('hooks must be an object: { onRunEnded(run) { … } }.')
    return {}
  }
  for (const [name, hook] of Object.entries(hooks)) {
    if (!hookNames.includes(name)) complain(`There is no hook ${name}; known are ${hookNames.join(', ')}.`)
    else if (hook !== undefined && typeof hook !== 'function') complain(`The hook ${name} must be a function.`)
  }
  return typeof hooks['onRunEnded'] === 'function' ? hooks : {}
}
