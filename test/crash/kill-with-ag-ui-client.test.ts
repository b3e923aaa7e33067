// Real AG-UI clients while the server is killed: in the middle of an answer, and while it waits for an
// answer or for the result of a tool of the client. After the restart they attach again and go on, and
// nothing happens twice.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type AgUiUser, startAgUiUser } from '../support/ag-ui-user.ts'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts'
import { openStream } from '../support/sse.ts'
import { calls, type Json, says, someone, startTestServerProcess, type TestServer } from '../support/test-server.ts'

let provider: FakeProvider
before(async () => {
  provider = await startFakeProvider()
})
after(() => provider.stop())

const show = { name: 'show_map', description: 'Shows a map.', parameters: { type: 'object', properties: {} } }

for (const version of ['1.0', '0.0'] as const) {
  describe(`a client of AG-UI ${version}`, () => {
    let client: AgUiUser
    before(() => {
      client = startAgUiUser(version)
    })
    after(() => client.stop())

    test('attaches to its threads after a kill, sees each word once, and answers what it was asked', async () => {
      const first = await startTestServerProcess({}, provider)
      const [talking, asked, mapping] = [someone('talking'), someone('asked'), someone('mapping')]
      const open = async (server: TestServer, user: string, name = user) =>
        await client.open(name, { url: `${server.polylog.baseUrl}/v1/ag-ui?userId=${user}`, threadId: `t-${user}` })
      const question = (user: string) => ({ message: { id: `q-${user}`, role: 'user', content: user } })
      await provider.script(
        [[{ text: ['One, ', 'two, '] }, { stall: true }], says('One, ', 'two, ', 'three.')],
        talking,
      )
      await provider.script([calls(['remember_note', { text: 'milk' }]), says('Noted.')], asked)
      await provider.script([calls(['show_map', {}, 'map-1']), says('There.')], mapping)
      for (const user of [talking, asked, mapping]) await open(first, user)

      const cut = client.run(talking, question(talking))
      await client.saw(talking, ({ type, delta }) => type === 'TEXT_MESSAGE_CONTENT' && delta === 'two, ')
      const waits = await client.run(asked, question(asked))
      await client.run(mapping, { ...question(mapping), parameters: { tools: [show] } })
      await first.polylog.kill()
      await cut
      const second = await first.restart()
      try {
        const attach = async (user: string) => {
          await open(second, user, `${user}-2`)
          const url = `${second.polylog.baseUrl}/v1/ag-ui/threads/t-${user}/stream?userId=${user}`
          return await client.connect(`${user}-2`, url)
        }
        const answers = (messages: Json[]) => messages.filter(({ role, content }) => role === 'assistant' && content)

        const talk = await attach(talking)
        assert.equal(talk.refused, undefined)
        assert.deepEqual(
          answers(talk.messages).map(({ content }) => content),
          ['One, two, three.'],
        )

        const ask = await attach(asked)
        assert.deepEqual(
          ask.interrupts.map(({ id }) => id),
          waits.interrupts.map(({ id }) => id),
        )
        const resume = ask.interrupts.map(({ id }) => ({
          interruptId: id,
          status: 'resolved' as const,
          payload: { approved: true },
        }))
        const noted = await client.run(`${asked}-2`, { parameters: { resume } })
        assert.equal(noted.refused, undefined)
        assert.equal(answers(noted.messages).at(-1)?.content, 'Noted.')

        await attach(mapping)
        const result = { id: 'r', role: 'tool', toolCallId: 'map-1', content: 'shown' }
        const mapped = await client.run(`${mapping}-2`, { message: result, parameters: { tools: [show] } })
        assert.equal(mapped.refused, undefined)
        assert.equal(answers(mapped.messages).at(-1)?.content, 'There.')

        for (const user of [talking, asked, mapping]) {
          const runs = (await second.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]
          assert.deepEqual(
            runs.map(({ status }) => status),
            ['succeeded'],
          )
        }
      } finally {
        await provider.release()
        await second.close()
      }
    })
  })
}

test('a stream that a kill cut goes on after its last frame, with the bytes that it would have had', async () => {
  const first = await startTestServerProcess({}, provider)
  const user = someone()
  await provider.script([[{ text: ['Roses ', 'are '] }, { stall: true }], says('Roses ', 'are ', 'red.')], user)
  const body = { threadId: 't', runId: 'r', userId: user, messages: [{ id: 'm', role: 'user', content: user }] }
  const stream = await openStream(`${first.polylog.baseUrl}/v1/ag-ui`, { method: 'POST', body })
  await stream.waitFor(({ data }) => data.includes('"are "'))
  await first.polylog.kill()
  await stream.ended()
  const second = await first.restart()
  try {
    const at = `${second.polylog.baseUrl}/v1/ag-ui/threads/t/stream?userId=${user}&runId=r`
    const rest = await openStream(at, { headers: { 'last-event-id': stream.frames.at(-1)?.id ?? '' } })
    await rest.ended()
    const runId = String(rest.headers['x-run-id'])
    const whole = await openStream(
      `${second.polylog.baseUrl}/v1/agent/runs/${runId}/stream?format=ag-ui&userId=${user}`,
    )
    await whole.ended()

    const dataOf = (frames: { data: string }[]) => frames.map(({ data }) => data)
    assert.deepEqual([...dataOf(stream.frames), ...dataOf(rest.frames)], dataOf(whole.frames))
  } finally {
    await provider.release()
    await second.close()
  }
})
