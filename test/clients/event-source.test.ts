// The EventSource of browsers, as the package `eventsource`, while the server is killed: it comes back by
// itself with Last-Event-ID, and gets exactly the rest.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventSource } from 'eventsource'
import { openStream } from '../support/sse.ts'
import { hangsAfter, runIdOf, someone, startTestServerProcess, until } from '../support/test-server.ts'

const names = ['agent.start', 'context.patch', 'agent.delta', 'agent.message', 'tool.state', 'agent.end']

test('an EventSource gets every frame once, although the server was killed in the middle', async (context) => {
  let server = await startTestServerProcess()
  context.after(() => server.close())
  const user = someone()
  const rest = [{ text: ['One ', 'two ', 'three.'] }, { finish: 'stop' }]
  await server.provider.script([hangsAfter('One ', 'two '), rest], user)
  const stream = await server.chat(user, user)
  const path = `/v1/agent/runs/${runIdOf(stream)}/stream?userId=${user}`
  const seen: string[] = []
  const cursors: (string | null)[] = []
  const { port } = new URL(server.polylog.baseUrl)
  const source = new EventSource(`${server.polylog.baseUrl}${path}`, {
    fetch: async (input, init) => {
      cursors.push(new Headers(init.headers).get('last-event-id'))
      return await fetch(input, init)
    },
  })
  context.after(() => source.close())
  for (const name of names) source.addEventListener(name, (event) => seen.push(`${event.lastEventId} ${name}`))
  await until('the first words', () => (seen.filter((line) => line.endsWith('delta')).length === 2 ? true : undefined))

  await server.polylog.kill()
  const lastSeen = seen.at(-1)?.split(' ')[0]
  server = await server.restartProcess({ PORT: port })
  await until('the end', () => (seen.at(-1)?.endsWith('agent.end') === true ? true : undefined))

  const whole = await openStream(`${server.polylog.baseUrl}${path}`)
  await whole.ended()
  assert.deepEqual(
    seen,
    whole.frames.filter(({ id }) => id !== undefined).map(({ id, event }) => `${id} ${event}`),
  )
  assert.equal(cursors[0], null)
  assert.ok(cursors.slice(1).every((cursor) => cursor === lastSeen || cursor === seen.at(-1)?.split(' ')[0]))
  assert.match(JSON.stringify(whole.frames.at(-1)), /One two three\./)
})
