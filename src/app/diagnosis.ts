// The checks of `polylog doctor` that need the settings: each says in one sentence what is right, or what to do. They change
// nothing and never show a secret. What is checked through a running server (streams) is in cli/.

import { accessSync, constants, readFileSync, statfsSync, statSync } from 'node:fs'
import { AppError } from '../errors/app-error.ts'
import { systemClock } from '../kit/clock.ts'
import { ulidIds } from '../kit/ids.ts'
import type { Models } from '../models/model.ts'
import { createModels } from '../models/providers.ts'
import { type Config, unknownSettings } from './config.ts'
import { loadSettings } from './load-settings.ts'
import { riskySettings } from './risky-settings.ts'

export type DiagnosticCheck = {
  name: string
  status: 'ok' | 'warn' | 'fail'
  sentence: string
  details?: Record<string, unknown>
}

type Environment = Readonly<Record<string, string | undefined>>

/** Below this, a busy server fills the disk within hours. */
const freeBytesMin = 512 * 1024 * 1024
/** A provider that does not answer one token within this time does not answer users either. */
const providerMs = 30_000

export async function checkSettings(
  environment: Environment,
): Promise<{ checks: DiagnosticCheck[]; config: Config | null }> {
  let config: Config
  try {
    config = await loadSettings(environment)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { checks: [{ name: 'settings', status: 'fail', sentence: error.message }], config: null }
  }
  const warnings = [
    ...unknownSettings({ ...environment }).map(({ name }) => `${name} is not a setting of this server.`),
    ...riskySettings(config),
  ]
  const checks: DiagnosticCheck[] = warnings.map((sentence) => ({ name: 'settings', status: 'warn', sentence }))
  if (warnings.length === 0) checks.push({ name: 'settings', status: 'ok', sentence: 'All settings are valid.' })
  return { checks, config }
}

export function checkDataFolder({ dataDir }: Config): DiagnosticCheck[] {
  const name = 'data folder'
  const stats = statSync(dataDir, { throwIfNoEntry: false })
  if (stats === undefined) {
    return [{ name, status: 'ok', sentence: `${dataDir} does not exist yet; the first start creates it.` }]
  }
  if (!stats.isDirectory()) {
    return [{ name, status: 'fail', sentence: `${dataDir} is a file; set POLYLOG_DATA to a folder.` }]
  }
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch {
    return [
      {
        name,
        status: 'fail',
        sentence: `This user may not write to ${dataDir}; run the doctor as the server's user, or correct the rights.`,
      },
    ]
  }
  const { bavail, bsize } = statfsSync(dataDir)
  const freeBytes = bavail * bsize
  const free = `${Math.floor(freeBytes / 1024 / 1024)} MiB are free`
  const details = { dataDir, freeBytes }
  const isShared = (stats.mode & 0o077) !== 0
  return [
    ...(isShared
      ? [{ name, status: 'warn' as const, sentence: `Other users may read ${dataDir}; run chmod 700 on it.` }]
      : []),
    freeBytes < freeBytesMin
      ? { name, status: 'warn', sentence: `${dataDir} can be written, but only ${free}; free some space.`, details }
      : { name, status: 'ok', sentence: `${dataDir} can be written, and ${free}.`, details },
  ]
}

/** Which providers are configured; with `ask`, each default model is asked for one token, which costs a little. */
export async function checkProviders(
  config: Config,
  environment: Environment,
  { ask }: { ask: boolean },
): Promise<DiagnosticCheck[]> {
  let models: Models
  try {
    models = createModels({
      ...config.providers,
      model: config.model,
      openaiApi: config.openaiApi,
      openaiClient: config.openaiClient,
      demo: config.demo,
      demoPaceMs: 0,
      named: config.namedProviders,
      environment: { ...environment },
      ids: ulidIds(() => systemClock.now()),
      clock: systemClock,
    })
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return [{ name: 'providers', status: 'fail', sentence: error.message }]
  }
  const ready = models.list().filter((provider) => provider.ready)
  const { defaultModel } = models
  const checks: DiagnosticCheck[] = [
    defaultModel === 'demo/demo'
      ? {
          name: 'providers',
          status: 'warn',
          sentence: 'Only the built-in demo model answers; set OPENAI_API_KEY or another provider’s key.',
        }
      : {
          name: 'providers',
          status: 'ok',
          sentence: `${ready.map(({ provider }) => provider).join(', ')}; the default model is ${defaultModel}.`,
        },
  ]
  if (!ask) return checks
  const asked = new Set([defaultModel, ...ready.flatMap(({ provider }) => firstListed(models, provider))])
  for (const model of asked) checks.push(await askForOneToken(models, model))
  return checks
}

/** One model of each provider whose models are known. */
function firstListed(models: Models, provider: string): string[] {
  const found = models.listed().find((model) => model.startsWith(`${provider}/`))
  return found === undefined || models.defaultModel.startsWith(`${provider}/`) ? [] : [found]
}

async function askForOneToken(models: Models, name: string): Promise<DiagnosticCheck> {
  const startedAt = systemClock.monotonic()
  const took = () => `${Math.round(systemClock.monotonic() - startedAt)} ms`
  const signal = AbortSignal.timeout(providerMs)
  try {
    const request = {
      model: name.slice(name.indexOf('/') + 1),
      messages: [{ role: 'user' as const, content: 'Say ok.' }],
      tools: [],
    }
    // Some models refuse fewer than 16.
    for await (const parts of models.open(name).stream({ ...request, maxTokens: 16 }, signal))
      if (parts.length > 0) break
    return { name: 'providers', status: 'ok', sentence: `${name} answered after ${took()}.` }
  } catch (error) {
    const reason = signal.aborted
      ? `no answer within ${providerMs / 1000} s`
      : error instanceof Error
        ? error.message
        : String(error)
    return { name: 'providers', status: 'fail', sentence: `${name} does not answer: ${reason}` }
  }
}

/** The files that settings name are there and can be read. */
export function checkNamedFiles(config: Config): DiagnosticCheck[] {
  const named: [string, string | null][] = [
    ['POLYLOG_MCP_CONFIG', config.mcpConfigFile],
    ['POLYLOG_MODEL_CONFIGS', config.modelConfigsFile],
    ['POLYLOG_MODEL_TABLE', config.modelTableFile],
  ]
  return named.flatMap(([setting, file]): DiagnosticCheck[] => {
    if (file === null) return []
    try {
      JSON.parse(readFileSync(file, 'utf8'))
      return [{ name: 'files', status: 'ok', sentence: `${setting} names ${file}, which is JSON.` }]
    } catch (error) {
      const sentence = `${setting} names ${file}, which cannot be read as JSON: ${(error as Error).message}`
      return [{ name: 'files', status: 'fail', sentence }]
    }
  })
}
