// Answers a request with the stream of a run, for every API family: starts or resumes the
// run, replies 204 if the client has everything, and cancels on disconnect if configured.
// A family adds its own dialect, headers and cursor format.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Dialect } from '../dialects/dialect.ts'
import { sseHeaders } from '../dialects/sse-encoding.ts'
import { defined } from '../kit/defined.ts'
import type { StartRequest } from '../runs/start-request.ts'
import type { RunRow } from '../stores/run-store.ts'
import { cancelsOnDisconnect, disconnectOption } from './disconnect.ts'
import type { Services } from './routes.ts'
import { chatStart, type ResumableStart, startOrResume } from './start-or-resume.ts'
import type { StreamRequest } from './stream-reply.ts'

type StreamServices = Pick<Services, 'runs' | 'journal' | 'streams' | 'settings'>

export type RunStream = Omit<StreamRequest, 'onGone'> & {
  /** If true, the run is cancelled when the client disconnects. */
  cancels?: boolean
}

export async function streamRun(
  services: Pick<Services, 'runs' | 'streams'>,
  request: Pick<FastifyRequest, 'log'>,
  reply: FastifyReply,
  { cancels = false, ...stream }: RunStream,
): Promise<FastifyReply> {
  const onGone = disconnectOption(services, request.log, cancels, [stream.run])
  await services.streams.reply(reply, { ...stream, ...onGone })
  return reply
}

/** A stream without events, for a client that has all of what it asked for. Not every client bears a 204. */
export async function sendEmptyStream(
  reply: FastifyReply,
  headers: Readonly<Record<string, string>>,
): Promise<FastifyReply> {
  return await reply.headers({ ...sseHeaders, ...headers }).send('')
}

type StartedStream = {
  start: ResumableStart
  dialect: Dialect
  headersOf: (run: RunRow) => Record<string, string>
}

/** Starts a run of a conversation, or resumes the run that an earlier request with the same idempotency key started. */
export async function startAndStreamChat(
  services: StreamServices,
  request: Pick<FastifyRequest, 'headers' | 'log'>,
  reply: FastifyReply,
  { start, ...stream }: Omit<StartedStream, 'start'> & { start: StartRequest },
): Promise<FastifyReply> {
  return await startAndStreamRun(services, request, reply, { start: chatStart(services, start), ...stream })
}

/** Like `startAndStreamChat`, for any kind of run. */
export async function startAndStreamRun(
  services: StreamServices,
  request: Pick<FastifyRequest, 'headers' | 'log'>,
  reply: FastifyReply,
  { start, dialect, headersOf }: StartedStream,
): Promise<FastifyReply> {
  const found = await startOrResume(services, request.headers, start, dialect)
  if (found === null) return reply.code(204).send(null)
  const { run, cursor, started, standsAlone } = found
  // The new run asks its model first, which then works while the stream is begun.
  if (started) await nextTurn()
  const cancels = cancelsOnDisconnect(services, start, started)
  const headers = headersOf(run)
  return await streamRun(services, request, reply, {
    run,
    dialect,
    cursor,
    headers,
    cancels,
    ...defined({ standsAlone }),
  })
}
