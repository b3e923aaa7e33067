// The body that an AG-UI client posts: the whole history, with the state, the context and the tools
// of the application. Only what is new counts: the last question, results of the client's own tools,
// or answers to interrupts. What the client says about the past is used only if the conversation is
// not stored.

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import { clientTool } from '../../journal/client-tool.ts'
import type { JsonValue } from '../../journal/event.ts'
import { defined } from '../../kit/defined.ts'
import type { StartRequest } from '../../runs/start-request.ts'
import { type ChatBody, chatBody, toStartRequest } from '../agent-v1/chat-request.ts'
import { jsonValue } from '../json-value.ts'
import { idParam, type Services } from '../routes.ts'
import { agUiMessage, toChatMessages } from './ag-ui-messages.ts'

const resumeEntry = z
  .object({
    interruptId: idParam,
    status: z.enum(['resolved', 'cancelled']),
    payload: z.unknown().optional().describe('For a call: {"approved": true or false}. For a question: {"answer": …}.'),
  })
  .loose()

const agUiTool = z
  .object({
    name: clientTool.shape.name,
    description: z.string().nullish(),
    parameters: z.record(z.string(), jsonValue).nullish().describe('JSON Schema of the arguments.'),
  })
  .loose()

const forwardedSettings = chatBody
  .pick({
    model: true,
    engine: true,
    temperature: true,
    maxTokens: true,
    providerOptions: true,
    output: true,
    whenBusy: true,
    onDisconnect: true,
  })
  .loose()
  .describe('Settings of the run. Other fields are ignored.')

export const agUiBody = z
  .object({
    threadId: idParam.describe('Your name for the conversation; each user has their own names.'),
    runId: idParam.describe('Your id for this request. The same request with the same id never starts a second run.'),
    protocolVersion: z.string().max(40).nullish().describe('Sent by clients since 1.0.'),
    messages: z
      .array(agUiMessage)
      .max(10_000)
      .describe('The messages of the thread. The last one counts: a question, or the result of a tool of the client.'),
    state: z.unknown().optional().describe('The state that the application shares with the agent; the model reads it.'),
    tools: z.array(agUiTool).max(1000).nullish().describe('Tools that the client runs itself.'),
    context: z
      .array(z.object({ description: z.string().max(10_000), value: z.string() }).loose())
      .max(200)
      .nullish()
      .describe('Facts of the application; the model reads them.'),
    forwardedProps: forwardedSettings.nullish(),
    resume: z
      .array(resumeEntry)
      .max(100)
      .nullish()
      .describe('The answers to all interrupts that the thread waits for.'),
    userId: z.string().max(200).nullish().describe('The user; ignored if the request has a login.'),
  })
  .loose()
  .meta({ id: 'AgUiRequest' })

export type AgUiBody = z.infer<typeof agUiBody>
export type ResumeAnswer = z.infer<typeof resumeEntry>

/** The scope of the idempotency key, which is the run id unless the request has another one. */
const agUiRouteName = 'POST /v1/ag-ui'

const stateCharsMax = 256 * 1024

export type AgUiStartOptions = {
  owner: string
  agentId: string | undefined
  idempotencyKey: string | undefined
  isStored: boolean
  onDisconnect: StartRequest['onDisconnect'] | undefined
}

export async function toAgUiStart(
  services: Pick<Services, 'files' | 'conversations'>,
  body: AgUiBody,
  { owner, agentId, idempotencyKey, isStored, onDisconnect }: AgUiStartOptions,
): Promise<StartRequest> {
  const { threadId, runId, protocolVersion, forwardedProps } = body
  const state = stateOf(body.state)
  const chat: ChatBody = {
    ...forwardedProps,
    onDisconnect,
    messages: toChatMessages(body.messages, isStored),
    conversationId: threadId,
    sessionId: undefined,
    agentId,
    context: contextOf(state, body.context ?? []),
    clientTools: toolsOf(body.tools ?? []),
  }
  const key = idempotencyKey ?? JSON.stringify([threadId, runId])
  return {
    ...(await toStartRequest(services, chat, owner, undefined, null)),
    family: 'ag-ui',
    idempotency: { key, route: agUiRouteName, body },
    agUi: { threadId, runId, ...defined({ protocolVersion: protocolVersion ?? undefined, state }) },
  }
}

function toolsOf(tools: readonly z.infer<typeof agUiTool>[]): ChatBody['clientTools'] {
  if (tools.length === 0) return undefined
  return tools.map(({ name, description, parameters }) => ({
    name,
    inputSchema: parameters ?? { type: 'object', properties: {} },
    ...defined({ description: description ?? undefined }),
  }))
}

function stateOf(state: unknown): JsonValue | undefined {
  if (state == null) return undefined
  const chars = JSON.stringify(state).length
  if (chars > stateCharsMax) {
    throw new AppError(
      'state_too_large',
      `The state has ${chars} characters as JSON; at most ${stateCharsMax} are allowed. Send only what the agent needs.`,
    )
  }
  // The body is parsed JSON, so its values are JSON values.
  return state as JsonValue
}

function contextOf(
  state: JsonValue | undefined,
  entries: readonly { description: string; value: string }[],
): Record<string, unknown> | undefined {
  const isEmpty = state === undefined || (typeof state === 'object' && Object.keys(state as object).length === 0)
  const facts = entries.map(({ description, value }) => ({ description, value }))
  const context = { ...(isEmpty ? {} : { state }), ...(facts.length === 0 ? {} : { facts }) }
  return Object.keys(context).length === 0 ? undefined : context
}
