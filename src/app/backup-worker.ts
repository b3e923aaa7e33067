// The thread of a backup, so that the command can show its progress.

import { parentPort, workerData } from 'node:worker_threads'
import { copyDatabase, damageOf } from '../stores/sqlite/copy-file.ts'

const { file, target } = workerData as { file: string; target: string }
copyDatabase(file, target)
parentPort?.postMessage('copied')
parentPort?.postMessage(damageOf(target))
