// The threads that write to SQLite files, one for each open store. A thread takes longer to start than a file to
// open, so that of a closed store is kept for the next one. A server has one store; programs that open one after the
// other, such as tests, gain by it.

import { Worker } from 'node:worker_threads'
import type { WriterRequest } from './commands.ts'

/** Each holds some megabytes. */
const idleMax = 2
const idle: Worker[] = []

/** A thread that opens the file. */
export function startWriter(file: string): Worker {
  const worker =
    idle.pop() ?? new Worker(new URL('./writer-worker.ts', import.meta.url), { name: 'polylog-sqlite-writer' })
  stopListening(worker)
  worker.ref()
  worker.postMessage({ open: file } satisfies WriterRequest)
  return worker
}

/** `isReady`: it has closed its file and can open another. Listeners of its last user are removed. */
export async function giveBackWriter(worker: Worker, isReady: boolean): Promise<void> {
  stopListening(worker)
  if (!isReady || idle.length >= idleMax) {
    await worker.terminate()
    return
  }
  // It does not keep the process alive.
  worker.unref()
  idle.push(worker)
  // Should it end while it has nothing to do, it must not be used again, nor end the process.
  worker.on('error', () => {})
  worker.on('exit', () => {
    if (idle.includes(worker)) idle.splice(idle.indexOf(worker), 1)
  })
}

function stopListening(worker: Worker): void {
  for (const event of ['message', 'error', 'exit']) worker.removeAllListeners(event)
}
