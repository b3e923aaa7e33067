// Loaded into a measured server with --import. It answers questions of the benchmark over
// the IPC channel: the delay of the event loop, and the memory after a garbage collection.

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread } from 'node:worker_threads'

export type ProbeQuestion = 'watch' | 'delay' | 'memory'
export type ProbeAnswer = { delayP99Ms: number; delayMaxMs: number; residentBytes: number; heapBytes: number }

if (isMainThread && process.send !== undefined) {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  process.on('message', (question: ProbeQuestion) => {
    if (question === 'watch') {
      delay.reset()
      delay.enable()
    }
    if (question === 'delay') delay.disable()
    if (question === 'memory') collectGarbage()
    const { rss, heapUsed, external } = process.memoryUsage()
    const answer: ProbeAnswer = {
      delayP99Ms: delay.percentile(99) / 1e6,
      delayMaxMs: delay.max / 1e6,
      residentBytes: rss,
      heapBytes: heapUsed + external,
    }
    process.send?.(answer)
  })
  process.channel?.unref()
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  // The second pass collects what the finalizers of the first one released.
  collect()
  collect()
}
