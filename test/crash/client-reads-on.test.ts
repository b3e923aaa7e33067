// @polylog/client while the server is killed and started again: its loops go on as if nothing had happened, and what they
// gave out is the journal.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient, foldRun, openRequests, type Run, type RunFrame } from '../../client/src/index.ts'
import { clientTimers } from '../support/client-timers.ts'
import { startNastyProxy } from '../support/nasty-proxy.ts'
import { calls, says, someone, startTestServerProcess } from '../support/test-server.ts'

const deaths = 3

test('a client reads on over kill -9, restarts and refused connections, and shows what the journal has', async () => {
  let server = await startTestServerProcess()
  const proxy = await startNastyProxy(server.polylog.baseUrl)
  const { provider } = server
  try {
    const user = someone()
    const words = Array.from({ length: 40 }, (_, index) => `word${index} `)
    // A server may be killed after it has asked again, so there is an answer for each of them.
    const again = Array.from({ length: deaths }, () => says(...words))
    await provider.script([[{ text: words.slice(0, 20) }, { stall: true }], ...again], `${user} long`)
    await provider.script([calls(['remember_note', { text: 'milk' }]), says('Noted.')], `${user} note`)
    const client = createClient({ baseUrl: proxy.baseUrl, userId: user, ...clientTimers(), requestRetries: Infinity })

    const long = await client.chat({ input: `${user} long` })
    const note = await client.chat({ input: `${user} note` })
    const half = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<string>()
    const reading = [
      read(long, (frames) => {
        if (frames.some(({ event, data }) => event === 'agent.delta' && data.delta.startsWith('word19'))) half.resolve()
      }),
      read(note, (frames) => {
        const [request] = openRequests(foldRun(frames))
        if (request?.type === 'tool') asked.resolve(request.confirmationId ?? '')
      }),
    ] as const
    await half.promise
    const confirmationId = await asked.promise

    for (let death = 0; death < deaths; death++) {
      await server.polylog.kill()
      // Requests of this time find no server; the client only waits.
      server = await server.restartProcess()
      proxy.target = server.polylog.baseUrl
    }
    await provider.release()
    await client.confirm(confirmationId)

    const [longFrames, noteFrames] = await Promise.all(reading)
    const good = createClient({ baseUrl: server.polylog.baseUrl, userId: user })
    assert.deepEqual(longFrames, await read(good.attach(long.id), () => {}))
    assert.deepEqual(noteFrames, await read(good.attach(note.id), () => {}))
    const { output, blocks, status } = foldRun(longFrames)
    assert.deepEqual([status, output], ['succeeded', words.join('')])
    assert.deepEqual(
      blocks.map((block) => block.type === 'text' && [block.state, block.text]),
      [['done', words.join('')]],
    )
    assert.equal(foldRun(noteFrames).output, 'Noted.')
  } finally {
    await proxy.close()
    await server.close()
  }
})

async function read(run: Run, seen: (frames: readonly RunFrame[]) => void): Promise<RunFrame[]> {
  const frames: RunFrame[] = []
  for await (const frame of run) {
    frames.push(frame)
    seen(frames)
  }
  return frames
}
