// `polylog serve --watch`: runs the server as a child process, and starts it again when polylog.config.ts, or a file that
// it imports, has changed. It compares the times of the files. Notifications of the file system, which `node --watch` uses, get
// lost while a server stops or starts, and some file systems do not send any.

import { spawn } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { ImportedFiles } from './report-imports.ts'
import { WatchedFiles } from './watched-files.ts'

const lookEveryMs = 250

type Server = { ended: Promise<number>; hasEnded(): boolean; stop(signal: NodeJS.Signals): void }

/** `main`: the file that serves. Resolves with the exit code when a signal has stopped the server. */
export async function watch(main: URL, args: readonly string[]): Promise<number> {
  const files = new WatchedFiles()
  let server: Server | undefined
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      stop.abort()
      // A terminal signals both processes, a supervisor only this one. The server ignores the second signal.
      server?.stop(signal)
    })
  }
  for (;;) {
    files.refresh()
    server = start(main, args, files)
    while (!server.hasEnded() && !stop.signal.aborted && !files.hasChanged()) {
      await Promise.race([server.ended, wait(lookEveryMs)])
    }
    if (stop.signal.aborted) return await server.ended
    if (server.hasEnded()) {
      say('The server has ended. Waiting for file changes before it starts again.')
      while (!stop.signal.aborted && !files.hasChanged()) await wait(lookEveryMs)
      if (stop.signal.aborted) return await server.ended
    } else {
      say('A file has changed. The server starts again.')
      server.stop('SIGTERM')
      await server.ended
      if (stop.signal.aborted) return 0
    }
  }
}

function start(main: URL, args: readonly string[], files: WatchedFiles): Server {
  const reporter = new URL('./report-imports.ts', import.meta.url).href
  const command = [...process.execArgv, '--import', reporter, fileURLToPath(main), ...args]
  const child = spawn(process.execPath, command, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] })
  child.on('message', (report: ImportedFiles) => {
    for (const [path, state] of report) files.add(path, state)
  })
  const { promise: ended, resolve } = Promise.withResolvers<number>()
  let hasEnded = false
  const end = (code: number | null) => {
    hasEnded = true
    resolve(code ?? 1)
  }
  // `close` comes after the last report; `exit` may come before it.
  child.once('close', end)
  child.once('error', (error) => {
    say(`The server could not be started: ${error.message}`)
    end(null)
  })
  return { ended, hasEnded: () => hasEnded, stop: (signal) => void child.kill(signal) }
}

function say(sentence: string): void {
  process.stderr.write(`${sentence}\n`)
}
