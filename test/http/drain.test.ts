// SIGTERM drains: no new runs, streams end cleanly, and what is not finished goes
// on at the next start as if nothing had been.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts'
import {
  calls,
  endOf,
  hangsAfter,
  type House,
  type Json,
  named,
  runIdOf,
  says,
  someone,
  startHouse,
  toolState,
} from '../support/house.ts'
import { journaled, openStream } from '../support/sse.ts'

let provider: FakeProvider

before(async () => {
  provider = await startFakeProvider()
})

after(() => provider.stop())

const attach = (house: House, user: string, runId: string, after = '0') =>
  openStream(`${house.polylog.baseUrl}/v1/agent/runs/${runId}/stream?userId=${user}&after=${after}`)

test('SIGTERM ends streams cleanly, and each kind of unfinished run goes on at the next start', async () => {
  const house = await startHouse({}, provider)
  const user = someone()
  const mark = (name: string) => `${name} ${user}`

  await provider.script([hangsAfter('So far '), says('So far ', 'so good.')], mark('speaking'))
  const speaking = await house.chat(user, { input: mark('speaking'), conversationId: mark('conversation') })
  await speaking.waitFor(named('agent.delta'))

  const queued = await house.chat(user, { input: mark('queued'), conversationId: mark('conversation') })
  await queued.waitFor(named('agent.start'))

  await provider.script([calls(['remember_note', { text: 'x' }]), says('Saved.')], mark('asking'))
  const asking = await house.chat(user, mark('asking'))
  const { json } = await asking.waitFor(toolState('awaiting_input'))
  await house.reaches(user, runIdOf(asking), 'awaiting_input')

  const exitCode = await house.polylog.stop()
  const streams = [speaking, queued, asking]
  const cuts = await Promise.all(streams.map(async (stream) => (await stream.ended()).cut))

  assert.equal(exitCode, 0)
  assert.deepEqual(cuts, [false, false, false])
  for (const stream of streams) assert.equal(stream.frames.some(named('agent.end')), false)

  const again = await house.restart()
  try {
    const lastId = journaled(speaking.frames).at(-1)?.id as string
    const resumed = await attach(again, user, runIdOf(speaking), lastId)
    await resumed.ended()
    await again.reaches(user, runIdOf(queued), 'succeeded')
    await again.call('POST', `/v1/tool-confirmations/${json.data.confirmationId}/confirm`, { user })
    const whole = await attach(again, user, runIdOf(asking))
    await whole.ended()

    // What was shown before is not shown again; what was cut off is.
    assert.deepEqual(
      resumed.frames.filter(named('agent.delta')).map((frame) => frame.json.data.delta),
      ['so good.'],
    )
    assert.equal(endOf(resumed.frames).output, 'So far so good.')
    const everything = await attach(again, user, runIdOf(speaking))
    await everything.ended()
    assert.equal(everything.text(), speaking.text() + resumed.text())
    assert.equal((await again.call('GET', `/v1/agent/runs/${runIdOf(speaking)}`, { user })).body.attempt, 2)
    assert.equal(endOf(whole.frames).output, 'Saved.')
    assert.ok(whole.text().startsWith(asking.text()))
    const { body } = await again.call('GET', `/v1/conversations/${encodeURIComponent(mark('conversation'))}/messages`, {
      user,
    })
    assert.deepEqual(
      (body as unknown as Json[]).filter(({ role }) => role === 'assistant').map(({ content }) => content),
      ['So far so good.', 'Hello from the fake provider.'],
    )
  } finally {
    await again.close()
  }
})

test('SIGTERM with nothing to do ends the process, in order', async () => {
  const idle = await startHouse({}, provider)
  assert.equal((await idle.call('GET', '/v1/health')).status, 200)

  assert.equal(await idle.polylog.stop(), 0)

  assert.match(idle.polylog.log(), /stopping/)
  await idle.close()
})
