// Conversations as threads of LangGraph: create, read, search, delete, state and history.

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import type { ConversationRow } from '../../stores/conversation-store.ts'
import { callerOf, idParam, type Server, type Services } from '../routes.ts'
import { notInSubset } from './run-body.ts'
import { stateView, threadView } from './thread-views.ts'

const params = z.object({ threadId: idParam })
const metadata = z.record(z.string(), z.unknown()).nullish()

const createBody = z
  .object({
    thread_id: idParam.nullish(),
    if_exists: z.enum(['raise', 'do_nothing']).nullish(),
    metadata,
    supersteps: z.array(z.unknown()).max(10_000).nullish(),
  })
  .loose()
  .nullish()

const searchBody = z
  .object({
    metadata,
    values: z.record(z.string(), z.unknown()).nullish(),
    ids: z.array(idParam).max(100).nullish(),
    status: z.enum(['idle', 'busy', 'interrupted', 'error']).nullish(),
    limit: z.number().int().min(1).max(100).nullish(),
    offset: z.number().int().min(0).max(10_000).nullish(),
    select: z.array(z.string().max(50)).max(50).nullish(),
  })
  .loose()
  .nullish()

const historyBody = z
  .object({
    limit: z.number().int().min(0).nullish(),
    before: z.unknown().optional(),
    checkpoint: z.unknown().optional(),
  })
  .loose()
  .nullish()

/** Threads do not belong to an agent here, so these filters match every thread. */
const agentFilters: ReadonlySet<string> = new Set(['graph_id', 'assistant_id'])
const titleCharsMax = 200

export function threadRoutes(server: Server, services: Services): void {
  const { conversations } = services
  const schema = { hide: true }
  const thread = '/langgraph/threads/:threadId'

  server.post('/langgraph/threads', { schema: { ...schema, body: createBody } }, async (request) => {
    const { userId } = callerOf(request, services)
    const { thread_id: name, if_exists: ifExists, supersteps, ...rest } = request.body ?? {}
    if (supersteps != null && supersteps.length > 0)
      throw notInSubset('supersteps are not served; send messages as runs.')
    const title = titleIn(rest.metadata)
    if (name == null)
      return await threadView(services, await conversations.create(userId, title ?? null), { withValues: false })
    const { row, created } = await conversations.findOrCreate(userId, name)
    if (!created && ifExists !== 'do_nothing') {
      throw new AppError('thread_exists', `The thread ${JSON.stringify(name)} exists already.`)
    }
    const named = created && title !== undefined ? await conversations.update(userId, name, { title }) : row
    return await threadView(services, named, { withValues: false })
  })

  server.post('/langgraph/threads/search', { schema: { ...schema, body: searchBody } }, async (request) => {
    const { userId } = callerOf(request, services)
    const { metadata: filter, values, ids, status, limit, offset, select } = request.body ?? {}
    const unknown = Object.keys({ ...filter, ...values }).find((key) => !agentFilters.has(key))
    if (unknown !== undefined)
      throw notInSubset(`Threads cannot be searched by ${JSON.stringify(unknown)}; leave the filter out.`)
    const rows = ids == null ? await newest(userId, offset ?? 0, limit ?? 10) : await byIds(userId, ids)
    const asksValues = select?.includes('values') ?? true
    const views = []
    let chars = 0
    for (const row of rows) {
      const view = await threadView(services, row, { withValues: asksValues && chars <= valuesCharsMax })
      chars += JSON.stringify(view).length
      views.push(view)
    }
    return status == null ? views : views.filter((view) => view['status'] === status)
  })

  server.get(
    thread,
    { schema: { ...schema, params } },
    async (request) => await threadView(services, await own(request), { withValues: true }),
  )

  server.patch(
    thread,
    { schema: { ...schema, params, body: z.object({ metadata }).loose().nullish() } },
    async (request) => {
      const row = await own(request)
      const title = titleIn(request.body?.metadata)
      const changed =
        title === undefined ? row : await conversations.update(row.owner, request.params.threadId, { title })
      return await threadView(services, changed, { withValues: false })
    },
  )

  server.delete(thread, { schema: { ...schema, params } }, async (request, reply) => {
    await conversations.delete(await own(request))
    return await reply.code(204).send(null)
  })

  server.get(
    `${thread}/state`,
    { schema: { ...schema, params } },
    async (request) => await stateView(services, await own(request)),
  )

  const checkpointBody = z
    .object({ checkpoint: z.object({ checkpoint_id: z.string().max(200).nullish() }).loose() })
    .loose()
  server.post(
    `${thread}/state/checkpoint`,
    { schema: { ...schema, params, body: checkpointBody } },
    async (request) => await stateAt(await own(request), request.body.checkpoint.checkpoint_id),
  )

  const checkpointParams = params.extend({ checkpointId: z.string().max(200) })
  server.get(
    `${thread}/state/:checkpointId`,
    { schema: { ...schema, params: checkpointParams } },
    async (request) => await stateAt(await own(request), request.params.checkpointId),
  )

  server.post(`${thread}/history`, { schema: { ...schema, params, body: historyBody } }, async (request) => {
    const row = await own(request)
    const { limit, before } = request.body ?? {}
    // Only the newest state exists, so nothing is before it.
    if (limit === 0 || before != null) return []
    const state = await stateView(services, row)
    const { messages } = state['values'] as { messages: readonly unknown[] }
    return messages.length === 0 ? [] : [state]
  })

  for (const method of ['POST', 'PATCH'] as const) {
    server.route({
      method,
      url: `${thread}/state`,
      schema: { ...schema, params },
      handler: async (request) => {
        await own(request)
        throw notInSubset('The state of a thread cannot be written; it is what its runs wrote. Send a message instead.')
      },
    })
  }

  /** Without the id of a checkpoint: the newest state, which is the only one. */
  async function stateAt(row: ConversationRow, checkpointId: string | null | undefined) {
    const state = await stateView(services, row)
    const { checkpoint_id: newestId } = state['checkpoint'] as { checkpoint_id: string }
    if (checkpointId != null && checkpointId !== newestId) {
      throw notInSubset('Only the newest state of a thread can be read; leave the checkpoint out.')
    }
    return state
  }

  async function newest(owner: string, offset: number, limit: number): Promise<ConversationRow[]> {
    const { rows } = await conversations.list(owner, { limit: offset + limit, before: undefined })
    return rows.slice(offset)
  }

  async function byIds(owner: string, ids: readonly string[]): Promise<ConversationRow[]> {
    const found = await Promise.all(ids.map((id) => conversations.find(owner, id)))
    return found.filter((row) => row !== undefined)
  }

  async function own(request: Parameters<typeof callerOf>[0] & { params: { threadId: string } }) {
    return await conversations.get(callerOf(request, services).userId, request.params.threadId)
  }
}

/** In UTF-16 units. Threads after this much text are listed without their values. */
const valuesCharsMax = 4 * 1024 * 1024

/** Of the metadata of a thread only its title is stored. */
function titleIn(given: z.infer<typeof metadata>): string | undefined {
  const title = given?.['title']
  return typeof title === 'string' && title.trim() !== '' ? title.trim().slice(0, titleCharsMax) : undefined
}
