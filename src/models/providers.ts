// Resolves the `model` of a request, and opens the clients of the configured providers
// (provider-table.ts).

import { AppError } from '../errors/app-error.ts'
import type { Model, Models } from './model.ts'
import { modelNameProblem } from './model-name.ts'
import { type ModelsOptions, type Provider, providersOf, setText } from './provider-table.ts'

/** Prefixes of well-known model names, for names without a provider. */
const familiarNames: readonly [prefix: RegExp, provider: string][] = [
  [/^(?:gpt|chatgpt|o\d|ft:)/i, 'openai'],
  [/^claude/i, 'anthropic'],
  [/^gemini/i, 'google'],
]

export function createModels(options: ModelsOptions): Models {
  const all = providersOf(options)
  const wanted = setText(options.model)
  // If the demo model is off, it is neither listed nor suggested.
  const providers = demoIsOn(options.demo, wanted, all) ? all : all.filter((provider) => provider.name !== 'demo')
  const names = providers.map((provider) => provider.name)
  const opened = new Map<string, Model>()
  /** The model that was asked last, because it usually is the next one, too. */
  let last: { resolved: string; model: Model } | undefined

  const find = (name: string): Provider | undefined => providers.find((provider) => provider.name === name)

  const resolveWith = (name: string, fallback: Provider): string => {
    const slash = name.indexOf('/')
    const prefix = slash > 0 ? name.slice(0, slash) : ''
    const provider = find(prefix)
    if (provider !== undefined && slash < name.length - 1) {
      if (provider.missing !== null) throw unusable(name, provider.missing)
      return checked(provider, name.slice(slash + 1), name)
    }
    if (prefix === 'demo') throw unusable(name, demoIsOff)
    const owner = slash === -1 && fallback.ownModelsOnly === true ? find(familiarProvider(name) ?? '') : undefined
    if (owner !== undefined && owner !== fallback) {
      if (owner.missing !== null) throw unusable(name, owner.missing)
      return checked(owner, name, name)
    }
    // Model names of OpenAI-compatible servers may contain slashes.
    if (provider === undefined && name !== '' && (slash === -1 || fallback.name === 'openai')) {
      if (fallback.name === 'demo' && name !== fallback.defaultModel) throw unusable(name, adviceFor(name, providers))
      return checked(fallback, name, name)
    }
    throw new AppError(
      'unknown_model',
      `There is no model ${quoted(name)}. A model is called provider/model; the providers are ${names.join(', ')}.`,
      { details: { providers: names } },
    )
  }

  const usable = providers.filter((provider) => provider.missing === null)
  const first =
    usable.find(({ defaultModel: known }) => known !== null) ?? (wanted === undefined ? undefined : usable[0])
  if (first === undefined && usable[0] !== undefined) {
    throw new AppError(
      'config_invalid',
      `It is not known which model of ${usable[0].name} answers: set POLYLOG_MODEL to ${usable[0].name}/ and the name of a model, or give the provider a list of models.`,
    )
  }
  if (first === undefined) {
    throw new AppError(
      'config_invalid',
      'No model can be used: POLYLOG_DEMO is off and no provider is configured. Set OPENAI_API_KEY, OPENAI_BASE_URL, ' +
        'ANTHROPIC_API_KEY, GOOGLE_GENERATIVE_AI_API_KEY, OLLAMA_BASE_URL or POLYLOG_PROVIDERS, or POLYLOG_DEMO=on.',
    )
  }
  let defaultModel = `${first.name}/${first.defaultModel}`
  if (wanted !== undefined) {
    try {
      defaultModel = resolveWith(wanted, first)
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      throw new AppError('config_invalid', `POLYLOG_MODEL: ${error.message}`, { cause: error })
    }
  }
  const defaultProvider = find(defaultModel.slice(0, defaultModel.indexOf('/'))) ?? first

  return {
    defaultModel,
    resolve(name) {
      const asked = name?.trim() ?? ''
      return asked === '' ? defaultModel : resolveWith(asked, defaultProvider)
    },
    open(resolved) {
      if (last?.resolved === resolved) return last.model
      // Checked again, because the run may have been accepted under another configuration.
      const provider = find(resolveWith(resolved, defaultProvider).split('/', 1)[0] ?? '') ?? defaultProvider
      let model = opened.get(provider.name)
      if (model === undefined) {
        model = provider.open()
        opened.set(provider.name, model)
      }
      last = { resolved, model }
      return model
    },
    listed: () => usable.flatMap(({ name, listed }) => (listed ?? []).map((model) => `${name}/${model}`)),
    providerTools: (resolved) => find(resolved.slice(0, resolved.indexOf('/')))?.tools ?? [],
    list: () =>
      providers.map((provider) => ({
        provider: provider.name,
        ready: provider.missing === null,
        reason: provider.missing,
      })),
  }
}

const demoIsOff = 'the demo model is switched off on this server; set POLYLOG_DEMO=on to use it beside a provider.'

function demoIsOn(asked: ModelsOptions['demo'], model: string | undefined, providers: readonly Provider[]): boolean {
  if (asked !== null && asked !== undefined) return asked === 'on'
  if (model?.startsWith('demo/') === true) return true
  return !providers.some((provider) => provider.name !== 'demo' && provider.missing === null)
}

function unusable(name: string, why: string): AppError {
  return new AppError('unknown_model', `The model ${quoted(name)} cannot be used: ${why}`)
}

/** Returns `provider/model`; throws if the provider cannot have a model with this name. */
function checked(provider: Provider, model: string, asked: string): string {
  const problem = modelNameProblem(model, provider.slashes)
  if (problem !== null) throw new AppError('unknown_model', `The model name ${quoted(asked)} ${problem}.`)
  if (provider.name === 'demo' && model !== provider.defaultModel) {
    throw new AppError('unknown_model', `There is no model ${quoted(asked)}; the demo model is demo/demo.`)
  }
  return `${provider.name}/${model}`
}

/** The provider that is known for models with such a name. */
function familiarProvider(name: string): string | undefined {
  return familiarNames.find(([prefix]) => prefix.test(name))?.[1]
}

/** Says which variable to set: that of the provider with such model names, or all of them if the name is unfamiliar. */
function adviceFor(name: string, providers: readonly Provider[]): string {
  const missing = providers.find((provider) => provider.name === familiarProvider(name))?.missing
  if (missing !== undefined && missing !== null) return missing
  return 'no provider is configured; set OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY, GOOGLE_GENERATIVE_AI_API_KEY, OLLAMA_BASE_URL or POLYLOG_PROVIDERS.'
}

function quoted(name: string): string {
  // Control characters are replaced, because they could break log lines.
  const shown = name.slice(0, 100).replaceAll(/\p{C}/gu, '�')
  return `“${name.length > 100 ? `${shown}…` : shown}”`
}
