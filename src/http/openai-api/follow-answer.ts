// Waits for the answer of a run that is sent as one JSON object: follows the run up to the event
// that would end its stream, and hands on the frames of the stream.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Cursor } from '../../dialects/cursor.ts'
import { type Dialect, endsStream, type Frame } from '../../dialects/dialect.ts'
import { AppError } from '../../errors/app-error.ts'
import type { RunRow } from '../../stores/run-store.ts'
import type { Services } from '../routes.ts'
import { requestSignal } from '../request-signal.ts'

export type FollowedAnswer<State> = {
  run: RunRow
  dialect: Dialect<State>
  /** Frames up to here are not handed on. */
  after: Cursor
  /** If true, the run is cancelled when the client disconnects. */
  cancels: boolean
}

/**
 * Returns the state at the end. Throws `shutting_down` if the server stops before the run has ended, or nobody waits for it
 * any more.
 */
export async function followAnswer<State>(
  services: Pick<Services, 'streams' | 'runs'>,
  request: Pick<FastifyRequest, 'headers'>,
  reply: FastifyReply,
  { run, dialect, after, cancels }: FollowedAnswer<State>,
  take: (frame: Frame) => void,
): Promise<State> {
  const awaited = requestSignal(reply, services.streams)
  const follower = services.streams.follow(run.id)
  const close = () => follower.close()
  awaited.addEventListener('abort', close, { once: true })
  if (awaited.aborted) close()
  let state = dialect.open({ runId: run.id })
  try {
    for (;;) {
      const batch = await follower.next()
      if (batch === null) break
      for (const event of batch.events) {
        const projection = dialect.step(state, event)
        state = projection.state
        if (event.seq <= after.seq) continue
        for (const frame of projection.frames) take(frame)
        if (endsStream(dialect, event)) return state
      }
    }
  } finally {
    awaited.removeEventListener('abort', close)
    follower.close()
  }
  if (reply.raw.destroyed && cancels) await services.runs.clientLeft(run.id, run.owner)
  // Without a key, a repeated request would start a second run.
  if (request.headers['idempotency-key'] === undefined) reply.header('x-should-retry', 'false')
  throw new AppError(
    'shutting_down',
    `The server is going down; the run ${run.id} goes on later. Read it at /v1/agent/runs/${run.id}.`,
    { details: { runId: run.id } },
  )
}
