// The body that the chat transport of the AI SDK posts: the whole history as UI messages. Only the
// last message counts. What the client says about earlier ones is used as text, and only if the
// conversation is not stored; of a decision only its id and the answer are read, and of a tool call
// only its id and the result.

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import type { FileService } from '../../files/file-service.ts'
import { defined } from '../../kit/defined.ts'
import { type ClientToolResult, clientErrorCharsMax } from '../../runs/client-tool-service.ts'
import type { EarlierMessage, StartRequest } from '../../runs/start-request.ts'
import type { CallApproval, ClientAnswers } from '../client-answers.ts'
import { uiTools } from '../client-tools-field.ts'
import { type ContentDependencies, readContent } from '../content-parts.ts'
import { jsonValue } from '../json-value.ts'
import { idParam, optionalId } from '../routes.ts'

const approval = z
  .object({ id: idParam, approved: z.boolean().nullish(), reason: z.string().max(2000).nullish() })
  .loose()

const uiPart = z
  .object({
    type: z.string(),
    text: z.string().optional(),
    state: z.string().optional(),
    approval: approval.optional(),
    toolCallId: z.string().max(200).optional(),
    output: jsonValue.optional(),
    errorText: z.string().optional(),
    providerExecuted: z.boolean().nullish(),
  })
  .loose()

const uiMessage = z
  .object({
    id: z.string().max(200).optional(),
    role: z.enum(['system', 'user', 'assistant']),
    parts: z.array(uiPart).max(10_000),
  })
  .loose()

export const uiChatBody = z
  .object({
    id: idParam.describe('The id of the chat: your name for the conversation.'),
    messages: z
      .array(uiMessage)
      .min(1)
      .max(10_000)
      .describe(
        'The messages of the chat. The last one counts: a question, or an assistant message with your answers to approval requests and the results of your tools.',
      ),
    tools: uiTools.nullish(),
    whenBusy: z
      .enum(['queue', 'reject', 'cancel'])
      .nullish()
      .describe(
        'What to do if another run of the chat has not ended yet. The default is cancel if that run waits for an answer, else queue.',
      ),
    trigger: z.enum(['submit-message', 'regenerate-message']).nullish(),
    messageId: z
      .string()
      .max(200)
      .nullish()
      .describe('The message that is answered again, or replaced by the last one; everything after it is replaced.'),
    agentId: optionalId(),
    model: optionalId(),
    context: z.record(z.string(), z.unknown()).nullish(),
    userId: z.string().max(200).nullish().describe('The user; ignored if the request has a login.'),
  })
  .loose()
  .meta({ id: 'UiChatRequest' })

export type UiChatBody = z.infer<typeof uiChatBody>

type UiMessageOfClient = UiChatBody['messages'][number]
type UiPartOfClient = UiMessageOfClient['parts'][number]

/**
 * The answers in the last message; undefined if it brings none. AI SDK 5 has no approvals: there the output
 * `{"approved": …}` of a call of the server is the answer to the request for its approval.
 */
export function answersIn({ messages }: UiChatBody, sdk: 5 | 6): ClientAnswers | undefined {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return undefined
  const approvals = last.parts.flatMap(({ state, approval }) => {
    if (state !== 'approval-responded' || approval?.approved == null) return []
    return [{ id: approval.id, approved: approval.approved, reason: approval.reason ?? undefined }]
  })
  const results = last.parts.flatMap(resultIn)
  const callApprovals = sdk === 5 ? last.parts.flatMap(callApprovalIn) : []
  if (approvals.length + results.length + callApprovals.length === 0) return undefined
  return { approvals, callApprovals, results, runId: last.id }
}

const approvedOutput = z.object({ approved: z.boolean(), reason: z.string().max(2000).nullish() })

function callApprovalIn({ state, toolCallId, providerExecuted, output }: UiPartOfClient): CallApproval[] {
  if (state !== 'output-available' || providerExecuted !== true || toolCallId === undefined) return []
  const { success, data } = approvedOutput.safeParse(output)
  return success ? [{ toolCallId, approved: data.approved, reason: data.reason ?? undefined }] : []
}

function resultIn(part: UiPartOfClient): ClientToolResult[] {
  const { type, state, toolCallId, output, errorText, providerExecuted } = part
  if (toolCallId === undefined || providerExecuted === true) return []
  if (!type.startsWith('tool-') && type !== 'dynamic-tool') return []
  if (state === 'output-available') return [{ toolCallId, output: output ?? null }]
  if (state !== 'output-error') return []
  const error = (errorText ?? '').slice(0, clientErrorCharsMax)
  return [{ toolCallId, error: error === '' ? 'The tool failed in the client.' : error }]
}

export function nothingToDo(): AppError {
  return new AppError(
    'messages_or_prompt_required',
    'The last message must have the role "user", or be an assistant message with answers to approval requests or results of tools that the chat waits for.',
  )
}

export type UiStartContext = {
  owner: string
  files: FileService
  idempotency: StartRequest['idempotency']
  isStored: boolean
  /** A run of the chat waits for an answer of this client. */
  isAwaited: boolean
  /** The stored question that is answered again, or that the message replaces. */
  questionId: string | undefined
}

export async function toUiStartRequest(
  body: UiChatBody,
  { owner, files, idempotency, isStored, isAwaited, questionId }: UiStartContext,
): Promise<StartRequest> {
  const question = body.messages.at(-1)
  if (question?.role !== 'user') throw nothingToDo()
  const regenerates = body.trigger === 'regenerate-message' && isStored
  const earlier: EarlierMessage[] = []
  // Read first, because what the server has already is checked without storing anything.
  for (const message of regenerates ? [] : body.messages.slice(0, -1))
    earlier.push(...(await earlierOf(message, { files, owner, textOnly: isStored })))
  const { text, parts } = await readContent(contentOf(question), { files, owner, textOnly: regenerates })
  if (text.trim() === '')
    throw new AppError('messages_or_prompt_required', 'The last user message is empty; send a text or a file.')
  return {
    owner,
    family: 'agent',
    input: regenerates ? '' : text,
    earlier,
    conversationId: body.id,
    // A client that asks something else has not answered. Behind the waiting run the new one would wait unseen, and the
    // client cannot answer while the stream of the new one is open.
    whenBusy: body.whenBusy ?? (isAwaited ? 'cancel' : 'queue'),
    idempotency,
    ...(regenerates ? { regenerate: true as const } : {}),
    ...defined({
      parts,
      questionId,
      clientMessageId: question.id,
      agentId: body.agentId,
      model: body.model,
      context: body.context ?? undefined,
      clientTools: body.tools ?? undefined,
    }),
  }
}

async function earlierOf(message: UiMessageOfClient, dependencies: ContentDependencies): Promise<EarlierMessage[]> {
  if (message.role === 'system') return []
  if (message.role === 'user') {
    const { text, parts } = await readContent(contentOf(message), dependencies)
    return text === '' ? [] : [{ role: 'user', content: text, ...defined({ parts }) }]
  }
  const content = message.parts.map((part) => (part.type === 'text' ? (part.text ?? '') : '')).join('')
  return content === '' ? [] : [{ role: 'assistant', content }]
}

/** Data parts belong to the client; any other part of a question is content. */
function contentOf({ parts }: UiMessageOfClient): UiPartOfClient[] {
  return parts.filter(({ type }) => !type.startsWith('data-'))
}
