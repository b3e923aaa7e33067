// The services that every route family gets, and the schemas and helpers that all share.

import type { FastifyInstance, FastifyBaseLogger, FastifyRequest, RawServerDefault } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { z } from 'zod'
import type { Catalogue } from '../agents/catalogue.ts'
import { type Claimed, type Login, resolveCaller } from './caller.ts'
import type { CursorReader } from './cursor.ts'
import type { ComparisonService } from '../comparisons/comparison-service.ts'
import type { ArchiveService } from '../contacts/archive-service.ts'
import type { BriefService } from '../contacts/brief-service.ts'
import type { ContactFiles } from '../contacts/contact-files.ts'
import type { ContactService } from '../contacts/contact-service.ts'
import type { ConversationService } from '../conversations/conversation-service.ts'
import type { FeedService } from '../feed/feed-service.ts'
import type { FeedbackService } from '../feedback/feedback-service.ts'
import type { EngineState } from '../engines/engine.ts'
import type { FileService } from '../files/file-service.ts'
import type { RequestActivity } from '../kit/activity.ts'
import type { Caller } from '../kit/caller.ts'
import type { Clock } from '../kit/clock.ts'
import type { Ids } from '../kit/ids.ts'
import type { OneShotService } from '../one-shot/one-shot-service.ts'
import type { SnapshotService } from '../one-shot/snapshot-service.ts'
import type { JobService } from '../jobs/job-service.ts'
import type { SkillRegistry } from '../skills/skill-registry.ts'
import type { ClientToolService } from '../runs/client-tool-service.ts'
import type { ConfirmationService } from '../runs/confirmation-service.ts'
import type { RunOverview } from '../runs/run-overview.ts'
import type { InteractionList } from '../runs/interaction-list.ts'
import type { QueuedRuns } from '../runs/queued-runs.ts'
import type { RunService } from '../runs/run-service.ts'
import type { RunTransfer } from '../runs/run-transfer.ts'
import type { UsageService } from '../runs/usage-service.ts'
import type { RunRow } from '../stores/run-store.ts'
import type { ToolRegistry, Workspaces } from '../tools/tool.ts'
import type { ModelConfigs, Models, ModelTable } from '../models/model.ts'
import type { Metrics } from './metrics.ts'
import type { LoadSeries } from './operations/load-series.ts'
import type { Streams } from './stream-reply.ts'

export type Services = {
  /** The stored events of runs. It checks no owner: a route may read only a run that it got from a service. */
  journal: CursorReader
  health: { check(): Promise<void> }
  /** Throws the reason if this server can take no work. */
  readiness: { check(): Promise<void> }
  runs: RunService
  queuedRuns: QueuedRuns
  interactions: InteractionList
  operations: RunOverview
  load: Pick<LoadSeries, 'samples'>
  confirmations: ConfirmationService
  clientTools: ClientToolService
  conversations: ConversationService
  contacts: ContactService
  contactFiles: ContactFiles
  archives: ArchiveService
  briefs: BriefService
  feed: FeedService
  feedback: FeedbackService
  files: FileService
  jobs: JobService
  oneShot: OneShotService
  snapshots: SnapshotService
  skills: SkillRegistry
  comparisons: ComparisonService
  streams: Streams
  tools: ToolRegistry
  workspaces: Workspaces
  models: Models
  engineStates(): { name: string; state: EngineState }[]
  configs: ModelConfigs
  modelTable: ModelTable
  usage: UsageService
  transfer: RunTransfer
  catalogue: Catalogue
  metrics: Metrics
  clock: Clock
  ids: Ids
  settings: {
    authMode: 'open' | 'required'
    /** The users who may see what concerns all users, if a login is required. */
    admins: readonly string[]
    /** What happens to a run when its client disconnects, unless the request says otherwise. */
    onDisconnect: 'continue' | 'cancel'
    uploadBytes: number
    clientTimeoutMs: number
    workspaceDir: string
    sharedDirs: readonly string[]
  }
}

export type Server = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before any handler runs; null if the request has no login. */
    login: Login | null
    /** The user that the request names. Set before the schema of the route drops unknown fields. */
    claimed: Claimed
    /** Set before any other hook runs. */
    activity: RequestActivity
  }
}

export function callerOf(
  { login, claimed }: Pick<FastifyRequest, 'login' | 'claimed'>,
  services: Pick<Services, 'settings'>,
): Caller {
  return resolveCaller({ login, mode: services.settings.authMode, claimed })
}

/** The run that a request addresses by its id; `run_not_found` if it is not the caller's. */
export async function ownRun(
  request: FastifyRequest,
  services: Pick<Services, 'settings' | 'runs'>,
  runId: string,
): Promise<RunRow> {
  return await services.runs.get(callerOf(request, services), runId)
}

/** Ids are opaque; only their length is checked. */
export const idParam = z.string().min(1).max(200)

/** Null and blank text mean "not given". */
export function optionalId(): z.ZodType<string | undefined> {
  return z
    .string()
    .max(200)
    .nullish()
    .transform((value) => (value == null || value.trim() === '' ? undefined : value.trim()))
}

/** A filter in a query string. An empty value, as in `?conversationId=`, means "no filter". */
export function optionalFilter(): z.ZodType<string | undefined> {
  return z
    .string()
    .max(200)
    .optional()
    .transform((value) => (value === undefined || value.trim() === '' ? undefined : value.trim()))
}

export const errorBody = z
  .object({
    code: z.string(),
    message: z.string(),
    details: z.record(z.string(), z.unknown()).optional(),
    retryable: z.boolean().optional().describe('True if a model provider failed and the same request may succeed.'),
  })
  .meta({ id: 'Error', description: 'An error: a stable code, and a sentence that says what to do.' })

export const userIdQuery = z.object({
  userId: z.string().max(200).optional().describe('The user; ignored if the request has a login.'),
  client_id: z.string().max(200).optional().describe('The same as userId, under its name in the chat API.'),
})
