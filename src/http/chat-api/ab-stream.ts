// Streams both arms of a comparison to one client, from any cursor.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ChunksState } from '../../dialects/chunks/chunks.ts'
import { type ArmCursors, TwoArms } from '../../dialects/chunks/two-arms.ts'
import type { Dialect } from '../../dialects/dialect.ts'
import type { ComparisonRow } from '../../stores/comparison-store.ts'
import { checkCursor } from '../cursor.ts'
import { disconnectOption } from '../disconnect.ts'
import type { Services } from '../routes.ts'
import { conversationHeader } from '../views.ts'
import { TwoArmSource } from './two-arm-source.ts'

export type ArmsStream = {
  row: ComparisonRow
  dialect: Dialect<ChunksState>
  /** The client has everything up to here. */
  cursor: ArmCursors
  /** If true, both arms are cancelled when the client disconnects. */
  cancels?: boolean
}

/** Replies 204 if the client already has both arms completely. */
export async function attachArms(
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  { row, dialect, cursor, cancels = false }: ArmsStream,
): Promise<FastifyReply> {
  const { comparisons, journal, streams } = services
  const { runA, runB } = await comparisons.arms(row)
  const hasAllOfA = await checkCursor(cursor.a, runA, dialect, journal)
  const hasAllOfB = await checkCursor(cursor.b, runB, dialect, journal)
  if (hasAllOfA && hasAllOfB) return reply.code(204).send(null)
  const fold = new TwoArms({ dialect, runs: { a: runA.id, b: runB.id }, comparisonId: row.id, cursor })
  const source = new TwoArmSource(fold, { a: streams.follow(runA.id), b: streams.follow(runB.id) })
  await streams.send(reply, source, dialect, {
    headers: {
      'x-comparison-id': row.id,
      ...conversationHeader(row.conversationId),
      'x-trace-id-a': runA.id,
      'x-trace-id-b': runB.id,
    },
    ...disconnectOption(services, request.log, cancels, [runA, runB]),
  })
  return reply
}
