// A server that is killed while remote agents work for it or wait for a person: no remote run
// is started twice, no decision is applied twice, and each run has one end.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type AgentFolder, agentFolder } from '../support/agent-folder.ts'
import {
  type AgUiAction,
  call,
  type FakeAgUi,
  interrupt,
  message,
  result,
  startFakeAgUi,
} from '../support/fake-ag-ui.ts'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts'
import type { SseStream } from '../support/sse.ts'
import {
  type Json,
  named,
  runIdOf,
  someone,
  startTestServerProcess,
  type TestServer,
  toolState,
  until,
} from '../support/test-server.ts'

let remote: FakeAgUi
let provider: FakeProvider
let agents: AgentFolder

before(async () => {
  ;[remote, provider] = await Promise.all([startFakeAgUi(), startFakeProvider()])
  agents = agentFolder()
  agents.agent('helper', {
    prompt: { systemTemplate: 'system.mustache' },
    validation: undefined,
    engine: { kind: 'ag-ui', url: remote.url },
  })
})
after(async () => {
  agents?.dispose()
  await Promise.all([remote?.stop(), provider?.stop()])
})

const asks: AgUiAction[] = [
  ...message('m1', 'I will pay.'),
  ...call('c1', 'pay', { sum: 7 }),
  interrupt({ id: 'pay', reason: 'tool_call', toolCallId: 'c1', message: 'Pay 7?' }),
]
const pays: AgUiAction[] = [result('c1', 'paid'), ...message('m2', 'Paid.')]

async function ask(server: TestServer, user: string, ...answers: AgUiAction[][]): Promise<SseStream> {
  await remote.script(user, ...answers)
  return await server.chat(user, { input: `please ${user}`, agentId: 'helper' })
}

async function decide(server: TestServer, user: string, stream: SseStream): Promise<void> {
  const { confirmationId } = (await stream.waitFor(toolState('awaiting_input'))).json.data
  await server.reaches(user, runIdOf(stream), 'awaiting_input')
  const { status } = await server.call('POST', `/v1/tool-confirmations/${confirmationId}/confirm`, { user })
  assert.equal(status, 200)
}

/** Checks what holds whatever happened, and returns the end of the run. */
async function ending(server: TestServer, user: string, stream: SseStream): Promise<Json> {
  await server.reaches(user, runIdOf(stream), 'succeeded', 'failed')
  const { body } = await server.call('GET', `/v1/agent/runs/${runIdOf(stream)}/timeline`, { user })
  const ends = (body.events as { event: string; payload: Json }[]).filter(({ event }) => event === 'agent.end')
  assert.equal(ends.length, 1)
  const runs = await remote.runs(user)
  assert.equal(new Set(runs.map(({ input }) => input.runId)).size, runs.length, 'no remote run is started twice')
  const { applied, refused } = await remote.seen()
  for (const [thread, count] of Object.entries(applied))
    assert.equal(count, 1, `a decision was applied twice: ${thread}`)
  assert.deepEqual(refused, [])
  return ends[0]?.payload ?? {}
}

test('runs that a remote agent works on end as unknown, and one that waits for a person goes on', async () => {
  const first = await startTestServerProcess({ POLYLOG_AGENTS_DIR: agents.path }, provider)
  const [speaking, waiting, paying] = [someone('speaking'), someone('waiting'), someone('paying')]
  const spoken = await ask(first, speaking, [...message('m', 'Well'), { stall: true }])
  await spoken.waitFor(named('agent.delta'))
  const waited = await ask(first, waiting, asks, pays)
  await waited.waitFor(toolState('awaiting_input'))
  await first.reaches(waiting, runIdOf(waited), 'awaiting_input')
  const paid = await ask(first, paying, asks, [...message('m2', 'One moment.'), { stall: true }])
  await decide(first, paying, paid)
  await paid.waitFor(({ json }) => json.event === 'agent.delta' && json.data.delta === 'One moment.')
  await first.polylog.kill()
  const second = await first.restart()
  try {
    const lost = await ending(second, speaking, spoken)
    assert.equal(lost.error.code, 'engine_outcome_unknown')
    assert.equal((await remote.runs(speaking)).length, 1)

    const alsoLost = await ending(second, paying, paid)
    assert.equal(alsoLost.error.code, 'engine_outcome_unknown')
    assert.equal((await remote.runs(paying)).length, 2)

    const [open] = (await second.call('GET', '/v1/tool-confirmations?status=pending', { user: waiting }))
      .body as unknown as Json[]
    await second.call('POST', `/v1/tool-confirmations/${open?.id}/confirm`, { user: waiting })
    const kept = await ending(second, waiting, waited)
    assert.deepEqual([kept.status, kept.output], ['succeeded', 'Paid.'])
    assert.equal((await remote.runs(waiting)).length, 2)
  } finally {
    await remote.release()
    await second.close()
  }
})

test('killed the moment a decision is taken, the decision is applied at most once', async () => {
  const first = await startTestServerProcess({ POLYLOG_AGENTS_DIR: agents.path }, provider)
  const user = someone()
  const stream = await ask(first, user, asks, pays)
  await decide(first, user, stream)
  await first.polylog.kill()
  const second = await first.restart()
  try {
    const end = await ending(second, user, stream)
    if (end.status === 'succeeded') assert.equal(end.output, 'Paid.')
    else assert.equal(end.error.code, 'engine_outcome_unknown')
    await until(
      'the remote agent to be left',
      async () => (await remote.runs(user)).every((run) => run.isOver) || undefined,
    )
    assert.ok((await remote.runs(user)).length <= 2)
  } finally {
    await second.close()
  }
})
