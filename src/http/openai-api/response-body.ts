// The body of POST /v1/responses, and the run that it asks for.

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import { mergedOptions, providerOptions } from '../../journal/provider-options.ts'
import type { ProviderToolName } from '../../journal/provider-tools.ts'
import { defined } from '../../kit/defined.ts'
import { fingerprint } from '../../runs/run-acceptance.ts'
import type { EarlierMessage, StartRequest } from '../../runs/start-request.ts'
import { readMessageList } from '../agent-v1/message-list.ts'
import { idParam, type Services } from '../routes.ts'
import {
  agentOrModel,
  functionFields,
  type FunctionTool,
  metadataField,
  modelField,
  passedOn,
  samplingFields,
  samplingOf,
  toolSettings,
  unsupported,
  wantedOutput,
} from './request-settings.ts'
import { type InputMessage, responseInput } from './response-input.ts'

const idempotencyRoute = 'POST /v1/responses'

const responseTool = z.object({ type: z.string(), ...functionFields, name: functionFields.name.optional() }).loose()

export const responseBody = z
  .object({
    model: modelField,
    input: responseInput,
    instructions: z.string().nullish(),
    previous_response_id: idParam.nullish().describe('Continues after this response. It must have ended.'),
    conversation: z
      .union([idParam, z.object({ id: idParam }).loose()])
      .nullish()
      .describe('Your name for a stored conversation; it is created if there is none.'),
    stream: z.boolean().nullish(),
    background: z.boolean().nullish().describe('Answers at once; read the response later.'),
    store: z.boolean().nullish().describe('False: the response cannot be read later.'),
    tools: z.array(responseTool).max(1000).nullish().describe('Functions that your client executes.'),
    tool_choice: z.unknown().optional().describe('"auto", "none", "required" or a function.'),
    parallel_tool_calls: z.boolean().nullish(),
    temperature: z.number().min(0).max(2).nullish(),
    top_p: samplingFields.top_p,
    max_output_tokens: z.number().int().positive().nullish(),
    providerOptions: providerOptions.nullish().describe('Options of the provider by name, as on /v1/agent/chat.'),
    reasoning: z
      .object({ effort: z.string().max(40).nullish(), summary: z.string().max(40).nullish() })
      .loose()
      .nullish(),
    text: z
      .object({
        format: z
          .object({ type: z.string(), schema: z.record(z.string(), z.unknown()).nullish() })
          .loose()
          .nullish(),
        verbosity: z.string().nullish(),
      })
      .loose()
      .nullish(),
    metadata: metadataField.nullish(),
    onDisconnect: z.enum(['continue', 'cancel']).nullish(),
    userId: z.string().max(200).nullish().describe('The user; ignored if the request has a login.'),
  })
  .loose()
  .meta({ id: 'ResponseRequest' })

export type ResponseBody = z.infer<typeof responseBody>

/** Throws `unsupported_parameter` for what would change the answer and is not supported. */
export function checkResponseFields(body: ResponseBody): void {
  const fields: Record<string, unknown> = body
  const refuse = (param: string, sentence: string) => {
    if (fields[param] != null) throw unsupported(param, sentence)
  }
  refuse('prompt', 'stored prompts are not supported; use an agent as the model.')
  refuse('max_tool_calls', 'it is not supported; leave it out.')
  if (fields['top_logprobs'] !== 0) refuse('top_logprobs', 'log probabilities are not available; leave it out.')
  const { include } = fields
  if (Array.isArray(include) && include.includes('message.output_text.logprobs'))
    throw unsupported('include', 'log probabilities are not available; leave it out.')
  if (body.text?.verbosity != null && body.text.verbosity !== 'medium')
    throw unsupported('text.verbosity', 'it is not supported; ask for a short answer in the instructions.')
  if (body.background === true && body.store === false)
    throw unsupported('background', 'a response in the background is read later, so store must not be false.')
  if (body.previous_response_id != null && body.conversation != null)
    throw unsupported('previous_response_id', 'it cannot be used together with conversation; send one of them.')
}

export function conversationName({ conversation }: ResponseBody): string | undefined {
  return typeof conversation === 'string' ? conversation : conversation?.id
}

export function idempotencyOf(body: ResponseBody, key: string | undefined): StartRequest['idempotency'] {
  return key === undefined ? null : { key, route: idempotencyRoute, body }
}

