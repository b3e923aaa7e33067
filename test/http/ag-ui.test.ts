// The whole server with remote agents that speak AG-UI: what a client sees of them in each
// dialect, compared with a local agent, and what an operator sees.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { formatDialects } from '../../src/http/formats.ts'
import { type AgentFolder, agentFolder } from '../support/agent-folder.ts'
import { ask } from '../support/chat-api.ts'
import { closedAddress } from '../support/closed-port.ts'
import {
  type AgUiAction,
  call,
  type FakeAgUi,
  interrupt,
  message,
  result,
  startFakeAgUi,
} from '../support/fake-ag-ui.ts'
import { type Action, type FakeProvider, startFakeProvider } from '../support/fake-provider.ts'
import { openStream } from '../support/sse.ts'
import {
  calls,
  endOf,
  type Json,
  named,
  runIdOf,
  says,
  someone,
  startTestServer,
  type TestServer,
  toolState,
  toolStatuses,
  until,
} from '../support/test-server.ts'

const formats = Object.keys(formatDialects)
const secret = 'Bearer sk-of-the-operator'

let remote: FakeAgUi
let provider: FakeProvider
let agents: AgentFolder
let server: TestServer

before(async () => {
  ;[remote, provider] = await Promise.all([startFakeAgUi(), startFakeProvider()])
  agents = agentFolder()
  const chatAgent = { prompt: { systemTemplate: 'system.mustache' }, validation: undefined }
  const engine = {
    kind: 'ag-ui',
    url: remote.url,
    headers: { Authorization: { env: 'HELPER_AUTH' }, 'X-Tenant': 'shop' },
  }
  agents.agent('helper', { ...chatAgent, engine }, { 'system.mustache': ' ' })
  agents.agent('keyless', { ...chatAgent, engine: { ...engine, headers: { Authorization: { env: 'NOT_SET' } } } })
  agents.agent('dead', { ...chatAgent, engine: { kind: 'ag-ui', url: `${await closedAddress()}/agent` } })
  const environment = { POLYLOG_AGENTS_DIR: agents.path, HELPER_AUTH: secret, POLYLOG_AGENTS_RELOAD: 'true' }
  server = await startTestServer(environment, provider)
})
after(async () => {
  await server?.close()
  agents?.dispose()
  await Promise.all([remote?.stop(), provider?.stop()])
})

const fromHelper = (user: string, input: string) => ({ input: `${input} ${user}`, agentId: 'helper' })

test('a chat with a remote agent is answered by it, with its headers, and the run names its engine', async () => {
  const user = someone()
  await remote.script(user, message('m', 'Hello ', 'from ', 'afar.'))

  const frames = await server.chatToEnd(user, fromHelper(user, 'hi'))

  assert.equal(endOf(frames).output, 'Hello from afar.')
  assert.equal(frames.find(named('agent.start'))?.json.data.metadata.engine, 'ag-ui:helper')
  const [run] = await remote.runs(user)
  assert.equal(run?.headers['authorization'], secret)
  assert.equal(run?.headers['x-tenant'], 'shop')
  assert.equal(run?.headers['accept'], 'text/event-stream')
  // The instructions in the definition are blank, so the remote agent keeps its own.
  assert.deepEqual(
    run?.input.messages.map(({ role }) => role),
    ['user'],
  )
  const metrics = await server.call('GET', '/metrics')
  assert.match(metrics.text, /^polylog_runs_total\{family="agent",engine="ag-ui:helper",status="succeeded"\} \d+$/m)
})

test('no secret of a remote agent is listed, logged or journaled', async () => {
  const user = someone()
  await remote.script(user, [{ type: 'RUN_ERROR', message: `bad token ${secret}` }])
  const stream = await server.chat(user, fromHelper(user, 'hi'))
  await stream.ended()

  assert.equal(endOf(stream.frames).error.code, 'engine_failed')
  const timeline = await server.call('GET', `/v1/agent/runs/${runIdOf(stream)}/timeline`, { user })
  const list = await server.call('GET', '/v1/agent/list')
  for (const text of [stream.text(), timeline.text, list.text, server.polylog.log()]) {
    assert.doesNotMatch(text, /sk-of-the-operator|X-Tenant/)
  }
})

