// A real NATS server for tests, which can be killed and started again on its port.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { ensureProgram } from '../../scripts/ensure-programs.ts'

export type NatsServer = {
  readonly port: number
  kill(): Promise<void>
  restart(): Promise<void>
}

const program = ensureProgram('nats-server')

/** Why the tests that need a NATS server have to be skipped, or false. */
export const natsMissing: string | false = 'missing' in program ? program.missing : false

export async function startNatsServer(args: readonly string[] = []): Promise<NatsServer> {
  if ('missing' in program) throw new Error(program.missing)
  const { path } = program
  const port = await freePort()
  let child = await start(path, port, args)
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
  process.once('exit', () => child.kill('SIGKILL'))
  return {
    port,
    kill,
    async restart() {
      await kill()
      child = await start(path, port, args)
    },
  }
}

async function start(path: string, port: number, args: readonly string[]): Promise<ChildProcess> {
  const child = spawn(path, ['-a', '127.0.0.1', '-p', String(port), ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      said += `${line}\n`
      if (line.includes('Server is ready')) resolve()
    })
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`nats-server ended with ${code}:\n${said}`)))
  })
  return child
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
