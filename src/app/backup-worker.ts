// The thread of a backup or a restore, so that the command can show its progress: copies, unless there is no file to copy, and
// checks the copy.

import { parentPort, workerData } from 'node:worker_threads'
import { letMainThreadGoFirst } from '../kit/thread-priority.ts'
import { copyDatabase, damageOf } from '../stores/sqlite/copy-file.ts'

letMainThreadGoFirst()

const { file, target } = workerData as { file: string | null; target: string }
if (file !== null) copyDatabase(file, target)
parentPort?.postMessage('copied')
parentPort?.postMessage(damageOf(target))
