// Finds or creates the session of a request. A session is a conversation whose id this
// server generated. The first request sets its directory; any later request can change its
// mode and files. Every run has all three in its spec, so the next request reads them from
// the newest run.

import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { AppError } from '../../errors/app-error.ts'
import { defined } from '../../kit/defined.ts'
import type { Ids } from '../../kit/ids.ts'
import type { ConversationService } from '../../conversations/conversation-service.ts'
import { directoryNodeOf } from '../../runs/placement.ts'
import type { RunService } from '../../runs/run-service.ts'
import { ownerDirectories, sessionDirectories, type Workspaces } from '../../tools/tool.ts'
import type { Caller } from '../../kit/caller.ts'
import type { SessionBody } from './session-body.ts'

export const sessionFamily = 'session'

export type Session = {
  agentId: string
  /** The id was generated for this request. */
  isNew: boolean
  workspace: { dir: string; mode: 'edit' | 'ask' }
  /** The node that has the directory; absent: this one, or all. */
  directoryNode?: string
  /** The path of the same directory, for the model. */
  workingDir: string
  files: string[]
}

export type SessionServices = {
  runs: Pick<RunService, 'list' | 'specOf'>
  conversations: Pick<ConversationService, 'find'>
  workspaces: Workspaces
  ids: Ids
  settings: { workspaceDir: string; sharedDirs: readonly string[]; authMode: 'open' | 'required' }
}

export async function sessionOf(body: SessionBody, caller: Caller, services: SessionServices): Promise<Session> {
  const known = body.agentId == null ? undefined : await findSession(body.agentId.trim(), caller.userId, services)
  const agentId = known?.agentId ?? `agt-${services.ids()}`
  const mode = modeOf(body.mode) ?? known?.workspace?.mode ?? 'edit'
  const dir = known?.workspace?.dir ?? (await openDirectory(body, known?.conversationId ?? agentId, caller, services))
  return {
    agentId,
    isNew: known === undefined,
    workspace: { dir, mode },
    workingDir: join(services.settings.workspaceDir, dir),
    files: body.context?.files ?? known?.files ?? [],
    ...defined({ directoryNode: known?.workspace === undefined ? undefined : known.directoryNode }),
  }
}

/** An unknown mode becomes `ask`, which allows less. */
function modeOf(asked: string | null | undefined): 'edit' | 'ask' | undefined {
  if (asked == null || asked === '') return undefined
  return asked === 'edit' ? 'edit' : 'ask'
}

type KnownSession = {
  agentId: string
  conversationId: string
  workspace: Session['workspace'] | undefined
  directoryNode?: string | undefined
  files: string[]
}

/** Undefined if the session does not exist or belongs to another user. A caller must not see the difference. */
async function findSession(
  agentId: string,
  owner: string,
  { runs, conversations }: SessionServices,
): Promise<KnownSession | undefined> {
  if (!/^agt-[\w-]{1,100}$/.test(agentId)) return undefined
  const conversation = await conversations.find(owner, agentId)
  if (conversation === undefined) return undefined
  const found = { agentId, conversationId: conversation.id }
  const [run] = (await runs.list({ owner, conversationId: conversation.id, family: sessionFamily, limit: 1 })).rows
  const spec = run === undefined ? undefined : await runs.specOf(run)
  // The runs were removed, or none of them came over this API. The session continues with the settings of this request.
  if (spec === undefined) return { ...found, workspace: undefined, files: [] }
  const { workspace, context } = spec
  const directoryNode = run === undefined ? undefined : directoryNodeOf(run.needs)
  return { ...found, workspace, directoryNode, files: Array.isArray(context?.files) ? (context.files as string[]) : [] }
}

/** Without `workingDir` the session gets its own directory, named by its conversation id because ids are never reused. */
async function openDirectory(
  body: SessionBody,
  conversationId: string,
  caller: Caller,
  { workspaces, settings }: SessionServices,
): Promise<string> {
  const asked = body.context?.workingDir?.trim() ?? ''
  if (asked === '') return await workspaces.open(`${sessionDirectories}/${conversationId}`)
  const name = await workspaces.nameOf(asked)
  refuseReserved(name)
  // In open mode the user id is not verified, so a directory cannot belong to a user.
  const own = settings.authMode === 'required' && !isShared(name, settings.sharedDirs)
  if (!own && name === workspaceItself) throw notItsOwn()
  return await workspaces.open(own ? `${ownerDirectories}/${folderOf(caller.userId)}/${name}` : name)
}

/** It contains the directories of all sessions and users, so no session may work in it. */
const workspaceItself = '.'

/** Throws if the path is in one of the two folders that hold the directories of sessions and of users. */
function refuseReserved(name: string): void {
  const top = name.split('/', 1)[0] ?? ''
  if (top === sessionDirectories || top === ownerDirectories) throw notItsOwn()
}

function notItsOwn(): AppError {
  return new AppError(
    'workspace_outside',
    'context.workingDir must be a directory of its own inside the workspace of the server; name another, or none.',
  )
}

function isShared(name: string, sharedDirs: readonly string[]): boolean {
  return sharedDirs.some((shared) => name === shared || name.startsWith(`${shared}/`))
}

/** Readable for the operator, and unique for each user. */
function folderOf(userId: string): string {
  const readable = userId.replaceAll(/[^A-Za-z0-9]+/g, '-').slice(0, 40)
  return `${readable}-${createHash('sha256').update(userId).digest('hex').slice(0, 16)}`
}
