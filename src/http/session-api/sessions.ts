// Which session a request belongs to. A session is a conversation whose id we minted;
// its mode, directory and files are those of its first request, and every run carries
// them in its spec, so the newest run tells them to the next.

import { relative, resolve, sep } from 'node:path'
import { AppError } from '../../errors/app-error.ts'
import type { Ids } from '../../kit/ids.ts'
import { findConversation } from '../../runs/conversation-names.ts'
import type { Store } from '../../stores/store.ts'
import type { Workspaces } from '../../tools/tool.ts'
import type { Caller } from '../caller.ts'
import type { SessionBody } from './session-body.ts'

export const sessionFamily = 'session'

export type Session = {
  agentId: string
  /** The id was minted for this request. */
  isNew: boolean
  workspace: { dir: string; mode: 'edit' | 'ask' }
  files: string[]
}

export type SessionParts = {
  store: Pick<Store, 'readConversation' | 'findConversationByName' | 'listRuns' | 'readEvents'>
  workspaces: Workspaces
  ids: Ids
  settings: { workspaceDir: string }
}

/** Directories of sessions that named none. Nobody can name one of these: they belong to their session. */
const ownDirectories = 'sessions'

export async function sessionOf(body: SessionBody, caller: Caller, parts: SessionParts): Promise<Session> {
  const known = body.agentId == null ? undefined : await findSession(body.agentId.trim(), caller.userId, parts)
  if (known?.workspace !== undefined) return { ...known, workspace: known.workspace, files: known.files, isNew: false }
  const agentId = known?.agentId ?? `agt-${parts.ids()}`
  const mode = body.mode == null || body.mode === '' || body.mode === 'edit' ? 'edit' : 'ask'
  const asked = body.context?.workingDir?.trim() ?? ''
  const dir =
    asked === '' ? await parts.workspaces.open(`${ownDirectories}/${agentId}`) : await openNamed(asked, caller, parts)
  return { agentId, isNew: known === undefined, workspace: { dir, mode }, files: body.context?.files ?? [] }
}

type Found = { agentId: string; workspace: Session['workspace'] | undefined; files: string[] }

/** Undefined where nobody has such a session, and where somebody else has it: nobody can tell the two apart. */
async function findSession(agentId: string, owner: string, { store }: SessionParts): Promise<Found | undefined> {
  if (!/^agt-[\w-]{1,100}$/.test(agentId)) return undefined
  const conversation = await findConversation(store, owner, agentId)
  if (conversation === undefined) return undefined
  const [run] = (await store.listRuns({ owner, conversationId: conversation.id, family: sessionFamily, limit: 1 })).rows
  const first = run === undefined ? undefined : (await store.readEvents(run.id, 0, 1)).events[0]
  // No run is kept any more, or none came over this API: the conversation goes on, and this request says how.
  if (first?.type !== 'run.accepted') return { agentId, workspace: undefined, files: [] }
  const { workspace, context } = first.data.spec
  return { agentId, workspace, files: Array.isArray(context?.files) ? (context.files as string[]) : [] }
}

/**
 * A directory that a client names is shared by all who name it. Where users have logins, nobody gets the whole
 * workspace: the directories of other people's sessions are in it.
 */
async function openNamed(asked: string, caller: Caller, { workspaces, settings }: SessionParts): Promise<string> {
  const refuse = (name: string) => {
    if (name.split(/[\\/]/, 1)[0] === ownDirectories || (caller.loggedIn && (name === '' || name === '.')))
      throw new AppError(
        'workspace_outside',
        'context.workingDir must be a directory of its own inside the workspace of the server; name another, or none.',
      )
  }
  const named = relative(settings.workspaceDir, resolve(settings.workspaceDir, asked))
  refuse(named.split(sep).join('/'))
  const dir = await workspaces.open(asked)
  refuse(dir)
  return dir
}
