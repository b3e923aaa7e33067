// The writer thread. It owns the only connection that writes, so that a slow disk never
// blocks the main thread. It must answer every batch with exactly one message.

import { parentPort, workerData } from 'node:worker_threads'
import { batchWriter } from './batch-writer.ts'
import { toFailure, type WriterMessage, type WriterRequest } from './commands.ts'
import { openWriter } from './connection.ts'
import { refuseUnfinished } from './copy-end.ts'
import { migrate } from './migrate.ts'
import { toStoreError } from './sqlite-errors.ts'

const port = parentPort
if (port === null) throw new Error('This file is started by commit-queue.ts as a worker thread.')

const send = (message: WriterMessage): void => port.postMessage(message)
const { file } = workerData as { file: string }
const failure = (error: unknown) => toFailure(toStoreError(error, file))

try {
  const db = openWriter(file)
  migrate(db)
  refuseUnfinished(db)
  const writer = batchWriter(db)
  port.on('message', (request: WriterRequest) => {
    if (request === 'close') {
      try {
        writer.close()
      } catch (error) {
        // No data is lost: acknowledged writes are on disk, and recovery at the next start folds the tail.
        send({ type: 'trouble', failure: failure(error) })
      }
      send({ type: 'closed' })
      port.close()
      return
    }
    try {
      send(writer.execute(request))
    } catch (error) {
      send({ type: 'failed', failure: failure(error) })
    }
  })
  send({ type: 'ready' })
} catch (error) {
  send({ type: 'refused', failure: failure(error) })
  port.close()
}