test('an agent whose header needs a variable that is not set is listed as unavailable, with the name of the variable', async () => {
  const { body } = await server.call('GET', '/v1/agent/list')
  const keyless = (body.agents as Json[]).find(({ id }) => id === 'keyless')
  assert.equal(keyless?.status, 'unavailable')
  assert.match(keyless?.statusError, /Authorization.*NOT_SET/)

  const answer = await server.call('POST', '/v1/agent/chat', { body: { input: 'hi', agentId: 'keyless' } })
  assert.equal(answer.status, 503)
  assert.equal(answer.body.code, 'agent_unavailable')
})

test('an agent that cannot be reached is replaced by the local engine, and the breaker keeps the next ones from waiting', async () => {
  for (let count = 0; count < 5; count += 1) {
    const user = someone()
    await provider.script([says('From here.')], user)
    const stream = await server.chat(user, { input: user, agentId: 'dead' })
    await stream.ended()
    assert.equal(endOf(stream.frames).output, 'From here.')
    const { text } = await server.call('GET', `/v1/agent/runs/${runIdOf(stream)}/timeline`, { user })
    assert.match(text, /engine_fallback/)
    if (count >= 3) assert.match(text, /is not asked now/)
  }
})

test('the turns of a conversation share a thread, and the remote agent gets the whole history', async () => {
  const user = someone()
  const conversationId = `talk of ${user}`
  for (const input of ['first', 'second']) await server.chatToEnd(user, { ...fromHelper(user, input), conversationId })

  const [first, second] = await remote.runs(user)
  assert.equal(first?.input.threadId, second?.input.threadId)
  assert.deepEqual(
    second?.input.messages.map(({ role }) => role),
    ['user', 'assistant', 'user'],
  )
  assert.deepEqual((await remote.seen()).refused, [])
})

test('a call waits for a confirmation, which resumes the remote agent once', async () => {
  for (const decision of ['confirm', 'reject'] as const) {
    const user = someone()
    await remote.script(user, ...guarded)
    const stream = await server.chat(user, fromHelper(user, 'remember'))
    const asked = (await stream.waitFor(toolState('awaiting_input'))).json.data
    await server.reaches(user, runIdOf(stream), 'awaiting_input')
    const { status } = await server.call('POST', `/v1/tool-confirmations/${asked.confirmationId}/${decision}`, { user })
    assert.equal(status, 200)
    await stream.ended()

    const statuses = ['queued', 'running', 'awaiting_input']
    assert.deepEqual(
      toolStatuses(stream.frames),
      decision === 'confirm' ? [...statuses, 'running', 'succeeded'] : [...statuses, 'cancelled'],
    )
    const [, second, ...more] = await remote.runs(user)
    assert.deepEqual(more, [])
    const payload = second?.input.resume?.[0]?.payload as { approved: boolean } | undefined
    assert.equal(payload?.approved, decision === 'confirm')
  }
})

test('a question of a remote agent is answered where calls are confirmed', async () => {
  const user = someone()
  await remote.script(
    user,
    [...message('m', 'One thing.'), interrupt({ id: 'q', reason: 'input_required', message: 'Which day?' })],
    message('m', 'Tuesday it is.'),
  )
  const stream = await server.chat(user, fromHelper(user, 'book'))
  const asked = (await stream.waitFor(named('input.required'))).json.data
  assert.equal(asked.prompt, 'Which day?')
  await server.reaches(user, runIdOf(stream), 'awaiting_input')
  const path = `/v1/tool-confirmations/${asked.interactionId}/confirm`
  const empty = await server.call('POST', path, { user, body: {} })
  assert.deepEqual([empty.status, empty.body.code], [400, 'confirmation_payload_invalid'])
  const stranger = await server.call('POST', path, { user: someone(), body: { payload: { answer: 'Friday' } } })
  assert.equal(stranger.status, 404)
  const { status } = await server.call('POST', path, { user, body: { payload: { answer: 'Tuesday' } } })
  assert.equal(status, 200)
  await stream.ended()

  assert.equal(endOf(stream.frames).output, 'Tuesday it is.')
  assert.deepEqual((await remote.runs(user))[1]?.input.resume, [
    { interruptId: 'q', status: 'resolved', payload: 'Tuesday' },
  ])
})

test('a cancel closes the connection to the remote agent', async () => {
  const user = someone()
  await remote.script(user, [...message('m', 'Well'), { stall: true }])
  const stream = await server.chat(user, fromHelper(user, 'slowly'))
  await stream.waitFor(named('agent.delta'))
  await server.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user })
  await stream.ended()

  assert.equal(endOf(stream.frames).status, 'cancelled')
  await until('the connection to be closed', async () => (await remote.runs(user)).find((run) => run.closedEarly))
})

