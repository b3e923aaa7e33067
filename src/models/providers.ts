// Creates the models of all configured providers, and resolves the `model` of a request. No
// other file knows the providers by name or their environment variables.
//
// A provider's package is imported when it is first used, because most installations use only
// one and would pay for all of them at the start.

import { AppError } from '../errors/app-error.ts'
import type { ProviderToolName } from '../journal/provider-tools.ts'
import type { Clock } from '../kit/clock.ts'
import { defined } from '../kit/defined.ts'
import type { Ids } from '../kit/ids.ts'
import { createAiSdkModel } from './ai-sdk-model.ts'
import type { AiSdkModelOptions } from './ai-sdk-model.ts'
import { createDemoModel } from './demo-model.ts'
import { guardedFetch } from './guarded-fetch.ts'
import type { Model, Models } from './model.ts'
import { modelNameProblem, type SlashRule } from './model-name.ts'
import { createOpenAiClient } from './openai-client.ts'
import { openAiBaseUrl } from './openai-request.ts'
import { providerToolsOf } from './provider-tools.ts'

/** Null, undefined and the empty string all mean "not set". */
type Setting = string | null | undefined

export type ModelsOptions = {
  /** POLYLOG_MODEL */
  model?: Setting
  openaiApiKey?: Setting
  openaiBaseUrl?: Setting
  anthropicApiKey?: Setting
  anthropicBaseUrl?: Setting
  googleApiKey?: Setting
  googleBaseUrl?: Setting
  ollamaBaseUrl?: Setting
  /** OPENAI_API: which API of OpenAI `openai/…` is asked through. If unset, `responses` at OpenAI's own address, else `chat`. */
  openaiApi?: 'responses' | 'chat' | null | undefined
  /** For `chat`. `lean`: our own client for the OpenAI API. `ai-sdk`: that of the AI SDK. */
  openaiClient?: 'lean' | 'ai-sdk' | undefined
  /** POLYLOG_DEMO. If unset, the demo model is on if no provider is configured or `model` names it. */
  demo?: 'on' | 'off' | null | undefined
  /** The delay between two chunks of the demo model. */
  demoPaceMs?: number | undefined
  ids: Ids
  clock: Clock
}

type Provider = {
  name: string
  /** Null if the provider can be used, else a sentence that says which variable to set. */
  missing: string | null
  defaultModel: string
  slashes: SlashRule
  /** The tools that it can run itself. */
  tools: readonly ProviderToolName[]
  open(): Model
}

/** Prefixes of well-known model names, used to suggest the right variable if a name has no provider. */
const familiarNames: readonly [prefix: RegExp, provider: string][] = [
  [/^(?:gpt|chatgpt|o\d|ft:)/i, 'openai'],
  [/^claude/i, 'anthropic'],
  [/^gemini/i, 'google'],
]

