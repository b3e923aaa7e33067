// The shape of polylog.config.ts, and of what a program hands to createPolylog.

import type { ModelConfig } from '../models/model.ts'
import type { NamedProviderConfig } from '../models/named-providers.ts'
import type { ToolDefinition } from '../tools/define-tool.ts'
import type { McpServerConfig } from '../tools/mcp-config.ts'
import type { FileNameOf } from './setting-names.ts'
import type { ChoiceOf, EnvironmentOnly, NamesOf, SettingName } from './setting-table.ts'

type ValueOf<Name extends SettingName> =
  Name extends NamesOf<'oneOf'>
    ? ChoiceOf<Name>
    : Name extends NamesOf<'whole' | 'decimal'>
      ? number
      : Name extends NamesOf<'boolean'>
        ? boolean
        : Name extends NamesOf<'list'>
          ? readonly string[]
          : Name extends NamesOf<'mixed'>
            ? boolean | number | string | readonly string[]
            : string

/** Every setting of the environment, under the name without `POLYLOG_` in camel case: `POLYLOG_MAX_STEPS` is `maxSteps`. */
export type SettingsInFile = {
  readonly [Name in Exclude<SettingName, EnvironmentOnly> as FileNameOf<Name>]?: ValueOf<Name> | undefined
}

export type PolylogConfig = SettingsInFile & {
  /** Tools in code, made with `defineTool`. */
  readonly tools?: readonly ToolDefinition[] | undefined
  /** Folders with agent definitions, besides the agents that come with the server. */
  readonly agents?: readonly string[] | undefined
  /** MCP servers by name, as under `mcpServers` in the JSON of desktop clients. */
  readonly mcpServers?: { readonly [name: string]: McpServerConfig } | undefined
  /** Named sets of model settings, which a request chooses by name. */
  readonly models?: { readonly [name: string]: Omit<ModelConfig, 'name'> } | undefined
  /** Compatible endpoints by name, used as `name/model`. */
  readonly providers?: { readonly [name: string]: NamedProviderConfig } | undefined
  readonly hooks?: RunHooks | undefined
}

export type FinishedRun = {
  readonly id: string
  readonly status: 'succeeded' | 'failed' | 'cancelled'
  readonly userId: string
  readonly conversationId: string | null
  readonly agentId: string
  /** The API family that started it, such as `agent` or `jobs`. */
  readonly family: string
  readonly createdAt: Date
  readonly endedAt: Date
  /** Set if it failed. */
  readonly error: { readonly code: string; readonly message: string } | null
  /** The answer. Null if the run did not succeed, or if the answer is long: then read the messages of the conversation. */
  readonly output: string | null
}

export type RunHooks = {
  /** Called once a run has ended. */
  onRunEnded?: ((run: FinishedRun) => void | Promise<void>) | undefined
}

/** Returns the configuration as it is; it only lets an editor complete and check it. */
export function defineConfig(config: PolylogConfig): PolylogConfig {
  return config
}