export async function toResponseStart(
  body: ResponseBody,
  owner: string,
  given: { messages: readonly InputMessage[]; before: readonly EarlierMessage[]; idempotencyKey: string | undefined },
  services: Pick<Services, 'catalogue' | 'models' | 'files' | 'conversations'>,
): Promise<StartRequest> {
  const { files, conversations } = services
  const asked = agentOrModel(body.model, services)
  const conversationId = conversationName(body)
  const isStored = async () =>
    conversationId !== undefined && (await conversations.find(owner, conversationId)) !== undefined
  const instructions: InputMessage[] = body.instructions == null ? [] : [{ role: 'system', content: body.instructions }]
  const read = await readMessageList([...instructions, ...given.messages], { files, owner, isStored })
  return {
    owner,
    family: 'openai-responses',
    ...read,
    earlier: [...given.before, ...read.earlier],
    ...asked,
    ...toolSettings(functionTools(body), body.tool_choice),
    whenBusy: 'queue',
    idempotency: idempotencyOf(body, given.idempotencyKey),
    echo: echoOf(body),
    ...defined({
      conversationId,
      temperature: body.temperature ?? undefined,
      sampling: samplingOf({ top_p: body.top_p }),
      maxTokens: body.max_output_tokens ?? undefined,
      providerTools: providerTools(body),
      output: wantedOutput(body.text?.format, 'text.format'),
      providerOptions: mergedOptions(
        body.providerOptions ?? undefined,
        passedOn(
          asked,
          {
            reasoning_effort: body.reasoning?.effort,
            reasoning_summary: body.reasoning?.summary,
            parallel_tool_calls: body.parallel_tool_calls,
          },
          services,
        ),
      ),
      onDisconnect: body.background === true ? ('continue' as const) : (body.onDisconnect ?? undefined),
    }),
  }
}

/** The names under which the Responses API has tools that the provider runs itself. */
const providerToolTypes: Readonly<Record<string, ProviderToolName>> = {
  web_search: 'web_search',
  web_search_preview: 'web_search',
}

function providerTools({ tools }: ResponseBody): ProviderToolName[] | undefined {
  const names = (tools ?? []).flatMap(({ type }) => (isProviderTool(type) ? [providerToolTypes[type]] : []))
  const known = names.filter((name) => name !== undefined)
  return known.length === 0 ? undefined : known
}

function isProviderTool(type: string): boolean {
  return Object.hasOwn(providerToolTypes, type)
}

function functionTools({ tools }: ResponseBody): FunctionTool[] {
  return (tools ?? []).flatMap(({ type, name, description, parameters, strict }, index) => {
    if (isProviderTool(type)) return []
    if (type !== 'function' || name === undefined) {
      const shown = JSON.stringify(type)
      throw unsupported(
        `tools[${index}]`,
        `tools of type ${shown} are not supported; use function, or an agent that has the tool.`,
      )
    }
    return { name, description, parameters, strict }
  })
}

/** They are part of the first event of the run, and of several events of the stream. */
const echoCharsMax = 128 * 1024

/** The fields of the response object that come from the request. */
function echoOf(body: ResponseBody): Record<string, JsonValue> {
  const { instructions, previous_response_id, text, reasoning, tool_choice, parallel_tool_calls, metadata } = body
  // The body is parsed JSON, so its values are JSON values.
  const fields = defined({
    instructions: instructions ?? undefined,
    previous_response_id: previous_response_id ?? undefined,
    text: text ?? undefined,
    reasoning: reasoning ?? undefined,
    tool_choice: tool_choice ?? undefined,
    top_p: body.top_p ?? undefined,
    parallel_tool_calls: parallel_tool_calls ?? undefined,
    metadata: metadata ?? undefined,
  }) as Record<string, JsonValue>
  const chars = JSON.stringify(fields).length
  if (chars > echoCharsMax) {
    throw new AppError(
      'invalid_request',
      `text, reasoning, tool_choice and instructions have ${chars} characters together; at most ${echoCharsMax} are allowed. Shorten them.`,
    )
  }
  return {
    ...fields,
    model: body.model,
    background: body.background === true,
    store: body.store !== false,
    in_conversation: body.conversation != null,
    settings: Object.fromEntries(settingsOf(body)),
  }
}

/** The settings of a run that cannot change while it waits for results. */
const runSettings = [
  'model',
  'instructions',
  'tools',
  'temperature',
  'top_p',
  'max_output_tokens',
  'text',
  'reasoning',
  'providerOptions',
] as const

function settingsOf(body: ResponseBody): [string, string][] {
  return runSettings.flatMap((name): [string, string][] =>
    body[name] == null ? [] : [[name, fingerprint(body[name])]],
  )
}

/** The first setting of a request with results that is not the one of the run that asked for them. */
export function changedSetting(body: ResponseBody, echo: Record<string, JsonValue>): string | undefined {
  const settings = (echo['settings'] ?? {}) as Record<string, JsonValue>
  return settingsOf(body).find(([name, hash]) => settings[name] !== hash)?.[0]
}
