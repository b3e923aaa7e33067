// AG-UI on both sides: clients of this server talk to remote agents, and this server is itself the
// remote agent of another one.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type AgentFolder, agentFolder } from '../support/agent-folder.ts'
import { type AgUiUser, startAgUiUser } from '../support/ag-ui-user.ts'
import { type AgUiAction, type FakeAgUi, message, startFakeAgUi } from '../support/fake-ag-ui.ts'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts'
import {
  calls,
  endOf,
  hangsAfter,
  type Json,
  messagesOf,
  named,
  runIdOf,
  says,
  someone,
  startTestServer,
  type TestServer,
  toolState,
  until,
} from '../support/test-server.ts'

let remote: FakeAgUi
let provider: FakeProvider
let agents: AgentFolder
let inner: TestServer
let outer: TestServer

before(async () => {
  ;[remote, provider] = await Promise.all([startFakeAgUi(), startFakeProvider()])
  inner = await startTestServer({}, provider)
  agents = agentFolder()
  const chatAgent = { prompt: { systemTemplate: 'system.mustache' }, validation: undefined }
  const url = `${inner.polylog.baseUrl}/v1/ag-ui?userId=outer&onDisconnect=cancel`
  agents.agent('helper', { ...chatAgent, engine: { kind: 'ag-ui', url: remote.url } }, { 'system.mustache': ' ' })
  agents.agent('polylog', { ...chatAgent, engine: { kind: 'ag-ui', url } }, { 'system.mustache': ' ' })
  outer = await startTestServer({ POLYLOG_AGENTS_DIR: agents.path }, provider)
})
after(async () => {
  await outer?.close()
  await inner?.close()
  agents?.dispose()
  await Promise.all([remote?.stop(), provider?.stop()])
})

const clientOf = (user: string, agentId: string) => ({
  url: `${outer.polylog.baseUrl}/v1/ag-ui/${agentId}?userId=${user}`,
  threadId: `thread-${user}`,
})

for (const version of ['1.0', '0.0'] as const) {
  describe(`the state of a client of AG-UI ${version}`, () => {
    let client: AgUiUser
    before(() => {
      client = startAgUiUser(version)
    })
    after(() => client.stop())

    test('reaches a remote agent, and its changes reach the client', async () => {
      const user = someone()
      const changes: AgUiAction[] = [
        { type: 'STATE_DELTA', delta: [{ op: 'replace', path: '/city', value: 'Rome' }] },
        { type: 'STATE_DELTA', delta: [{ op: 'add', path: '/seats~1left', value: 3 }] },
        { type: 'STATE_DELTA', delta: [{ op: 'remove', path: '/draft' }] },
        ...message('m', 'Booked.'),
      ]
      await remote.script(user, changes, [
        { type: 'STATE_SNAPSHOT', snapshot: { city: 'Oslo' } },
        ...message('n', 'Back.'),
      ])
      const initialState = { city: 'Paris', draft: true, kept: { deep: [1] } }
      await client.open(user, { ...clientOf(user, 'helper'), initialState })

      const first = await client.run(user, { message: { id: '1', role: 'user', content: user } })
      assert.equal(first.refused, undefined)
      assert.deepEqual(first.state, { city: 'Rome', 'seats/left': 3, kept: { deep: [1] } })
      assert.ok(first.events.some(({ type }) => type === 'STATE_DELTA'))
      const second = await client.run(user, { message: { id: '2', role: 'user', content: `${user} again` } })
      assert.deepEqual(second.state, { city: 'Oslo' })

      const [one, two] = await remote.runs(user)
      assert.deepEqual([one?.input.state, two?.input.state], [initialState, first.state])
    })
  })
}

describe('another server as the remote agent', () => {
  const ask = async (user: string) => await outer.chat(user, { input: user, agentId: 'polylog' })
  const innerRuns = async () =>
    (await inner.call('GET', '/v1/agent/runs?limit=200', { user: 'outer' })).body as unknown as Json[]

  test('answers with text, reasoning and calls, in one thread for a conversation', async () => {
    const user = someone()
    await provider.script(
      [[{ reasoning: ['Hm.'] }, ...calls(['current_time', {}])], says('It is ', 'late.'), says('Yes.')],
      user,
    )

    const frames = await outer.chatToEnd(user, { input: user, agentId: 'polylog', conversationId: `c-${user}` })
    const again = await outer.chatToEnd(user, {
      input: `Sure, ${user}?`,
      agentId: 'polylog',
      conversationId: `c-${user}`,
    })

    assert.equal(endOf(frames).output, 'It is late.')
    assert.ok(frames.some(named('agent.reasoning')))
    assert.ok(frames.some(toolState('succeeded', 'current_time')))
    assert.equal(endOf(again).output, 'Yes.')
    const last = messagesOf((await outer.asked(`Sure, ${user}`))[0])
    assert.deepEqual(
      last.filter(({ role }) => role === 'user').map(({ content }) => content),
      [user, `Sure, ${user}?`],
    )
  })

  for (const decision of ['confirm', 'reject'] as const) {
    test(`asks for consent through both servers: ${decision}`, async () => {
      const user = someone()
      await provider.script([calls(['remember_note', { text: user }]), says('Done.')], user)
      const stream = await ask(user)
      const { confirmationId } = (await stream.waitFor(toolState('awaiting_input'))).json.data
      await outer.reaches(user, runIdOf(stream), 'awaiting_input')

      await outer.call('POST', `/v1/tool-confirmations/${String(confirmationId)}/${decision}`, { user })
      await stream.ended()

      assert.equal(endOf(stream.frames).output, 'Done.')
      const wanted = decision === 'confirm' ? 'succeeded' : 'cancelled'
      assert.ok(stream.frames.some(toolState(wanted)), stream.text())
    })
  }

  test('fails here as it fails there, and stops there when it is cancelled here', async () => {
    const [failing, stopped] = [someone(), someone()]
    await provider.script([[{ status: 400, body: { error: { message: 'no' } } }]], failing)
    await provider.script([hangsAfter('Once')], stopped)

    const failed = endOf(await outer.chatToEnd(failing, { input: failing, agentId: 'polylog' }))
    assert.equal(failed.status, 'failed')
    const stream = await ask(stopped)
    await stream.waitFor(named('agent.delta'))
    await outer.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user: stopped, body: {} })
    await stream.ended()

    assert.equal(endOf(stream.frames).status, 'cancelled')
    await until('the end of the inner run', async () =>
      (await innerRuns()).some(({ status }) => status === 'cancelled') ? true : undefined,
    )
  })
})
