// Loaded into a server that is watched, before everything else: tells the watcher which files the server imports.

import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'
import { isMainThread } from 'node:worker_threads'
import { fileState, type FileState } from './watched-files.ts'

/** The files that were imported since the last report, with their states from before they were read. */
export type ImportedFiles = [path: string, state: FileState][]

let report: ImportedFiles = []

// Threads are started with the same options; their files are imported by the main thread or belong to the server.
if (isMainThread && process.send !== undefined) {
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const resolved = nextResolve(specifier, context)
      if (resolved.url.startsWith('file:') && !resolved.url.includes('/node_modules/'))
        note(fileURLToPath(resolved.url))
      return resolved
    },
  })
  process.on('exit', send)
  // The watcher was killed, and only the watcher stops this server.
  process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'))
}

function note(path: string): void {
  if (report.length === 0) setImmediate(send)
  report.push([path, fileState(path)])
}

function send(): void {
  if (report.length > 0 && process.connected) process.send?.(report)
  report = []
}
