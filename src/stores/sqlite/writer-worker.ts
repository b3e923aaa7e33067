// The writer thread: owns the only connection that writes, so that a slow disk
// never holds up the main thread. It answers every batch with exactly one message.

import { parentPort, workerData } from 'node:worker_threads'
import { batchWriter } from './batch-writer.ts'
import { toFailure, type WriterMessage, type WriterRequest } from './commands.ts'
import { openWriter } from './connection.ts'
import { migrate } from './migrate.ts'
import { toStoreError } from './sqlite-errors.ts'

const port = parentPort
if (port === null) throw new Error('This file is started by commit-queue.ts as a worker thread.')

const say = (message: WriterMessage): void => port.postMessage(message)
const { file } = workerData as { file: string }
const failure = (error: unknown) => toFailure(toStoreError(error, file))

try {
  const db = openWriter(file)
  migrate(db)
  const writer = batchWriter(db)
  port.on('message', (request: WriterRequest) => {
    if (request === 'close') {
      try {
        writer.close()
      } catch (error) {
        // What was acknowledged is on disk; opening finds the rest.
        say({ type: 'trouble', failure: failure(error) })
      }
      say({ type: 'closed' })
      port.close()
      return
    }
    try {
      say(writer.execute(request))
    } catch (error) {
      say({ type: 'failed', failure: failure(error) })
    }
  })
  say({ type: 'ready' })
} catch (error) {
  say({ type: 'refused', failure: failure(error) })
  port.close()
}