test('a changed definition counts from the next turn on', async () => {
  const other = await startFakeAgUi()
  try {
    const moving = (url: string) =>
      agents.agent('moving', {
        prompt: { systemTemplate: 'system.mustache' },
        validation: undefined,
        engine: { kind: 'ag-ui', url },
      })
    const listed = (what: string, fits: (agent: Json | undefined) => boolean) =>
      until(what, async () => {
        const { body } = await server.call('GET', '/v1/agent/list')
        return fits((body.agents as Json[]).find(({ id }) => id === 'moving')) ? true : undefined
      })
    moving(remote.url)
    await listed('the agent to be read', (agent) => agent !== undefined)
    const user = someone()
    await server.chatToEnd(user, { input: `one ${user}`, agentId: 'moving' })
    moving(other.url)
    await until('the new url to be used', async () => {
      await server.chatToEnd(user, { input: `two ${user}`, agentId: 'moving' })
      return (await other.runs(user)).length > 0 ? true : undefined
    })
  } finally {
    await other.stop()
  }
})

test('the other families talk to a remote agent that replaces the chat agent', async (context) => {
  const own = agentFolder()
  context.after(() => own.dispose())
  own.agent('chat_conversation', {
    prompt: { systemTemplate: 'system.mustache' },
    validation: undefined,
    engine: { kind: 'ag-ui', url: remote.url },
  })
  const replaced = await startTestServer({ POLYLOG_AGENTS_DIR: own.path }, provider)
  try {
    const user = someone()
    await remote.script(user, message('m', 'Over the chat API.'))
    const frames = await (await ask(replaced, user, `hi ${user}`)).toEnd()
    const said = frames.filter(({ type }) => type === 'chunk').map(({ content }) => content as string)
    assert.equal(said.join(''), 'Over the chat API.')
  } finally {
    await replaced.close()
  }
})

test('a comparison may have a remote agent on one side, which is hidden until the vote', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-sets-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'sets.json')
  writeFileSync(file, JSON.stringify([{ name: 'near' }, { name: 'far', engine: 'ag-ui:helper' }]))
  const environment = { POLYLOG_AGENTS_DIR: agents.path, HELPER_AUTH: secret, POLYLOG_MODEL_CONFIGS: file }
  const comparing = await startTestServer(environment, provider)
  try {
    const user = someone()
    await provider.script([says('From here.')], user)
    await remote.script(user, [...call('c1', 'search', {}), result('c1', 'x'), ...message('m', 'From afar.')])
    const body = { client_id: user, message: `hi ${user}`, config_a: 'near', config_b: 'far' }
    const stream = await openStream(`${comparing.polylog.baseUrl}/api/ab/compare`, { method: 'POST', body })
    await stream.ended()

    assert.equal(stream.status, 200, stream.text())
    assert.match(stream.text(), /From here\./)
    assert.match(stream.text(), /From afar\./)
    assert.doesNotMatch(stream.text(), /ag-ui|helper/)
    assert.equal((await remote.runs(user)).length, 1)
  } finally {
    await comparing.close()
  }
})

const guarded: AgUiAction[][] = [
  [
    ...message('m1', 'I will ', 'note it.'),
    ...call('call-1', 'remember_note', { text: 'x' }),
    interrupt({ id: 'int', reason: 'tool_call', toolCallId: 'call-1', message: 'Save a note: “x”' }),
  ],
  [result('call-1', '{"id":"note"}'), ...message('m2', 'Noted.')],
]

type Scenario = {
  name: string
  remote: AgUiAction[][]
  local: Action[][]
  /** A confirmation is answered with this. */
  decision?: 'confirm' | 'reject'
  /** The run is cancelled after its first delta. */
  cancel?: true
}

const scenarios: Scenario[] = [
  { name: 'an answer', remote: [message('m', 'Hel', 'lo, ', '世界')], local: [says('Hel', 'lo, ', '世界')] },
  {
    name: 'reasoning and an answer',
    remote: [
      [
        { type: 'REASONING_MESSAGE_START', messageId: 'r', role: 'reasoning' },
        { type: 'REASONING_MESSAGE_CONTENT', messageId: 'r', delta: 'Hm.' },
        { type: 'REASONING_MESSAGE_END', messageId: 'r' },
        ...message('m', 'Yes.'),
      ],
    ],
    local: [[{ reasoning: ['Hm.'] }, { text: ['Yes.'] }, { finish: 'stop' }]],
  },
  {
    name: 'a call that is confirmed',
    remote: guarded,
    local: [[{ text: ['I will ', 'note it.'] }, ...calls(['remember_note', { text: 'x' }, 'call-1'])], says('Noted.')],
    decision: 'confirm',
  },
  {
    name: 'a call that is rejected',
    remote: [guarded[0] ?? [], message('m2', 'Not noted.')],
    local: [
      [{ text: ['I will ', 'note it.'] }, ...calls(['remember_note', { text: 'x' }, 'call-1'])],
      says('Not noted.'),
    ],
    decision: 'reject',
  },
  {
    name: 'a cancelled answer',
    remote: [[...message('m', 'Well'), { stall: true }]],
    local: [[{ text: ['Well'] }, { stall: true }]],
    cancel: true,
  },
]

