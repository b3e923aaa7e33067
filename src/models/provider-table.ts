// Every provider of the server, with the client that asks it: those that it knows by name, and the
// compatible endpoints of the operator. No other file knows the providers by name or their
// environment variables.
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
import { withPlainArguments } from './argument-names.ts'
import { createDemoModel } from './demo-model.ts'
import { guardedFetch } from './guarded-fetch.ts'
import { type Fetch, keptFetch } from './kept-connections.ts'
import type { Model } from './model.ts'
import type { SlashRule } from './model-name.ts'
import { credentialsOf, type NamedProvider } from './named-providers.ts'
import { createOpenAiClient } from './openai-client.ts'
import { openAiBaseUrl } from './openai-request.ts'
import type { ProviderIdentity } from './provider-error.ts'
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
  /** Compatible endpoints of the operator. */
  named?: readonly NamedProvider[] | undefined
  /** Holds the keys of the named providers, and the proxies. */
  environment?: Record<string, string | undefined> | undefined
  /** What the adapters of the AI SDK send their requests with. */
  fetch?: Fetch
  ids: Ids
  clock: Clock
}

export type Provider = {
  name: string
  /** Null if the provider can be used, else a sentence that says which variable to set. */
  missing: string | null
  /** Null if it has none: a request has to name a model. */
  defaultModel: string | null
  slashes: SlashRule
  /** True if it has no models of the other known providers. A compatible server may have any. */
  ownModelsOnly?: boolean
  /** The models that the operator listed. */
  listed?: readonly string[]
  /** The tools that it can run itself. */
  tools: readonly ProviderToolName[]
  open(): Model
}

/** The first provider that is configured becomes the default, so the order matters. */
export function providersOf(given: ModelsOptions): Provider[] {
  const options = { ...given, fetch: given.fetch ?? keptFetch(given.environment) }
  const { ids, clock, environment } = options
  const openaiApiKey = setText(options.openaiApiKey)
  const openaiBaseUrl = baseUrl('OPENAI_BASE_URL', options.openaiBaseUrl)
  const ownAddress = openaiBaseUrl === undefined || openaiBaseUrl === openAiBaseUrl
  const openaiApi = options.openaiApi ?? (ownAddress ? 'responses' : 'chat')
  const anthropicApiKey = setText(options.anthropicApiKey)
  const anthropicBaseUrl = baseUrl('ANTHROPIC_BASE_URL', options.anthropicBaseUrl)
  const googleApiKey = setText(options.googleApiKey)
  const googleBaseUrl = baseUrl('GOOGLE_GENERATIVE_AI_BASE_URL', options.googleBaseUrl)
  // Accepted with or without the `/v1` of Ollama's OpenAI-compatible API.
  const ollamaBaseUrl = baseUrl('OLLAMA_BASE_URL', options.ollamaBaseUrl)?.replace(/\/v1$/, '')

  const aiSdk = (
    provider: string,
    keyVariable: string | undefined,
    apiKey: string | undefined,
    load: LoadModel,
    more: AiSdkMore = {},
  ): Model => aiSdkModel({ provider, keyVariable, secrets: apiKey === undefined ? [] : [apiKey] }, load, options, more)

  return [
    {
      name: 'openai',
      missing:
        openaiApiKey === undefined && openaiBaseUrl === undefined
          ? 'set OPENAI_API_KEY (or OPENAI_BASE_URL for a compatible server that needs no key).'
          : null,
      defaultModel: 'gpt-5.4-mini',
      slashes: 'paths',
      ownModelsOnly: ownAddress,
      tools: openaiApi === 'responses' ? providerToolsOf('openai') : [],
      open() {
        if (openaiApi === 'responses') {
          const load = async (model: string, fetch: Fetch) => {
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
          return createOpenAiClient({ baseUrl: openaiBaseUrl, apiKey: openaiApiKey, environment, ids, clock })
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
      ownModelsOnly: true,
      tools: providerToolsOf('anthropic'),
      open() {
        const load = async (model: string, fetch: Fetch) => {
          const { createAnthropic } = await import('@ai-sdk/anthropic')
          return createAnthropic({ apiKey: anthropicApiKey ?? '', fetch, ...withBaseUrl(anthropicBaseUrl) })(model)
        }
        const more = { marksCache: true, toolAdapter: 'anthropic' } as const
        return withPlainArguments(aiSdk('anthropic', 'ANTHROPIC_API_KEY', anthropicApiKey, load, more))
      },
    },
    {
      name: 'google',
      missing: googleApiKey === undefined ? 'set GOOGLE_GENERATIVE_AI_API_KEY.' : null,
      defaultModel: 'gemini-flash-latest',
      slashes: 'google',
      ownModelsOnly: true,
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
    ...(options.named ?? []).map((provider) => namedProviderOf(provider, options)),
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

export function setText(value: Setting): string | undefined {
  const trimmed = value?.trim()
  return trimmed === undefined || trimmed === '' ? undefined : trimmed
}

function baseUrl(variable: string, value: Setting): string | undefined {
  const url = setText(value)
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

type WithFetch = ModelsOptions & { fetch: Fetch }
type LoadModel = (model: string, fetch: Fetch) => ReturnType<AiSdkModelOptions['load']>
type AiSdkMore = Pick<AiSdkModelOptions, 'providerOptions' | 'marksCache' | 'toolAdapter' | 'optionsName'>

function aiSdkModel(
  identity: ProviderIdentity,
  load: LoadModel,
  { fetch: ask, ids, clock }: WithFetch,
  more: AiSdkMore,
): Model {
  const fetch = guardedFetch(identity, ask)
  return createAiSdkModel({ identity, load: (model) => load(model, fetch), ids, clock, ...more })
}

async function compatible(name: string, url: string, apiKey: string | undefined, model: string, fetch: Fetch) {
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
  return createOpenAICompatible({
    name,
    baseURL: url,
    includeUsage: true,
    fetch,
    ...defined({ apiKey }),
  }).chatModel(model)
}

function namedProviderOf(provider: NamedProvider, options: WithFetch): Provider {
  const { name, api, apiKeyEnv } = provider
  const { apiKey, headers, secrets, missing } = credentialsOf(provider, options.environment ?? {})
  const url = provider.baseURL.replace(/\/+$/, '')
  return {
    name,
    missing,
    defaultModel: Object.keys(provider.models ?? {})[0] ?? null,
    listed: Object.keys(provider.models ?? {}),
    slashes: 'paths',
    tools: api === 'responses' ? providerToolsOf('openai') : [],
    open() {
      if (api === 'chat') {
        return createOpenAiClient({
          baseUrl: url,
          apiKey,
          provider: name,
          keyVariable: apiKeyEnv,
          headers,
          secrets,
          dropsReasoning: provider.reasoning === 'drop',
          environment: options.environment,
          ids: options.ids,
          clock: options.clock,
        })
      }
      const load: LoadModel = async (model, fetch) => {
        const { createOpenAI } = await import('@ai-sdk/openai')
        return createOpenAI({ apiKey: apiKey ?? '', baseURL: url, headers, fetch }).responses(model)
      }
      return aiSdkModel({ provider: name, keyVariable: apiKeyEnv, secrets }, load, options, {
        providerOptions: { openai: { store: false } },
        toolAdapter: 'openai',
        optionsName: 'openai',
      })
    },
  }
}
