// Converts our request to the body of a chat-completions request. No other file may know the
// field names of that body.

import type { JsonValue } from '../journal/event.ts'
import { toToolName } from '../kit/tool-name.ts'
import { wellFormedJson } from '../kit/well-formed-json.ts'
import { chatFiles, type LoadedFile, resultFilesMessage, sentParts } from './file-support.ts'
import type { ModelMessage, ModelRequest, ModelTool } from './model.ts'
import { nativeSchema } from './native-schema.ts'
import { objectInput, shortCallId } from './sent-calls.ts'
import { toProviderSchema } from './tool-schema.ts'

export const openAiBaseUrl = 'https://api.openai.com/v1'

/** The reasoning of a message, in the fields in which the server sent it. */
export type ReasoningFields = { reasoning_content?: string; reasoning?: string; reasoning_details?: JsonValue[] }

export type ChatBodySettings = {
  /** The name under which `providerOptions` has the options of this server. */
  provider: string
  /** Servers such as DeepSeek's need the reasoning of a message with tool calls back; some others refuse the field. */
  dropsReasoning: boolean
}

/** `baseUrl` must not have a trailing slash. */
export function toChatBody(
  request: ModelRequest,
  baseUrl: string,
  { provider, dropsReasoning }: ChatBodySettings = { provider: 'openai', dropsReasoning: false },
): string {
  // OpenAI's reasoning models refuse `max_tokens`, and most compatible servers support only that.
  const maxTokensField = baseUrl === openAiBaseUrl ? 'max_completion_tokens' : 'max_tokens'
  const start = {
    model: request.model,
    messages: resultFilesMessage(request.messages, chatFiles).map((message) => toChatMessage(message, dropsReasoning)),
  }
  const rest = {
    // JSON.stringify omits fields that are undefined.
    temperature: request.temperature,
    [maxTokensField]: request.maxTokens,
    ...samplingFields(request),
    user: request.user,
    response_format: responseFormat(request),
    ...passedOptions(request.providerOptions?.[provider]),
    stream: true,
    stream_options: { include_usage: true },
  }
  const tools = request.tools.length === 0 ? '' : `"tools":[${request.tools.map(toolJson).join(',')}],`
  return wellFormedJson(`${JSON.stringify(start).slice(0, -1)},${tools}${JSON.stringify(rest).slice(1)}`)
}

/** All runs share what models are told about a tool, and each step of each run sends it. */
const toolJsons = new WeakMap<ModelTool, string>()

function toolJson(tool: ModelTool): string {
  let json = toolJsons.get(tool)
  if (json === undefined) {
    const { name, description, inputSchema, strict } = tool
    const parameters = strict === true ? inputSchema : toProviderSchema(inputSchema)
    json = JSON.stringify({ type: 'function', function: { name, description, parameters, strict } })
    toolJsons.set(tool, json)
  }
  return json
}

function responseFormat({ answer }: ModelRequest): Record<string, unknown> | undefined {
  const native = answer?.native === true ? nativeSchema(answer.schema) : undefined
  if (native === undefined) return undefined
  return { type: 'json_schema', json_schema: { name: 'answer', schema: answer?.schema, strict: native.strict } }
}

function toChatMessage(message: ModelMessage, dropsReasoning: boolean): Record<string, unknown> {
  switch (message.role) {
    case 'system':
      return { role: 'system', content: message.content }
    case 'user': {
      if (message.parts === undefined) return { role: 'user', content: message.content }
      const content = sentParts(message, chatFiles).map((part) => (part.type === 'text' ? part : toChatFile(part)))
      return { role: 'user', content }
    }
    case 'assistant': {
      const calls = message.toolCalls ?? []
      if (calls.length === 0) return { role: 'assistant', content: message.content }
      return {
        role: 'assistant',
        // Null, because several servers refuse an empty text in a message with tool calls.
        content: message.content === '' ? null : message.content,
        ...(dropsReasoning ? {} : reasoningOf(message.providerState)),
        tool_calls: calls.map((call, index) => ({
          ...extraOf(message.providerState, index),
          id: shortCallId(call.callId),
          type: 'function',
          function: { name: toToolName(call.name), arguments: JSON.stringify(objectInput(call.input)) },
        })),
      }
    }
    case 'tool':
      return { role: 'tool', tool_call_id: shortCallId(message.callId), content: message.content }
  }
}

function reasoningOf(state: JsonValue | undefined): ReasoningFields {
  if (state === null || typeof state !== 'object' || Array.isArray(state)) return {}
  const { reasoning_content, reasoning, reasoning_details } = state
  return {
    ...(typeof reasoning_content === 'string' ? { reasoning_content } : {}),
    ...(typeof reasoning === 'string' ? { reasoning } : {}),
    ...(Array.isArray(reasoning_details) ? { reasoning_details } : {}),
  }
}

/** What the server sent with a call and needs back with it. */
function extraOf(state: JsonValue | undefined, index: number): { extra_content?: JsonValue } {
  if (state === null || typeof state !== 'object' || Array.isArray(state)) return {}
  const extra = Array.isArray(state['extra_contents']) ? state['extra_contents'][index] : null
  return extra === null || extra === undefined ? {} : { extra_content: extra }
}

function toChatFile({ mediaType, name, data }: LoadedFile): Record<string, unknown> {
  const url = `data:${mediaType};base64,${Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64')}`
  return mediaType.startsWith('image/')
    ? { type: 'image_url', image_url: { url } }
    : { type: 'file', file: { filename: name ?? 'file.pdf', file_data: url } }
}

function samplingFields({ sampling = {}, toolChoice, tools }: ModelRequest): Record<string, unknown> {
  const named = typeof toolChoice === 'object' ? { type: 'function', function: { name: toolChoice.tool } } : toolChoice
  return {
    top_p: sampling.topP,
    stop: sampling.stop,
    seed: sampling.seed,
    presence_penalty: sampling.presencePenalty,
    frequency_penalty: sampling.frequencyPenalty,
    tool_choice: tools.length === 0 ? undefined : named,
  }
}

/** A field of OpenAI's other API, which this one refuses. */
const responsesOnly = 'reasoning_summary'

/** Fields that the request itself decides. */
const ownFields = new Set(['model', 'messages', 'tools', 'user', 'response_format', 'stream', 'stream_options'])

/** Options have the names that the AI SDK gives them, such as `reasoningEffort`; this API calls it `reasoning_effort`. */
function passedOptions(options: Record<string, JsonValue> | undefined): Record<string, JsonValue> {
  const fields: Record<string, JsonValue> = {}
  for (const [name, value] of Object.entries(options ?? {})) {
    const field = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    if (!ownFields.has(field) && field !== responsesOnly) fields[field === 'stop_sequences' ? 'stop' : field] = value
  }
  return fields
}
