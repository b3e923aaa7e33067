// The configured workspace and the working directories below it. The path of the workspace
// itself may contain links, because the operator chose it; paths below it may not.

import { mkdir, readdir, realpath, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { AppError } from '../../errors/app-error.ts'
import type { ToolContext, Workspaces } from '../tool.ts'
import { descriptorsWork } from './descriptors.ts'
import { outside } from './refusal.ts'
import { Workspace } from './workspace.ts'

export interface WorkspaceFolders extends Workspaces {
  /** The working directory of a call; created if it is missing. */
  of(context: Pick<ToolContext, 'workspace'>): Promise<Workspace>
}

export function createWorkspaces(configuredRoot: string): WorkspaceFolders {
  const configured = resolve(configuredRoot)
  let real: Promise<string> | null = null

  /** Created on first use, because most servers never use it. */
  function root(): Promise<string> {
    // 0o700: only the server's user may read what agents write.
    real ??= mkdir(configured, { recursive: true, mode: 0o700 })
      .then(() => realpath(configured))
      .catch((cause: unknown) => {
        real = null
        throw new AppError('tool_unavailable', 'The workspace directory cannot be used.', { cause })
      })
    return real
  }

  async function folder(dir: string): Promise<Workspace> {
    if (!descriptorsWork()) throw new AppError('tool_unavailable', 'Working directories need Linux with /proc.')
    const workspace = new Workspace(await root(), dir, configured)
    await workspace.make()
    return workspace
  }

  async function nameOf(asked: string): Promise<string> {
    const whole = new Workspace(await root(), '.', configured)
    return whole.keyOf(whole.locate(asked))
  }

  return {
    nameOf: (asked) => refusedAsOutside(() => nameOf(asked)),
    open: (asked) =>
      refusedAsOutside(async () => {
        const dir = await nameOf(asked)
        if (descriptorsWork()) await folder(dir)
        else await makeWithoutDescriptors(await root(), dir)
        return dir
      }),
    async remove(dir) {
      // `rm` unlinks links and never follows them.
      await rm(join(await root(), dir), { recursive: true, force: true })
    },
    async list(dir) {
      const entries = await readdir(join(await root(), dir), { withFileTypes: true }).catch(() => [])
      return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
    },
    of({ workspace }) {
      if (workspace === undefined) {
        throw new AppError('internal_error', 'A tool that needs a working directory was run without one.')
      }
      return folder(workspace.dir)
    },
  }
}

async function refusedAsOutside(name: () => Promise<string>): Promise<string> {
  try {
    return await name()
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'file_refused') throw error
    throw new AppError('workspace_outside', `The working directory cannot be used: ${error.message}`)
  }
}

/** For systems other than Linux: a session gets its directory, although the file tools are not offered there. */
async function makeWithoutDescriptors(root: string, dir: string): Promise<void> {
  const directory = join(root, dir)
  await mkdir(directory, { recursive: true })
  if ((await realpath(directory)) !== directory) throw outside(dir)
}
