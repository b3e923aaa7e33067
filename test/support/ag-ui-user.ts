// Starts a real AG-UI client in a process of its own and drives it.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { AgUiCommand, AgUiLine, AgUiReport, AgUiSeenEvent } from '../fakes/ag-ui-user.ts'

export type AgUiVersion = '1.0' | '0.0'

export type AgUiUser = {
  open(agent: string, config: Extract<AgUiCommand, { do: 'open' }>['config']): Promise<AgUiReport>
  run(agent: string, given?: Omit<Extract<AgUiCommand, { do: 'run' }>, 'do'>): Promise<AgUiReport>
  connect(agent: string, url: string): Promise<AgUiReport>
  abort(agent: string): Promise<AgUiReport>
  /** Waits for an event of this client; also one that came before. */
  saw(agent: string, matches: (event: AgUiSeenEvent) => boolean): Promise<AgUiSeenEvent>
  stop(): Promise<void>
}

export function startAgUiUser(version: AgUiVersion): AgUiUser {
  const path = fileURLToPath(new URL('../fakes/ag-ui-user.ts', import.meta.url))
  const child = spawn(process.execPath, [path, version], { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const answers = new Map<number, (report: AgUiReport) => void>()
  const seen = new Map<string, AgUiSeenEvent[]>()
  const watchers = new Set<() => void>()
  let commands = 0

  createInterface({ input: child.stdout }).on('line', (line) => {
    const said = JSON.parse(line) as AgUiLine
    if ('command' in said) return answers.get(said.command)?.(said.report)
    seen.set(said.agent, [...(seen.get(said.agent) ?? []), said.event])
    for (const watcher of watchers) watcher()
  })

  const send = async (agent: string, command: AgUiCommand): Promise<AgUiReport> => {
    const number = ++commands
    const answered = new Promise<AgUiReport>((resolve) => answers.set(number, resolve))
    child.stdin.write(`${JSON.stringify({ command: number, agent, ...command })}\n`)
    const gone = exited.then(() => Promise.reject(new Error(`the AG-UI client ${version} is gone`)))
    return await Promise.race([answered, gone])
  }

  return {
    open: async (agent, config) => await send(agent, { do: 'open', config }),
    run: async (agent, given = {}) => await send(agent, { do: 'run', ...given }),
    connect: async (agent, url) => await send(agent, { do: 'connect', url }),
    abort: async (agent) => await send(agent, { do: 'abort' }),
    async saw(agent, matches) {
      return await new Promise((resolve) => {
        const look = () => {
          const found = seen.get(agent)?.find(matches)
          if (found === undefined) return
          watchers.delete(look)
          resolve(found)
        }
        watchers.add(look)
        look()
      })
    },
    async stop() {
      child.stdin.end()
      child.kill()
      await exited
    },
  }
}