export function createModels(options: ModelsOptions): Models {
  const all = providersOf(options)
  const wanted = set(options.model)
  // If the demo model is off, it is neither listed nor suggested.
  const providers = demoIsOn(options.demo, wanted, all) ? all : all.filter((provider) => provider.name !== 'demo')
  const names = providers.map((provider) => provider.name)
  const opened = new Map<string, Model>()

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

  const first = providers.find((provider) => provider.missing === null)
  if (first === undefined) {
    throw new AppError(
      'config_invalid',
      'No model can be used: POLYLOG_DEMO is off and no provider is configured. Set OPENAI_API_KEY, OPENAI_BASE_URL, ' +
        'ANTHROPIC_API_KEY, GOOGLE_GENERATIVE_AI_API_KEY or OLLAMA_BASE_URL, or POLYLOG_DEMO=on.',
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
      // Checked again, because the run may have been accepted under another configuration.
      const provider = find(resolveWith(resolved, defaultProvider).split('/', 1)[0] ?? '') ?? defaultProvider
      let model = opened.get(provider.name)
      if (model === undefined) {
        model = provider.open()
        opened.set(provider.name, model)
      }
      return model
    },
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

/** Says which variable to set: that of the provider with such model names, or all of them if the name is unfamiliar. */
function adviceFor(name: string, providers: readonly Provider[]): string {
  const familiar = familiarNames.find(([prefix]) => prefix.test(name))?.[1]
  const missing = providers.find((provider) => provider.name === familiar)?.missing
  if (missing !== undefined && missing !== null) return missing
  return 'no provider is configured; set OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY, GOOGLE_GENERATIVE_AI_API_KEY or OLLAMA_BASE_URL.'
}

/** The first provider that is configured becomes the default, so the order matters. */
function providersOf(options: ModelsOptions): Provider[] {
  const { ids, clock } = options
  const openaiApiKey = set(options.openaiApiKey)
  const openaiBaseUrl = baseUrl('OPENAI_BASE_URL', options.openaiBaseUrl)
  const ownAddress = openaiBaseUrl === undefined || openaiBaseUrl === openAiBaseUrl
  const openaiApi = options.openaiApi ?? (ownAddress ? 'responses' : 'chat')
  const anthropicApiKey = set(options.anthropicApiKey)
  const anthropicBaseUrl = baseUrl('ANTHROPIC_BASE_URL', options.anthropicBaseUrl)
  const googleApiKey = set(options.googleApiKey)
  const googleBaseUrl = baseUrl('GOOGLE_GENERATIVE_AI_BASE_URL', options.googleBaseUrl)
  // Accepted with or without the `/v1` of Ollama's OpenAI-compatible API.
  const ollamaBaseUrl = baseUrl('OLLAMA_BASE_URL', options.ollamaBaseUrl)?.replace(/\/v1$/, '')

  const aiSdk = (
    provider: string,
    keyVariable: string | undefined,
    apiKey: string | undefined,
    load: (model: string, fetch: typeof globalThis.fetch) => ReturnType<AiSdkModelOptions['load']>,
    more: Pick<AiSdkModelOptions, 'providerOptions' | 'marksCache' | 'toolAdapter'> = {},
  ): Model => {
    const identity = { provider, keyVariable, secrets: apiKey === undefined ? [] : [apiKey] }
    const fetch = guardedFetch(identity)
    return createAiSdkModel({ identity, load: (model) => load(model, fetch), ids, clock, ...more })
  }

  const compatible = async (
    name: string,
    url: string,
    apiKey: string | undefined,
    model: string,
    fetch: typeof globalThis.fetch,
  ) => {
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
    return createOpenAICompatible({
      name,
      baseURL: url,
      includeUsage: true,
      fetch,
      ...defined({ apiKey }),
    }).chatModel(model)
  }

  return [
    {
      name: 'openai',
      missing:
        openaiApiKey === undefined && openaiBaseUrl === undefined
          ? 'set OPENAI_API_KEY (or OPENAI_BASE_URL for a compatible server that needs no key).'
          : null,
      defaultModel: 'gpt-5.4-mini',
      slashes: 'paths',
      tools: openaiApi === 'responses' ? providerToolsOf('openai') : [],
      open() {
        if (openaiApi === 'responses') {
          const load = async (model: string, fetch: typeof globalThis.fetch) => {
            const { createOpenAI } = await import('@ai-sdk/openai')
            return createOpenAI({ apiKey: openaiApiKey ?? '', fetch, ...withBaseUrl(openaiBaseUrl) }).responses(model)
          }
          // Nothing is stored at OpenAI; its encrypted reasoning comes back to us and is sent again.
          return aiSdk('openai', 'OPENAI_API_KEY', openaiApiKey, load, {
            providerOptions: { openai: { store: false } },
            toolAdapter: 'openai',
          })
        }
        if (options.openaiClient !== 'ai-sdk') {
          return createOpenAiClient({ baseUrl: openaiBaseUrl, apiKey: openaiApiKey, ids, clock })
        }
        return aiSdk('openai', 'OPENAI_API_KEY', openaiApiKey, async (model, fetch) => {
          // Compatible servers differ from OpenAI in reasoning and limits, so they have their own adapter.
          if (openaiBaseUrl !== undefined) return compatible('openai', openaiBaseUrl, openaiApiKey, model, fetch)
          const { createOpenAI } = await import('@ai-sdk/openai')
          return createOpenAI({ apiKey: openaiApiKey ?? '', fetch }).chat(model)
        })
      },
    },
    {
      name: 'anthropic',
      missing: anthropicApiKey === undefined ? 'set ANTHROPIC_API_KEY.' : null,
      defaultModel: 'claude-sonnet-5',
      slashes: 'none',
      tools: providerToolsOf('anthropic'),
      open: () =>
        aiSdk(
          'anthropic',
          'ANTHROPIC_API_KEY',
          anthropicApiKey,
          async (model, fetch) => {
            const { createAnthropic } = await import('@ai-sdk/anthropic')
            return createAnthropic({ apiKey: anthropicApiKey ?? '', fetch, ...withBaseUrl(anthropicBaseUrl) })(model)
          },
          { marksCache: true, toolAdapter: 'anthropic' },
        ),
    },
    {
      name: 'google',
      missing: googleApiKey === undefined ? 'set GOOGLE_GENERATIVE_AI_API_KEY.' : null,
      defaultModel: 'gemini-flash-latest',
      slashes: 'google',
      tools: providerToolsOf('google'),
      open: () =>
        aiSdk(
          'google',
          'GOOGLE_GENERATIVE_AI_API_KEY',
          googleApiKey,
          async (model, fetch) => {
            const { createGoogle } = await import('@ai-sdk/google')
            return createGoogle({ apiKey: googleApiKey ?? '', fetch, ...withBaseUrl(googleBaseUrl) })(model)
          },
          { toolAdapter: 'google' },
        ),
    },
    {
      name: 'ollama',
      missing: ollamaBaseUrl === undefined ? 'set OLLAMA_BASE_URL, for example to http://127.0.0.1:11434.' : null,
      defaultModel: 'llama3.2',
      slashes: 'paths',
      tools: [],
      open: () =>
        aiSdk('ollama', undefined, undefined, (model, fetch) =>
          compatible('ollama', `${ollamaBaseUrl}/v1`, undefined, model, fetch),
        ),
    },
    {
      name: 'demo',
      missing: null,
      defaultModel: 'demo',
      slashes: 'none',
      tools: [],
      open: () => createDemoModel({ clock, ids, ...defined({ paceMs: options.demoPaceMs }) }),
    },
  ]
}

function set(value: Setting): string | undefined {
  const trimmed = value?.trim()
  return trimmed === undefined || trimmed === '' ? undefined : trimmed
}

function baseUrl(variable: string, value: Setting): string | undefined {
  const url = set(value)
  if (url === undefined) return undefined
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    // The message does not contain the value, because a URL may contain a password.
    throw new AppError('config_invalid', `${variable} must be a URL that begins with http:// or https://.`)
  }
  return url.replace(/\/+$/, '')
}

function withBaseUrl(url: string | undefined): { baseURL?: string } {
  return url === undefined ? {} : { baseURL: url }
}

function quoted(name: string): string {
  // Control characters are replaced, because they could break log lines.
  const shown = name.slice(0, 100).replaceAll(/\p{C}/gu, '�')
  return `“${name.length > 100 ? `${shown}…` : shown}”`
}
