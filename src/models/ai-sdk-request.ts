// Converts our request to the call options of the AI SDK's provider interface.

import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FilePart,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider'
import { mergedOptions, type ProviderOptions } from '../journal/provider-options.ts'
import { defined } from '../kit/defined.ts'
import {
  chatFiles,
  type FileSupport,
  type LoadedFile,
  resultFilesMessage,
  sentFiles,
  sentParts,
} from './file-support.ts'
import type { ModelMessage, ModelRequest } from './model.ts'
import { nativeSchema } from './native-schema.ts'
import { assistantContent } from './provider-state.ts'
import { splitSampling } from './sampling-options.ts'
import { withPlainCalls } from './sent-calls.ts'
import { type ToolAdapter, toProviderTools } from './provider-tools.ts'
import { toProviderSchema } from './tool-schema.ts'

export type CallSettings = {
  /** Which files the adapter can send. */
  files?: FileSupport
  defaults?: ProviderOptions | undefined
  marksCache?: boolean
  toolAdapter?: ToolAdapter | undefined
  /** The name of the provider, and the name under which its adapter looks for options; absent means the same name. */
  provider?: string
  optionsName?: string | undefined
}

export function toCallOptions(
  request: ModelRequest,
  signal: AbortSignal,
  { defaults, marksCache = false, toolAdapter, provider = '', optionsName, files = chatFiles }: CallSettings = {},
): LanguageModelV4CallOptions {
  const format = responseFormat(request)
  const own = request.providerOptions?.[provider]
  const { sampling, others } = splitSampling(provider, own ?? {})
  const renamed = own && { [optionsName ?? provider]: others }
  const requested = optionsName === undefined ? { ...request.providerOptions, ...renamed } : renamed
  const tools = [...toFunctionTools(request), ...toProviderTools(request, toolAdapter)]
  return {
    prompt: marksCache ? withCacheMarks(request, files) : toPrompt(request.messages, files),
    abortSignal: signal,
    ...(tools.length === 0 ? {} : { tools, toolChoice: chosenTool(request) }),
    ...defined({
      temperature: request.temperature,
      maxOutputTokens: request.maxTokens,
      topP: request.sampling?.topP ?? sampling.topP,
      topK: sampling.topK,
      stopSequences: request.sampling?.stop ?? sampling.stopSequences,
      seed: request.sampling?.seed ?? sampling.seed,
      presencePenalty: request.sampling?.presencePenalty ?? sampling.presencePenalty,
      frequencyPenalty: request.sampling?.frequencyPenalty ?? sampling.frequencyPenalty,
      responseFormat: format?.responseFormat,
      headers: request.traceparent === undefined ? undefined : { traceparent: request.traceparent },
      providerOptions: mergedOptions(
        defaults,
        format?.providerOptions,
        requested,
        toolAdapter === 'anthropic' ? thinkingOff(request) : undefined,
      ),
    }),
  }
}

/**
 * Claude with `thinking` refuses to go on in a turn whose first calls came without its signed reasoning: those of another model
 * that failed in the middle of its work, or those of a history that the client sent.
 */
function thinkingOff({ messages, providerOptions }: ModelRequest): ProviderOptions | undefined {
  const thinking = providerOptions?.['anthropic']?.['thinking']
  if (thinking === null || typeof thinking !== 'object' || Array.isArray(thinking)) return undefined
  if (thinking['type'] !== 'enabled') return undefined
  // A question directly after results is sent in one message with them, so it begins no turn.
  const asked = messages.findLastIndex(({ role }, at) => role === 'user' && messages[at - 1]?.role !== 'tool')
  const turn = messages.slice(asked + 1)
  const first = turn.find((message) => message.role === 'assistant')
  if (first?.toolCalls === undefined || first.toolCalls.length === 0) return undefined
  if (assistantContent(first).some(({ type }) => type === 'reasoning')) return undefined
  return { anthropic: { thinking: { type: 'disabled' } } }
}

