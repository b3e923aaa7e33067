// /v1/agent/snapshots: the stored results of one-shot runs, and what changed between two of
// them.

import { z } from 'zod'
import { isoTime } from '../../kit/clock.ts'
import { outcomeOf, scopeNameOf } from '../../one-shot/one-shot-outcome.ts'
import type { SnapshotRow } from '../../stores/snapshot-store.ts'
import { linkNext } from '../next-link.ts'
import { callerOf, errorBody, idParam, optionalFilter, type Server, type Services, userIdQuery } from '../routes.ts'

const snapshotItem = z
  .object({
    snapshotId: z.string(),
    runId: z.string().describe('The run that produced it; it may have been removed since.'),
    agentId: z.string(),
    operation: z.string().nullable(),
    scopeType: z.enum(['conversation', 'contact', 'user', 'global']).describe('What the result is about.'),
    scopeId: z.string().nullable(),
    sourceHash: z.string().describe('Equal if the agent has read the same data.'),
    promptVersion: z.string(),
    model: z.string(),
    generatedAt: z.string(),
    generatedAtMs: z.number(),
    expiresAt: z.string().nullable().describe('From then on it answers no request. Null if it never expires.'),
    expiresAtMs: z.number().nullable(),
  })
  .meta({ id: 'SnapshotInfo' })

const snapshotView = snapshotItem
  .extend({ data: z.record(z.string(), z.unknown()).describe('As in the answer to the request that produced it.') })
  .meta({ id: 'Snapshot' })

const diffView = z
  .object({
    before: snapshotItem,
    after: snapshotItem,
    changes: z.array(
      z.object({
        path: z.string().describe('For example risks[title=Long silence].severity'),
        change: z.enum(['added', 'removed', 'changed']),
        before: z.unknown().optional(),
        after: z.unknown().optional(),
      }),
    ),
    truncated: z.boolean().describe('True if there are more changes than are listed.'),
  })
  .meta({ id: 'SnapshotDiff' })

const params = z.object({ snapshotId: idParam })

export function snapshotRoutes(server: Server, services: Services): void {
  const { snapshots } = services

  server.get(
    '/v1/agent/snapshots',
    {
      schema: {
        tags: ['Agent'],
        summary: 'List your snapshots, newest first',
        querystring: userIdQuery.extend({
          agentId: optionalFilter(),
          operation: optionalFilter(),
          scopeId: optionalFilter().describe('The contact, conversation or user that the results are about.'),
          limit: z.coerce.number().int().min(1).max(100).default(20),
          before: optionalFilter().describe('The snapshotId of the last one on the previous page.'),
        }),
        response: { 200: z.array(snapshotItem), 400: errorBody },
      },
    },
    async (request, reply) => {
      const { userId } = callerOf(request, services)
      const { agentId, operation, scopeId, limit, before } = request.query
      const { rows, more } = await snapshots.list(userId, { agentId, operation, scopeId, limit, before })
      if (more) linkNext(request, reply, { before: rows.at(-1)?.id ?? '' })
      return rows.map(toItem)
    },
  )

  server.get(
    '/v1/agent/snapshots/:snapshotId',
    {
      schema: {
        tags: ['Agent'],
        summary: 'One snapshot with its result',
        params,
        querystring: userIdQuery,
        response: { 200: snapshotView, 404: errorBody },
      },
    },
    async (request) => {
      const row = await snapshots.get(callerOf(request, services), request.params.snapshotId)
      return { ...toItem(row), data: outcomeOf(row, true).data }
    },
  )

  server.get(
    '/v1/agent/snapshots/:snapshotId/diff',
    {
      schema: {
        tags: ['Agent'],
        summary: 'What changed since an earlier snapshot',
        description:
          'Compares the results field by field. Entries of a list are matched by contactId, source, title, action or id if they have one.',
        params,
        querystring: userIdQuery.extend({
          against: optionalFilter().describe(
            'The earlier snapshot; the default is the one before it of the same thing.',
          ),
        }),
        response: { 200: diffView, 400: errorBody, 404: errorBody },
      },
    },
    async (request) => {
      const caller = callerOf(request, services)
      const found = await snapshots.compare(caller, request.params.snapshotId, request.query.against)
      const { before, after, changes, truncated } = found
      return { before: toItem(before), after: toItem(after), changes, truncated }
    },
  )
}

function toItem(row: SnapshotRow): z.infer<typeof snapshotItem> {
  return {
    snapshotId: row.id,
    runId: row.runId,
    agentId: row.agentId,
    operation: row.operation,
    scopeType: row.scopeType,
    scopeId: scopeNameOf(row.scopeType, row.scopeId),
    sourceHash: row.sourceHash,
    promptVersion: row.promptVersion,
    model: row.model,
    generatedAt: isoTime(row.createdAt),
    generatedAtMs: row.createdAt,
    expiresAt: row.expiresAt === null ? null : isoTime(row.expiresAt),
    expiresAtMs: row.expiresAt,
  }
}
