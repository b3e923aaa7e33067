// The tools that each provider runs itself, under our names, and the form in which the AI SDK's
// adapters take them.

import type { LanguageModelV4ProviderTool } from '@ai-sdk/provider'
import type { ProviderToolName } from '../journal/provider-tools.ts'
import type { ModelRequest } from './model.ts'

/** By the name of the adapter. */
const toolIds = {
  anthropic: {
    web_search: 'anthropic.web_search_20250305',
    web_fetch: 'anthropic.web_fetch_20250910',
    code_execution: 'anthropic.code_execution_20250825',
  },
  openai: { web_search: 'openai.web_search', code_execution: 'openai.code_interpreter' },
  google: {
    web_search: 'google.google_search',
    web_fetch: 'google.url_context',
    code_execution: 'google.code_execution',
  },
} as const satisfies Record<string, Partial<Record<ProviderToolName, `${string}.${string}`>>>

export type ToolAdapter = keyof typeof toolIds

export function providerToolsOf(adapter: ToolAdapter): ProviderToolName[] {
  return Object.keys(toolIds[adapter]) as ProviderToolName[]
}

/** The adapters name the calls of a tool as we name the tool here. */
export function toProviderTools(
  { providerTools }: Pick<ModelRequest, 'providerTools'>,
  adapter: ToolAdapter | undefined,
): LanguageModelV4ProviderTool[] {
  if (adapter === undefined) return []
  const ids: Partial<Record<string, `${string}.${string}`>> = toolIds[adapter]
  return (providerTools ?? []).flatMap(({ name, options }) => {
    const id = ids[name]
    return id === undefined ? [] : [{ type: 'provider' as const, id, name, args: { ...options?.[adapter] } }]
  })
}

const serverTools: Record<string, ProviderToolName> = {
  'server:GOOGLE_SEARCH_WEB': 'web_search',
  'server:GOOGLE_SEARCH_IMAGE': 'web_search',
  'server:URL_CONTEXT': 'web_fetch',
}

/** Gemini has names of its own for the calls that it makes beside functions. */
export function shownToolName(name: string): string {
  return serverTools[name] ?? name.replace(/^server:/, '').toLowerCase()
}

const secretFields = new Set(['encryptedContent', 'encrypted_content', 'encrypted_stdout', 'encryptedIndex'])

/** The result without what only the provider can read, which is long and of no use to anyone else. */
export function readableResult(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(readableResult)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !secretFields.has(name))
      .map(([name, one]) => [name, readableResult(one)]),
  )
}
