// Starts a strict stand-in of a provider and talks to its control routes.

import type { Block, StrictRequest } from '../fakes/strict-server.ts'
import { spawnFake } from './spawn-fake.ts'

export type { Block, JsonObject, StrictRequest } from '../fakes/strict-server.ts'

export type StrictProvider = {
  baseUrl: string
  /** Queues answers for the next requests that are accepted. */
  script(...answers: Block[][]): Promise<void>
  /** Answers every request that contains this text, until the next reset. */
  always(when: string, answer: Block[]): Promise<void>
  requests(): Promise<StrictRequest[]>
  /** Longer prompts are refused. */
  limitWindow(tokens: number): Promise<void>
  /** Resolves when at least this many requests came in. */
  waitFor(requests: number): Promise<StrictRequest[]>
  release(): Promise<void>
  reset(): Promise<void>
  stop(): Promise<void>
}

export type StrictName = 'anthropic' | 'openai-responses' | 'gemini' | 'chat-completions'

export async function startStrictProvider(name: StrictName): Promise<StrictProvider> {
  const fake = await spawnFake(`${name}-provider.ts`)
  const control = async (path: string, body?: unknown): Promise<unknown> => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const response = await fetch(`${fake.baseUrl}/control/${path}`, init)
    if (!response.ok) throw new Error(`The stand-in refused ${path}: ${response.status}`)
    return response.json()
  }
  return {
    baseUrl: `${fake.baseUrl}/v1`,
    async script(...answers) {
      await control('script', { answers })
    },
    requests: async () => (await control('requests')) as StrictRequest[],
    waitFor: async (requests) => (await control(`wait?requests=${requests}`)) as StrictRequest[],
    async always(when, answer) {
      await control('always', { when, answer })
    },
    async limitWindow(tokens) {
      await control('window', { tokens })
    },
    async release() {
      await control('release', {})
    },
    async reset() {
      await control('reset', {})
    },
    stop: () => fake.stop(),
  }
}

/** The settings of a server that asks the stand-in. */
export function askingStrict(name: StrictName, { baseUrl }: Pick<StrictProvider, 'baseUrl'>): Record<string, string> {
  const shared = { POLYLOG_PROVIDER_RETRIES: '0' }
  switch (name) {
    case 'anthropic':
      return {
        ...shared,
        ANTHROPIC_API_KEY: 'test-key',
        ANTHROPIC_BASE_URL: baseUrl,
        POLYLOG_MODEL: 'anthropic/claude-sonnet-4-5',
      }
    case 'openai-responses':
      return {
        ...shared,
        OPENAI_API_KEY: 'test-key',
        OPENAI_BASE_URL: baseUrl,
        OPENAI_API: 'responses',
        POLYLOG_MODEL: 'openai/gpt-5.4-mini',
      }
    case 'gemini':
      return {
        ...shared,
        GOOGLE_GENERATIVE_AI_API_KEY: 'test-key',
        GOOGLE_GENERATIVE_AI_BASE_URL: baseUrl,
        POLYLOG_MODEL: 'google/gemini-3-pro-preview',
      }
    case 'chat-completions':
      return {
        ...shared,
        POLYLOG_PROVIDERS: JSON.stringify({
          deep: {
            baseURL: baseUrl,
            apiKeyEnv: 'DEEP_KEY',
            headers: { 'x-team': { env: 'DEEP_TEAM' } },
            models: { thinker: { structuredOutput: true } },
          },
        }),
        DEEP_KEY: 'test-key',
        DEEP_TEAM: 'walks',
        POLYLOG_MODEL: 'deep/thinker',
      }
  }
}

/** Options with which each provider thinks. */
export const thinkingOptions: Record<StrictName, Record<string, Record<string, unknown>>> = {
  anthropic: { anthropic: { thinking: { type: 'enabled', budgetTokens: 2000 } } },
  'openai-responses': { openai: { reasoningEffort: 'low', reasoningSummary: 'auto' } },
  gemini: { google: { thinkingConfig: { includeThoughts: true } } },
  'chat-completions': { deep: { thinking: { type: 'enabled' } } },
}
