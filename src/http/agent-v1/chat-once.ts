// chat_conversation through POST /v1/agent/run: one turn of a chat, stored in its conversation
// like any other, and answered as a whole. Nobody can be asked for consent here, so calls that
// need it are answered as not allowed.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import { isoTime } from '../../kit/clock.ts'
import { invalidInput } from '../../one-shot/one-shot-input.ts'
import { runEndError } from '../../one-shot/one-shot-outcome.ts'
import type { OneShotIdempotency } from '../../one-shot/one-shot-service.ts'
import { judgeAnswer } from '../../runs/output-check.ts'
import type { StartRequest } from '../../runs/start-request.ts'
import type { RunRow } from '../../stores/run-store.ts'
import { answerText, messagesMax } from '../chat-api/answers.ts'
import { cancelsOnDisconnect } from '../disconnect.ts'
import { dialectNamed } from '../formats.ts'
import { callerOf, type Services } from '../routes.ts'
import { refuseResume } from '../start-or-resume.ts'
import { startAndStreamChat } from '../stream-run.ts'
import { conversationHeader } from '../views.ts'
import { chatBody, toStartRequest } from './chat-request.ts'
import { type RunAgentBody, toRunAgentView } from './run-agent-body.ts'

export async function chatOnce(
  services: Services,
  request: FastifyRequest<{ Querystring: { format?: string | undefined } }>,
  reply: FastifyReply,
  asked: { body: RunAgentBody; idempotency: OneShotIdempotency; streams: boolean },
): Promise<FastifyReply> {
  const start = await startOf(services, request, asked.body, asked.idempotency)
  if (asked.streams) {
    const dialect = dialectNamed(request.query.format)
    const headersOf = (run: RunRow) => conversationHeader(run.conversationId)
    return await startAndStreamChat(services, request, reply, { start, dialect, headersOf })
  }
  refuseResume(request.headers)
  const { run, outcome } = await services.runs.start(start)
  const gone = new AbortController()
  if (reply.raw.destroyed) gone.abort()
  reply.raw.on('close', () => gone.abort())
  const ended = await services.runs.settled(run, { signal: AbortSignal.any([gone.signal, services.streams.ending]) })
  if (gone.signal.aborted && cancelsOnDisconnect(services, start, outcome === 'accepted'))
    await services.runs.clientLeft(run.id, run.owner)
  if (ended.status !== 'succeeded') throw runEndError(ended)
  return reply.headers(conversationHeader(run.conversationId)).send(await responseOf(services, ended, start.output))
}

async function startOf(
  services: Services,
  request: Pick<FastifyRequest, 'login' | 'claimed'>,
  body: RunAgentBody,
  idempotency: OneShotIdempotency,
): Promise<StartRequest> {
  const { userId } = callerOf(request, services)
  const { message, ...input } = body.input ?? {}
  const { conversationId, sessionId } = body
  const parsed = chatBody.safeParse({ prompt: message, conversationId, sessionId, ...input, agentId: body.agentId })
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw invalidInput(['input', ...(issue?.path ?? [])].join('.'), `is not valid: ${issue?.message}`)
  }
  try {
    const start = await toStartRequest(services, parsed.data, userId, undefined, body)
    return { ...start, consent: 'refuse', idempotency }
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'messages_or_prompt_required') throw error
    throw invalidInput('input.messages', 'holds no message of a user; send messages, prompt or message')
  }
}

async function responseOf(services: Services, run: RunRow, output: StartRequest['output']) {
  const rows = await services.conversations.messagesOfRun(run, messagesMax)
  const answers = rows.filter((row) => row.role === 'assistant' && row.state === 'active')
  const last = answers.findLast((row) => row.content !== '') ?? answers.at(-1)
  const createdAt = last?.createdAt ?? run.endedAt ?? run.createdAt
  const content = answerText(rows)
  const message = {
    id: last?.id ?? run.id,
    role: 'assistant',
    content: last?.content ?? content,
    createdAt: isoTime(createdAt),
    createdAtMs: createdAt,
  }
  return toRunAgentView({
    runId: run.id,
    agentId: run.agentId,
    operation: null,
    cached: false,
    snapshotId: null,
    generatedAt: run.endedAt ?? createdAt,
    data: { message, content, ...valueOf(message.content, output) },
  })
}

/** The answer as a value, if the request has a schema for it. The run has checked it. */
function valueOf(content: string, output: StartRequest['output']): { output?: JsonValue } {
  if (output === undefined) return {}
  const verdict = judgeAnswer({ schema: output.schema, mayAsk: false }, content, { repaired: true, cutOff: false })
  return verdict.is === 'answer' ? { output: JSON.parse(verdict.output) as JsonValue } : {}
}
