// GET /v1/operations: what the server does now, over all users: open runs, those that may be
// stuck, readers of streams, and the load of the last minutes. For operators: with
// POLYLOG_AUTH=required only the users in POLYLOG_ADMINS may read it.

import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import { isoTime } from '../../kit/clock.ts'
import { shownConversationIdOrNull } from '../../kit/conversation-id.ts'
import { type OpenRun, stuckReasons } from '../../runs/run-overview.ts'
import { errorBody, type Server, type Services } from '../routes.ts'
import { runStatusWord } from '../views.ts'
import { sampleEveryMs } from './load-series.ts'

const runsMax = 200
const streamsMax = 200

const openRunView = z.object({
  runId: z.string(),
  userId: z.string(),
  conversationId: z.string().nullable(),
  family: z.string(),
  agentId: z.string(),
  status: z.string(),
  attempt: z.number(),
  node: z.string().nullable().describe('The id of the node that works on it.'),
  cancelRequested: z.boolean(),
  createdAt: z.string(),
  createdAtMs: z.number(),
  startedAtMs: z.number().nullable(),
  stuck: z
    .enum(stuckReasons)
    .nullable()
    .describe(
      'no_node: it should run, and no node has it. cancel_pending: its cancel was requested more than 30 s ago. queued_long: it could have started a minute ago. deadline_passed: it should have gone on 30 s ago.',
    ),
})

const overviewView = z
  .object({
    timestamp: z.string(),
    timestampMs: z.number(),
    node: z.string().describe('The id of the node that answers; `streams` and `load` are its own.'),
    counts: z.record(z.string(), z.number()).describe('How many runs have each status, over all nodes.'),
    runs: z.array(openRunView).describe(`The unfinished runs of all users, oldest first; at most ${runsMax}.`),
    nodes: z.array(
      z.object({
        id: z.string(),
        name: z.string(),
        version: z.string(),
        live: z.boolean(),
        draining: z.boolean(),
        running: z.number(),
        capacity: z.number(),
        startedAtMs: z.number(),
        seenAtMs: z.number(),
      }),
    ),
    streams: z
      .array(
        z.object({
          format: z.string(),
          runId: z.string().nullable(),
          openMs: z.number(),
          bufferedBytes: z.number().describe('Bytes that the reader has not taken yet.'),
          seq: z.number().nullable().describe('The last event of the run that was handed to the reader.'),
          lag: z.number().nullable().describe('How many events of the run follow it.'),
        }),
      )
      .describe(`The open streams of this node, slowest readers first; at most ${streamsMax}.`),
    load: z.object({
      everyMs: z.number(),
      samples: z
        .array(
          z.object({
            atMs: z.number(),
            commits: z.number(),
            commitMs: z.number().describe('The average time of a commit.'),
            commitMsMax: z.number(),
            commitQueue: z.number().describe('The most commits under way at once.'),
            streams: z.number(),
            runs: z.record(z.string(), z.number()).nullable(),
          }),
        )
        .describe('Of this node, oldest first, for a quarter of an hour.'),
    }),
  })
  .meta({ id: 'OperationsOverview' })

export function overviewRoute(server: Server, services: Services): void {
  const { clock, streams, load, operations } = services
  server.get(
    '/v1/operations',
    {
      schema: {
        tags: ['Operations'],
        summary: 'Open and stuck runs of all users, open streams, and the load; for operators',
        description: 'With POLYLOG_AUTH=required only for the users in POLYLOG_ADMINS.',
        response: { 200: overviewView, 403: errorBody },
      },
    },
    async (request) => {
      requireAdmin(request, services)
      const now = clock.now()
      const open = streams.list().slice(0, streamsMax)
      const lastSeqs = await operations.lastSeqs(open.flatMap(({ runId }) => (runId === null ? [] : [runId])))
      const counts = Object.entries(await operations.counts())
      return {
        timestamp: isoTime(now),
        timestampMs: now,
        node: operations.node,
        counts: Object.fromEntries(counts.map(([status, count]) => [statusWord(status), count])),
        runs: (await operations.openRuns(runsMax)).map(toOpenRun),
        nodes: (await operations.nodes()).map(({ offers: _offers, startedAt, seenAt, ...node }) => ({
          ...node,
          startedAtMs: startedAt,
          seenAtMs: seenAt,
        })),
        streams: open.map(({ seq, ...stream }) => {
          const last = stream.runId === null ? undefined : lastSeqs.get(stream.runId)
          return { ...stream, seq, lag: seq === null || last === undefined ? null : Math.max(0, last - seq) }
        }),
        load: {
          everyMs: sampleEveryMs,
          samples: load.samples.map(({ at, runs, ...sample }) => ({
            atMs: at,
            ...sample,
            runs:
              runs === null
                ? null
                : Object.fromEntries(Object.entries(runs).map(([status, count]) => [statusWord(status), count])),
          })),
        },
      }
    },
  )
}

const statusWord = (status: string) => runStatusWord(status as OpenRun['run']['status'])

function toOpenRun({ run, stuck }: OpenRun): z.infer<typeof openRunView> {
  return {
    runId: run.id,
    userId: run.owner,
    conversationId: shownConversationIdOrNull(run.conversationId),
    family: run.family,
    agentId: run.agentId,
    status: runStatusWord(run.status),
    attempt: run.attempt,
    node: run.leaseOwner,
    cancelRequested: run.cancel !== null,
    createdAt: isoTime(run.createdAt),
    createdAtMs: run.createdAt,
    startedAtMs: run.startedAt,
    stuck,
  }
}

function requireAdmin({ login }: FastifyRequest, { settings }: Pick<Services, 'settings'>): void {
  if (settings.authMode === 'open') return
  if (login !== null && settings.admins.includes(login.userId)) return
  throw new AppError(
    'forbidden',
    'Only operators may read this. Ask the operator to add your user id to POLYLOG_ADMINS.',
  )
}
