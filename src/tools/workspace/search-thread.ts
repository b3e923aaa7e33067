// The thread in which fs_grep tries a regular expression; it may be ended at any time.

import { parentPort, workerData } from 'node:worker_threads'
import { hitsIn } from './line-hits.ts'

const { source, flags } = workerData as { source: string; flags: string }
const pattern = new RegExp(source, flags)

parentPort?.on('message', ({ text, hitsMax }: { text: string; hitsMax: number }) => {
  parentPort?.postMessage(hitsIn(text, hitsMax, (line) => line.search(pattern)))
})
