// Which session a request belongs to. A session is a conversation whose id we minted. Its
// directory is that of its first request; a mode and files count from the request that
// brings them. Every run carries all three in its spec, so the newest run tells them to
// the next.

import { createHash } from 'node:crypto'
import { join, relative, resolve, sep } from 'node:path'
import { AppError } from '../../errors/app-error.ts'
import type { Ids } from '../../kit/ids.ts'
import type { ConversationService } from '../../conversations/conversation-service.ts'
import type { RunService } from '../../runs/run-service.ts'
import { ownerDirectories, sessionDirectories, type Workspaces } from '../../tools/tool.ts'
import type { Caller } from '../../kit/caller.ts'
import type { SessionBody } from './session-body.ts'

export const sessionFamily = 'session'

export type Session = {
  agentId: string
  /** The id was minted for this request. */
  isNew: boolean
  workspace: { dir: string; mode: 'edit' | 'ask' }
  /** The same directory as a path, for the model. */
  workingDir: string
  files: string[]
}

export type SessionParts = {
  runs: Pick<RunService, 'list' | 'specOf'>
  conversations: Pick<ConversationService, 'find'>
  workspaces: Workspaces
  ids: Ids
  settings: { workspaceDir: string; sharedDirs: readonly string[]; authMode: 'open' | 'required' }
}

export async function sessionOf(body: SessionBody, caller: Caller, parts: SessionParts): Promise<Session> {
  const known = body.agentId == null ? undefined : await findSession(body.agentId.trim(), caller.userId, parts)
  const agentId = known?.agentId ?? `agt-${parts.ids()}`
  const mode = modeOf(body.mode) ?? known?.workspace?.mode ?? 'edit'
  const dir = known?.workspace?.dir ?? (await openDirectory(body, known?.conversationId ?? agentId, caller, parts))
  return {
    agentId,
    isNew: known === undefined,
    workspace: { dir, mode },
    workingDir: join(parts.settings.workspaceDir, dir),
    files: body.context?.files ?? known?.files ?? [],
  }
}

/** Whatever is not known is taken for the mode that allows less. */
function modeOf(asked: string | null | undefined): 'edit' | 'ask' | undefined {
  if (asked == null || asked === '') return undefined
  return asked === 'edit' ? 'edit' : 'ask'
}

type Found = { agentId: string; conversationId: string; workspace: Session['workspace'] | undefined; files: string[] }

/** Undefined if there is no such session, and if it is another user's: a caller cannot tell the two apart. */
async function findSession(
  agentId: string,
  owner: string,
  { runs, conversations }: SessionParts,
): Promise<Found | undefined> {
  if (!/^agt-[\w-]{1,100}$/.test(agentId)) return undefined
  const conversation = await conversations.find(owner, agentId)
  if (conversation === undefined) return undefined
  const found = { agentId, conversationId: conversation.id }
  const [run] = (await runs.list({ owner, conversationId: conversation.id, family: sessionFamily, limit: 1 })).rows
  const spec = run === undefined ? undefined : await runs.specOf(run)
  // No run is kept any more, or none came over this API: the conversation goes on, and this request says how.
  if (spec === undefined) return { ...found, workspace: undefined, files: [] }
  const { workspace, context } = spec
  return { ...found, workspace, files: Array.isArray(context?.files) ? (context.files as string[]) : [] }
}

/** A session that names no directory gets one that belongs to it, under the id of its conversation: ids are never reused. */
async function openDirectory(
  body: SessionBody,
  conversationId: string,
  caller: Caller,
  { workspaces, settings }: SessionParts,
): Promise<string> {
  const asked = body.context?.workingDir?.trim() ?? ''
  if (asked === '') return await workspaces.open(`${sessionDirectories}/${conversationId}`)
  const inside = relative(settings.workspaceDir, resolve(settings.workspaceDir, asked)).split(sep).join('/')
  const name = inside === '' ? '.' : inside
  refuseReserved(name)
  // In open mode a user is only a claim, so a directory cannot belong to one.
  const own = settings.authMode === 'required' && !isShared(name, settings.sharedDirs) && !name.startsWith('..')
  const dir = await workspaces.open(own ? `${ownerDirectories}/${folderOf(caller.userId)}/${name}` : asked)
  if (!own) refuseReserved(dir)
  return dir
}

/** Other sessions' and other users' directories lie below these, and everything lies below the workspace itself. */
function refuseReserved(name: string): void {
  const top = name.split('/', 1)[0] ?? ''
  if (top !== sessionDirectories && top !== ownerDirectories) return
  throw new AppError(
    'workspace_outside',
    'context.workingDir must be a directory of its own inside the workspace of the server; name another, or none.',
  )
}

function isShared(name: string, sharedDirs: readonly string[]): boolean {
  return sharedDirs.some((shared) => name === shared || name.startsWith(`${shared}/`))
}

/** Readable for the operator, and different for any two users. */
function folderOf(userId: string): string {
  const readable = userId.replaceAll(/[^A-Za-z0-9]+/g, '-').slice(0, 40)
  return `${readable}-${createHash('sha256').update(userId).digest('hex').slice(0, 16)}`
}
