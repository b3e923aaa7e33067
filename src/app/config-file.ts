// Finds and loads polylog.config.ts. Node runs the file as it is and strips its types, so
// there is no build. Whatever is wrong with it becomes one sentence that names the file, the
// line and what to do.

import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { AppError } from '../errors/app-error.ts'
import type { Clock } from '../kit/clock.ts'
import { messageOf } from '../kit/thrown-message.ts'
import { type CheckedConfig, checkConfig } from './check-config.ts'
import { shownPath } from './config-problems.ts'
import { lineOfKey, placeOfLoadError } from './config-lines.ts'
import { fileNameOf } from './setting-names.ts'

const configFileNames = ['polylog.config.ts', 'polylog.config.mts', 'polylog.config.js', 'polylog.config.mjs']

/** A file may await something, such as a vault that has its secrets; it may not wait for ever. */
const loadMs = 60_000

export type LoadedConfig = {
  /** Absolute; null if there is none. */
  file: string | null
  config: CheckedConfig
  /** Sentences for the log. */
  warnings: string[]
}

export async function loadConfigFile(
  environment: Record<string, string | undefined>,
  folder: string,
  clock: Clock,
): Promise<LoadedConfig> {
  const file = findConfigFile(environment, folder)
  if (file === null) return { file, config: checkConfig({}, { folder, placeOf: () => null }), warnings: [] }
  const name = shownPath(file)
  const source = readSource(file, name)
  const given = await importDefault(file, name, source, clock)
  const placeOf = (key: string) => {
    const line = lineOfKey(source, key)
    return line === null ? name : `${name}:${line}`
  }
  const config = checkConfig(given, { folder: dirname(file), placeOf })
  return { file, config, warnings: secretWarnings(config, source, placeOf) }
}

/** POLYLOG_CONFIG, or the file in the folder where the server is started. */
function findConfigFile(environment: Record<string, string | undefined>, folder: string): string | null {
  const named = environment['POLYLOG_CONFIG']?.trim() ?? ''
  if (named !== '') return resolve(folder, named)
  const found = configFileNames.filter((name) => existsSync(join(folder, name)))
  if (found.length > 1) {
    throw new AppError('config_invalid', `There are ${found.join(' and ')}; keep one, or set POLYLOG_CONFIG to one.`)
  }
  return found[0] === undefined ? null : join(folder, found[0])
}

function readSource(file: string, name: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    const code = (cause as { code?: unknown }).code
    const why =
      code === 'ENOENT' ? 'does not exist' : code === 'EISDIR' ? 'is a folder' : `cannot be read (${String(code)})`
    throw new AppError('config_invalid', `The configuration file ${name} ${why}; correct POLYLOG_CONFIG.`, { cause })
  }
}

async function importDefault(file: string, name: string, source: string, clock: Clock): Promise<unknown> {
  let module: { default?: unknown }
  try {
    module = await within(clock, loadMs, import(pathToFileURL(file).href) as Promise<{ default?: unknown }>)
    if (module.default === undefined) {
      throw new AppError(
        'config_invalid',
        `${name}: It has no default export; write export default defineConfig({ … }).`,
      )
    }
    return await within(clock, loadMs, Promise.resolve(module.default))
  } catch (error) {
    if (error instanceof AppError) throw error
    const place = placeOfLoadError(error, file, source)
    const shown = `${shownPath(place.file)}${place.line === null ? '' : `:${place.line}`}`
    throw new AppError('config_invalid', `${shown}: ${sentenceOf(error)} ${fixOf(error, file)}`.trim(), {
      cause: error,
    })
  }
}

async function within<T>(clock: Clock, limitMs: number, work: Promise<T>): Promise<T> {
  return await new Promise<T>((resolve, reject) => {
    const timer = clock.after(limitMs, () => reject(new Error(`It was not loaded within ${limitMs / 1000} seconds`)))
    work.then(resolve, reject).finally(() => timer.cancel())
  })
}

function sentenceOf(error: unknown): string {
  const message = messageOf(error).split('\n')[0] ?? ''
  return /[.!?]$/.test(message) ? message : `${message}.`
}

/** What to do about an error of Node's loader. */
function fixOf(error: unknown, file: string): string {
  const { code, message } = error as { code?: unknown; message?: unknown }
  const text = String(message)
  if (code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') {
    return 'Node removes types and cannot translate anything else: use a plain object instead of an enum, and no namespaces, decorators or parameter properties.'
  }
  if (code === 'ERR_MODULE_NOT_FOUND' || code === 'ERR_UNSUPPORTED_DIR_IMPORT') {
    const missing = /Cannot find package '([^']+)'/.exec(text)?.[1]
    if (missing !== undefined) return `Run npm install ${missing} in ${shownPath(dirname(file)) || dirname(file)}.`
    return 'Write the whole name of an imported file, with its ending (./tool.ts).'
  }
  if (code === 'ERR_UNKNOWN_FILE_EXTENSION')
    return "Import JSON with { type: 'json' }, and code from .ts, .js, .mts or .mjs files."
  if (/^require is not defined|Cannot use import statement/.test(text)) {
    return 'Write it with import and export, in a file that ends in .mts or .ts.'
  }
  return ''
}

/** A key of a provider belongs into the environment, not into a file that is shared with others. */
function secretWarnings(config: CheckedConfig, source: string, placeOf: (key: string) => string | null): string[] {
  return [...config.settings.values].flatMap(([variable, value]) => {
    if (!/_(KEY|SECRET|TOKEN)$/.test(variable) || value.trim() === '' || !source.includes(value)) return []
    const key = fileNameOf(variable)
    return [
      `${placeOf(key)}: ${key} is written into the file, where everybody who gets the file can read it; use process.env.${variable}.`,
    ]
  })
}