function chosenTool({ toolChoice }: ModelRequest): NonNullable<LanguageModelV4CallOptions['toolChoice']> {
  if (toolChoice === undefined) return { type: 'auto' }
  return toolChoice === 'required' ? { type: 'required' } : { type: 'tool', toolName: toolChoice.tool }
}

function toFunctionTools({ tools }: ModelRequest): LanguageModelV4FunctionTool[] {
  return tools.map((tool) => ({
    type: 'function',
    ...tool,
    inputSchema: tool.strict === true ? tool.inputSchema : toProviderSchema(tool.inputSchema),
  }))
}

function responseFormat({ answer }: ModelRequest) {
  const native = answer?.native === true ? nativeSchema(answer.schema) : undefined
  if (answer === undefined || native === undefined) return undefined
  return {
    responseFormat: { type: 'json' as const, name: 'answer', schema: answer.schema },
    // Strict by default in this adapter, which OpenAI refuses for schemas with optional properties.
    providerOptions: { openai: { strictJsonSchema: native.strict } },
  }
}

function toPrompt(given: readonly ModelMessage[], files: FileSupport): LanguageModelV4Message[] {
  const prompt: LanguageModelV4Message[] = []
  const plain = withPlainCalls(given)
  const messages = files.inResults ? plain : resultFilesMessage(plain, files)
  for (const message of messages) {
    switch (message.role) {
      case 'system':
        prompt.push({ role: 'system', content: message.content })
        break
      case 'user':
        prompt.push({
          role: 'user',
          content: sentParts(message, files).map((part) => (part.type === 'text' ? part : filePart(part))),
        })
        break
      case 'assistant':
        prompt.push({
          role: 'assistant',
          content: assistantContent(message),
        })
        break
      case 'tool': {
        const result: LanguageModelV4ToolResultPart = {
          type: 'tool-result',
          toolCallId: message.callId,
          toolName: message.name,
          output: outputOf(message, files),
        }
        // The results of parallel calls go into one message, because some providers require it.
        const last = prompt.at(-1)
        if (last?.role === 'tool') last.content.push(result)
        else prompt.push({ role: 'tool', content: [result] })
        break
      }
    }
  }
  return prompt
}

function outputOf(
  message: Extract<ModelMessage, { role: 'tool' }>,
  support: FileSupport,
): LanguageModelV4ToolResultPart['output'] {
  // The SDK has no form for an error with files.
  if (message.isError) return { type: 'error-text', value: message.content }
  const files = support.inResults ? sentFiles(message.files, support) : []
  if (files.length === 0) return { type: 'text', value: message.content }
  const text = message.content === '' ? [] : [{ type: 'text' as const, text: message.content }]
  return { type: 'content', value: [...text, ...files.map(filePart)] }
}

function filePart({ mediaType, name, data }: LoadedFile): LanguageModelV4FilePart {
  return { type: 'file', mediaType, data: { type: 'data', data }, ...defined({ filename: name }) }
}

const cacheMark = { anthropic: { cacheControl: { type: 'ephemeral' as const } } }

/**
 * Marks where Anthropic shall cache the prompt: after the instructions of the agent, after those of the request, at the end
 * of the history and at the end of the prompt. The next step and the next turn begin with the same messages, so they are
 * charged little for them. A request that nothing can follow (no tools, no history) is marked after its instructions only.
 */
function withCacheMarks(request: ModelRequest, files: FileSupport): LanguageModelV4Message[] {
  const prompt = toPrompt(request.messages, files)
  const asked = prompt.findLastIndex(({ role }) => role === 'user')
  const systems = prompt.findIndex(({ role }) => role !== 'system')
  const goesOn = request.tools.length > 0 || request.providerTools !== undefined || asked > systems
  const marked = new Set([0, systems - 1, ...(goesOn ? [asked - 1, prompt.length - 1] : [])])
  return prompt.map((message, at) => (marked.has(at) ? { ...message, providerOptions: cacheMark } : message))
}
