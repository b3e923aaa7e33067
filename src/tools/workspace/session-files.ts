// Optimistic concurrency for files. A session stores the hash of each file that it last read
// or wrote; its next change is refused if another writer has changed the file since.
//
// Each write is recorded before it happens (write-ahead), with the hash before and after and
// the call's idempotency key. So a call that is retried after a crash can tell whether its
// write happened (nothing is left to do), did not happen (it is done now), or another writer
// came in between (it is refused). This makes the file tools idempotent.

import { createHash } from 'node:crypto'
import { KeyedMutex } from '../../kit/keyed-mutex.ts'
import type { WorkspaceStore } from '../../stores/workspace-store.ts'
import type { ToolContext } from '../tool.ts'
import { refused } from './refusal.ts'
import type { WorkspacePath, Workspace } from './workspace.ts'
import type { WorkspaceFolders } from './workspaces.ts'

export type FileVersions = Pick<WorkspaceStore, 'readFileVersion' | 'saveFileVersion'>

export type Change = { content: string; replacements: number }

export type Changed = { bytes: number; lines: number; replacements: number; modified: boolean }

export class SessionFiles {
  private readonly folders: WorkspaceFolders
  private readonly versions: FileVersions
  /** Serialises the changes of each file, because calls of one step run in parallel and sessions may share a directory. */
  private readonly files = new KeyedMutex()

  constructor(folders: WorkspaceFolders, versions: FileVersions) {
    this.folders = folders
    this.versions = versions
  }

  of(context: Pick<ToolContext, 'workspace'>): Promise<Workspace> {
    return this.folders.of(context)
  }

  async read(workspace: Workspace, place: WorkspacePath, context: ToolContext): Promise<string> {
    return this.files.run(workspace.keyOf(place), async () => {
      const content = await workspace.readFile(place)
      const text = textOf(content, place.shown)
      await this.versions.saveFileVersion({
        scope: scopeOf(context),
        path: workspace.keyOf(place),
        hash: hashOf(content),
        write: null,
        at: context.now(),
      })
      return text
    })
  }

  /** `produce` gets the current text (null if there is no such file) and throws if the change cannot be applied to it. */
  async change(
    workspace: Workspace,
    place: WorkspacePath,
    context: ToolContext,
    produce: (current: string | null) => Change,
  ): Promise<Changed> {
    const path = workspace.keyOf(place)
    return this.files.run(path, async () => {
      const scope = scopeOf(context)
      const bytes = await workspace.readFileIfPresent(place)
      const before = bytes === null ? null : hashOf(bytes)
      const known = await this.versions.readFileVersion(scope, path)
      const mine = known?.write?.key === context.idempotencyKey ? known : undefined
      if (mine !== undefined && before === mine.hash && mine.write !== null) {
        return { ...measured(bytes ?? Buffer.alloc(0)), replacements: mine.write.replacements, modified: true }
      }
      // A deleted file may be created again: no content of another writer can be lost.
      const expected = known === undefined || before === null ? [before] : [known.hash, known.write?.before]
      if (mine !== undefined ? before !== mine.write?.before : !expected.includes(before)) {
        throw refused(
          `${place.shown} has changed since it was read in this session. Read it again, then repeat the change.`,
        )
      }
      const { content, replacements } = produce(bytes === null ? null : textOf(bytes, place.shown))
      const after = Buffer.from(content)
      const hash = hashOf(after)
      if (context.signal.aborted) throw context.signal.reason
      const row = { scope, path, hash, at: context.now() }
      const write = { key: context.idempotencyKey, before, replacements }
      await this.versions.saveFileVersion({ ...row, write })
      if (hash !== before) {
        await workspace.writeFile(place, after, hashOf(Buffer.from(`${context.idempotencyKey} ${path}`)).slice(0, 24))
        // The write is complete. If the old content comes back later, another writer has restored it.
        await this.versions.saveFileVersion({ ...row, write: { ...write, before: hash } })
      }
      return { ...measured(after), replacements, modified: hash !== before }
    })
  }
}

/** The key of a session's stored state: its conversation, or its run if there is no conversation. */
export function scopeOf(context: Pick<ToolContext, 'conversationId' | 'runId'>): string {
  return context.conversationId ?? context.runId
}

function hashOf(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

export function linesOf(text: string): number {
  if (text === '') return 0
  let lines = text.endsWith('\n') ? 0 : 1
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines += 1
  return lines
}

function measured(content: Buffer): { bytes: number; lines: number } {
  return { bytes: content.length, lines: linesOf(content.toString()) }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Null if the content is not UTF-8 text. */
export function decoded(content: Uint8Array): string | null {
  if (content.includes(0)) return null
  try {
    return decoder.decode(content)
  } catch {
    return null
  }
}

function textOf(content: Uint8Array, shown: string): string {
  const text = decoded(content)
  if (text === null) throw refused(`${shown} is not a text file in UTF-8.`)
  return text
}