describe('CHAT-070 a remote agent gives the frames of a local one, but for ids and times', () => {
  for (const scenario of scenarios) {
    test(`CHAT-070 ${scenario.name}, in every dialect`, async () => {
      const local = await play(scenario, undefined)
      const far = await play(scenario, 'helper')
      for (const format of formats) assert.deepEqual(far.get(format), local.get(format), format)
    })
  }
})

/** Plays a scenario and returns the stream of its run in each dialect, without ids and times. */
async function play(scenario: Scenario, agentId: string | undefined): Promise<Map<string, string[]>> {
  const user = someone()
  if (agentId === undefined) await provider.script(scenario.local, user)
  else await remote.script(user, ...scenario.remote)
  const stream = await server.chat(user, { input: `please ${user}`, ...(agentId === undefined ? {} : { agentId }) })
  if (scenario.decision !== undefined) {
    const { confirmationId } = (await stream.waitFor(toolState('awaiting_input'))).json.data
    await server.reaches(user, runIdOf(stream), 'awaiting_input')
    await server.call('POST', `/v1/tool-confirmations/${confirmationId}/${scenario.decision}`, { user })
  }
  if (scenario.cancel === true) {
    await stream.waitFor(named('agent.delta'))
    await server.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user })
  }
  await stream.ended()
  const replays = new Map<string, string[]>()
  for (const format of formats) {
    const path = `/v1/agent/runs/${runIdOf(stream)}/stream?format=${format}&userId=${user}`
    const replay = await fetch(new URL(path, server.polylog.baseUrl))
    assert.equal(replay.status, 200)
    replays.set(format, withoutIds(await replay.text(), user).split('\n'))
  }
  return replays
}

function withoutIds(text: string, user: string): string {
  const ids = new Map<string, string>()
  return (
    text
      .replaceAll(user, 'USER')
      // Positions in the journal, which has the handles of a remote turn, too.
      .replaceAll(/^(?:id: [\d.]+|:.*)\n/gm, '')
      .replaceAll(/"(seq|cursor|last_seq|full_length)":\s*"?[\d.]+"?/g, '"$1":0')
      .replaceAll(/(\\*")(?:helper|chat_conversation)\1/g, '$1AGENT$1')
      .replaceAll(/(\\*")(?:ag-ui:helper|local)\1/g, '$1ENGINE$1')
      // A remote agent counts tokens for the whole turn, if it does.
      .replaceAll(/,"messageMetadata":\{"usage":\{[^}]*\}\}/g, '')
      .replaceAll(/,"usage":\[[^\]]*\]/g, '')
      .replaceAll(/,"usage":(?:null|\{(?:[^{}]|\{[^{}]*\})*\})/g, '')
      .replaceAll(/"(created|created_at)":\d+/g, '"$1":0')
      .replaceAll(/"server_label":"[^"]*"/g, '"server_label":"SERVER"')
      .replaceAll(/,"usage_metadata":\{[^}]*\}/g, '')
      // A remote agent does not say in words what a call will do, and what it did.
      .replaceAll(/Call remember_note|Save a note: “x”/g, 'NOTE')
      .replaceAll(/note_[0-9a-f]{32}/g, 'note')
      .replaceAll(/\{\\*"id\\*":\\*"note\\*"\}|The note was saved\./g, 'RESULT')
      .replaceAll(/(?:\d{4}-\d\d-\d\dT[\d:.]+Z)/g, 'TIME')
      .replaceAll(/"(\w*(?:[mM]s|[tT]imestamp|duration\w*|At))":\s*\d+/g, '"$1":0')
      .replaceAll(/[0-9A-HJKMNP-TV-Z]{26}/g, (id) => {
        const known = ids.get(id) ?? `ID${ids.size}`
        ids.set(id, known)
        return known
      })
  )
}
