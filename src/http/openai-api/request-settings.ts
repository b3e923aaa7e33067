// The settings that requests of both OpenAI APIs have. Each one is honoured, or refused with a sentence,
// or changes nothing about the answer (`user`, `service_tier` …) and is accepted.

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import { type ClientTool, clientToolName } from '../../journal/client-tool.ts'
import type { JsonValue } from '../../journal/event.ts'
import type { ProviderOptions } from '../../journal/provider-options.ts'
import { defined } from '../../kit/defined.ts'
import { firstChoice } from '../../journal/model-chain.ts'
import type { StartRequest } from '../../runs/start-request.ts'
import type { Services } from '../routes.ts'

export function unsupported(param: string, sentence: string): AppError {
  return new AppError('unsupported_parameter', `${param}: ${sentence}`, { details: { param } })
}

export const modelField = z
  .string()
  .min(1)
  .max(200)
  .describe('The id of an agent, or provider/model: then the default agent answers with that model.')

/** What both APIs say about a function of the client. */
export const functionFields = {
  name: z.string().regex(clientToolName, 'must be 1 to 64 letters, digits, "_" or "-"'),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
  strict: z.boolean().nullish(),
}

export const metadataField = z
  .record(z.string().max(64), z.string().max(512))
  .refine((values) => Object.keys(values).length <= 16, 'must have at most 16 entries')

/** The prefix of agents in the list of models. */
const agentPrefix = 'agent/'

/** `model` names an agent, or a model that the default agent uses. */
export function agentOrModel(
  model: string,
  { catalogue }: Pick<Services, 'catalogue'>,
): Pick<StartRequest, 'agentId' | 'model'> {
  const name = model.trim()
  if (name.startsWith(agentPrefix)) return { agentId: name.slice(agentPrefix.length) }
  return catalogue.list().some(({ id }) => id === name) ? { agentId: name } : { model: name }
}

/** The provider that will answer; undefined if the name cannot be resolved, which acceptance reports. */
function providerOf(
  { agentId, model }: Pick<StartRequest, 'agentId' | 'model'>,
  { catalogue, models }: Pick<Services, 'catalogue' | 'models'>,
): string | undefined {
  const named = agentId === undefined ? model : catalogue.list().find(({ id }) => id === agentId)?.card?.model
  try {
    return models.resolve(firstChoice(named)).split('/', 1)[0]
  } catch {
    return undefined
  }
}

export type ProviderSettings = {
  reasoning_effort?: string | null | undefined
  reasoning_summary?: string | null | undefined
  parallel_tool_calls?: boolean | null | undefined
}

/** Settings that a request can only pass on, under the names that the provider has for them. */
export function passedOn(
  asked: Pick<StartRequest, 'agentId' | 'model'>,
  { reasoning_effort: effort, reasoning_summary: summary, parallel_tool_calls: parallel }: ProviderSettings,
  services: Pick<Services, 'catalogue' | 'models'>,
): ProviderOptions | undefined {
  const provider = providerOf(asked, services)
  const options: Record<string, JsonValue> = {}
  if (effort != null) {
    if (provider === 'openai') options['reasoningEffort'] = effort
    else if (provider === 'anthropic' && ['low', 'medium', 'high'].includes(effort)) options['effort'] = effort
    else
      throw unsupported(
        'reasoning_effort',
        `${JSON.stringify(effort)} cannot be passed on to this model; leave it out.`,
      )
  }
  // Other providers send what they send; all of it is shown.
  if (summary != null && provider === 'openai') options['reasoningSummary'] = summary
  if (parallel === false) {
    if (provider === 'openai') options['parallelToolCalls'] = false
    else if (provider === 'anthropic') options['disableParallelToolUse'] = true
    else throw unsupported('parallel_tool_calls', 'this model cannot be told to call one tool at a time; leave it out.')
  }
  return provider === undefined || Object.keys(options).length === 0 ? undefined : { [provider]: options }
}

/** A tool of the caller in either API, after its fields were brought to one level. */
export type FunctionTool = {
  name: string
  description?: string | null | undefined
  parameters?: Record<string, unknown> | null | undefined
  strict?: boolean | null | undefined
}

export function toClientTool({ name, description, parameters, strict }: FunctionTool): ClientTool {
  return {
    name,
    ...(description == null ? {} : { description }),
    // The body is parsed JSON, so its values are JSON values.
    inputSchema: (parameters ?? { type: 'object', properties: {} }) as ClientTool['inputSchema'],
    ...(strict === true ? { strict } : {}),
  }
}

/** `none`: the model is offered no tools at all, also none of the server. */
export function toolSettings(
  tools: readonly FunctionTool[],
  choice: unknown,
): Pick<StartRequest, 'clientTools' | 'withoutTools' | 'toolChoice'> {
  if (choice === 'none') return { withoutTools: true }
  const toolChoice = forcedTool(tools, choice)
  return {
    ...(tools.length === 0 ? {} : { clientTools: tools.map(toClientTool) }),
    ...(toolChoice === undefined ? {} : { toolChoice }),
  }
}

function forcedTool(tools: readonly FunctionTool[], choice: unknown): StartRequest['toolChoice'] {
  if (choice == null || choice === 'auto') return undefined
  if (choice === 'required') return 'required'
  // Chat Completions has the name in `function`, Responses beside `type`.
  const { type, name, function: called } = choice as { type?: unknown; name?: unknown; function?: { name?: unknown } }
  const wanted = called?.name ?? name
  if (type !== 'function' || typeof wanted !== 'string')
    throw unsupported('tool_choice', 'send "auto", "none", "required", or the name of a function.')
  if (!tools.some((tool) => tool.name === wanted))
    throw unsupported('tool_choice', `there is no function ${JSON.stringify(wanted)} in tools; add it.`)
  return { tool: wanted }
}

/** Fields of both APIs, or of Chat Completions only. */
export const samplingFields = {
  top_p: z.number().min(0).max(1).nullish(),
  stop: z.union([z.string().min(1).max(500), z.array(z.string().min(1).max(500)).max(4)]).nullish(),
  seed: z.number().int().nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
}

type SamplingFields = { [Name in keyof typeof samplingFields]?: z.infer<(typeof samplingFields)[Name]> | undefined }

export function samplingOf(body: SamplingFields): StartRequest['sampling'] {
  const { stop } = body
  const settings = defined({
    topP: body.top_p ?? undefined,
    stop: stop == null || stop.length === 0 ? undefined : [stop].flat(),
    seed: body.seed ?? undefined,
    presencePenalty: body.presence_penalty ?? undefined,
    frequencyPenalty: body.frequency_penalty ?? undefined,
  })
  return Object.keys(settings).length === 0 ? undefined : settings
}

export type JsonFormat = { type: string; schema?: Record<string, unknown> | null | undefined }

/** `text` is any text, `json_object` any object, and `json_schema` an answer that fits the schema. */
export function wantedOutput(format: JsonFormat | null | undefined, param: string): StartRequest['output'] {
  switch (format?.type) {
    case undefined:
    case 'text':
      return undefined
    case 'json_object':
      return { schema: { type: 'object' } }
    case 'json_schema':
      if (format.schema == null) throw unsupported(param, 'json_schema needs a schema; send one.')
      // The body is parsed JSON, so its values are JSON values.
      return { schema: format.schema as Record<string, JsonValue> }
    default:
      throw unsupported(param, `the type ${JSON.stringify(format?.type)} is not known; use json_schema.`)
  }
}
