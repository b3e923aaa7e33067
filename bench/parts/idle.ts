// The memory of streams that are open and silent: each has its own run and its own connection to
// the provider.

import { Agent, request } from 'node:http'
import type { Child } from '../processes.ts'
import { type Bench, chatBody, type Comparison, urlOf } from '../servers.ts'

const streams = 1000

/**
 * The runs of the first streams end with them, as the requests of the proxy do: otherwise these would still be open in one of the two
 * servers when the others are counted, and only the other could use their memory again.
 */
const stallingChat = JSON.stringify({ ...JSON.parse(chatBody('bench-stall')), onDisconnect: 'cancel' })

export async function idle(bench: Bench): Promise<Comparison[]> {
  const raw = await memoryPerStream(await bench.proxy(), '/')
  const ours = await memoryPerStream(await bench.polylog(), '/v1/agent/chat')
  return [
    {
      what: 'memory of an idle stream (1,000 open)',
      unit: 'KiB',
      raw: raw.resident,
      ours: ours.resident,
      goal: '≤ 1.25',
    },
    { what: 'of that, JavaScript heap', unit: 'KiB', raw: raw.heap, ours: ours.heap, goal: '' },
    { what: 'memory of each of 1,000 more', unit: 'KiB', raw: raw.ofMore, ours: ours.ofMore, goal: '' },
  ]
}

type StreamMemory = { resident: number; heap: number; ofMore: number }

async function memoryPerStream(child: Child, path: string): Promise<StreamMemory> {
  const url = urlOf(child, path)
  // What the first streams compile and cache is not the cost of a stream.
  await (
    await openStreams(url, 200)
  )()
  await (
    await openStreams(url, 200)
  )()
  const before = await child.ask('memory')
  const close = await openStreams(url, streams)
  const after = await child.ask('memory')
  // The space for young objects grows to its full size once, in steps of megabytes, with the first streams or before them.
  const closeMore = await openStreams(url, streams)
  const afterMore = await child.ask('memory')
  await closeMore()
  await close()
  return {
    resident: (after.residentBytes - before.residentBytes) / streams / 1024,
    heap: (after.heapBytes - before.heapBytes) / streams / 1024,
    ofMore: (afterMore.residentBytes - after.residentBytes) / streams / 1024,
  }
}

/** Resolves when all streams have begun. The result closes them. */
async function openStreams(url: string, count: number): Promise<() => Promise<void>> {
  const agent = new Agent({ keepAlive: true, maxSockets: count })
  for (let done = 0; done < count; done += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, index) => openStream(url, agent, done + index)))
  }
  await settled()
  return async () => {
    agent.destroy()
    await settled()
  }
}

function openStream(url: string, agent: Agent, index: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const call = request(
      url,
      { method: 'POST', agent, headers: { 'content-type': 'application/json' } },
      (response) => {
        response.on('data', () => {})
        response.on('error', () => {})
        resolve()
      },
    )
    call.on('error', reject)
    call.end(stallingChat.replaceAll('%INDEX%', String(index)))
  })
}

/** The headers of a stream come before its run has asked the provider, so a moment is given to that. */
function settled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1000))
}
