// Faults of an AG-UI agent and of the connection to it: each ends the run visibly, and the fallback
// answers only if the agent took no request. A cancel closes the connection.

import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { endOf, sharedAgUiRig } from '../../../test/support/ag-ui-rig.ts'
import { closedAddress } from '../../../test/support/closed-port.ts'
import { type AgUiAction, call, message } from '../../../test/support/fake-ag-ui.ts'
import { ended, eventsOf } from '../../../test/support/run-helpers.ts'
import { type RigOptions, says } from '../../../test/support/run-rig.ts'
import { until } from '../../../test/support/until.ts'

const { fake, engineAt, rigWith, asked, journalOf } = sharedAgUiRig()

const secret = 'Bearer sk-very-secret'
const faults: [name: string, answer: AgUiAction[], code: string, message: RegExp][] = [
  [
    'a run that fails',
    [{ type: 'RUN_ERROR', message: `No key ${secret}`, code: 'auth' }],
    'engine_failed',
    /\(auth\): No key \[red/,
  ],
  ['a cancelled run', [{ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } }], 'engine_failed', /cancelled/],
  ['a cut connection', [...message('m', 'I'), { cut: true }], 'engine_stream_incomplete', /middle of its answer/],
  ['an end without RUN_FINISHED', [...message('m', 'I'), { hangUp: true }], 'engine_stream_incomplete', /RUN_FINISHED/],
  ['a frame that is not JSON', [{ raw: 'data: {"type":\n\n' }, { stall: true }], 'engine_failed', /not valid JSON/],
  ['a frame without a type', [{ raw: 'data: null\n\n' }, { stall: true }], 'engine_failed', /no type/],
  ['a frame that is too deep', [{ raw: `data: ${'['.repeat(300)}\n\n` }, { stall: true }], 'engine_failed', /deeper/],
  ['a giant frame', [{ giant: 5 * 1024 * 1024 }, { stall: true }], 'engine_failed', /longer than 4 MiB/],
  ['a server error', [{ status: 500, body: '{"error":{"message":"boom"}}' }], 'engine_unavailable', /HTTP 500.*boom/],
  [
    'missing credentials',
    [{ status: 401, body: `"no ${secret}"` }],
    'engine_failed',
    /HTTP 401.*headers.*no \[redacted\]/,
  ],
  ['a refused request', [{ status: 422, body: '{"detail":"bad state"}' }], 'engine_failed', /HTTP 422.*bad state/],
  ['a redirect', [{ status: 307, headers: { location: '/elsewhere' } }], 'engine_failed', /redirect/],
  [
    'a page instead of a stream',
    [{ status: 200, body: '<html>', headers: { 'content-type': 'text/html' } }],
    'engine_failed',
    /text\/html/,
  ],
  [
    'an interrupt without interrupts',
    [{ raw: 'data: {"type":"RUN_FINISHED","outcome":{"type":"interrupt"}}\n\n' }],
    'engine_failed',
    /0 decisions/,
  ],
  [
    'a call with a bad name',
    [{ raw: 'data: {"type":"TOOL_CALL_START","toolCallId":"c"}\n\n' }],
    'engine_failed',
    /bad id or name/,
  ],
]

for (const [name, answer, code, sentence] of faults) {
  test(`${name} fails the run visibly, and no other engine answers`, async (context) => {
    const turnEngine = engineAt(fake.url, {
      settings: () => ({ url: fake.url, headers: { Authorization: { env: 'AGENT_AUTH' } } }),
      environment: { AGENT_AUTH: secret },
    })
    const events = await journalOf(context, answer, { turnEngine, answer: () => says('Never.') })

    const error = endOf(events)?.error
    assert.equal(error?.code, code, JSON.stringify(error))
    assert.match(error?.message ?? '', sentence)
    assert.equal(eventsOf(events, 'diagnostic').length, 0)
    assert.doesNotMatch(JSON.stringify(events), /sk-very-secret/)
    await fake.release()
  })
}

test('a call is in the journal although the connection is cut right after it', async (context) => {
  const events = await journalOf(context, [...call('c1', 'pay', { sum: 7 }), { cut: true }])

  assert.deepEqual(eventsOf(events, 'tool.called')[0]?.data.input, { sum: 7 })
  assert.equal(eventsOf(events, 'tool.done')[0]?.data.outcome, 'unknown')
  assert.equal(endOf(events)?.error?.code, 'engine_stream_incomplete')
})

test('an agent that cannot be reached, or takes no request, is replaced by the fallback', async (context) => {
  const cases: [RigOptions, AgUiAction[]][] = [
    [{ turnEngine: engineAt(`${await closedAddress()}/agent`) }, []],
    [{ turnEngine: engineAt('http://no-such-host.invalid/agent') }, []],
    [{}, [{ status: 503, body: 'overloaded' }]],
    [{ turnEngine: engineAt(fake.url, { settings: () => ({ url: fake.url, headers: { A: { env: 'UNSET' } } }) }) }, []],
  ]
  for (const [options, answer] of cases) {
    const events = await journalOf(context, answer, { ...options, answer: () => says('From here.') })
    assert.equal(eventsOf(events, 'diagnostic')[0]?.data.code, 'engine_fallback')
    assert.equal(endOf(events)?.output, 'From here.')
  }
})

test('a connection that is lost before any answer is not tried again, because the request may have been taken', async (context) => {
  let requests = 0
  const rude = createServer((socket) => {
    socket.once('data', () => {
      requests += 1
      socket.destroy()
    })
    socket.on('error', () => {})
  })
  await new Promise<void>((resolve) => rude.listen(0, '127.0.0.1', resolve))
  context.after(() => rude.close())
  const { port } = rude.address() as { port: number }
  const turnEngine = engineAt(`http://127.0.0.1:${port}/agent`)
  const events = await journalOf(context, [], { turnEngine, answer: () => says('Never.') })

  assert.equal(endOf(events)?.error?.code, 'engine_stream_incomplete')
  assert.equal(requests, 1)
})

/** Waits until the agent has seen that the client closed the connection of the run. */
async function closedEarly(question: string): Promise<void> {
  await until('the closed connection', async () => (await fake.runs(question)).find((run) => run.closedEarly))
}

test('a cancel closes the connection, and so does an agent that falls silent', async (context) => {
  for (const stop of ['cancel', 'silence'] as const) {
    const rig = await rigWith(context)
    const question = await asked([...message('m', 'I'), ...call('c1', 'search', {}), { stall: true }])
    const { run } = await rig.start({ input: question })
    await rig.until(run.id, ({ lastSeq }) => lastSeq >= 8)
    if (stop === 'cancel') await rig.service.cancel('ada', run.id, null)
    else await rig.clock.advance(60_000)
    await rig.until(run.id, ended)
    await closedEarly(question)

    const events = await rig.events(run.id)
    if (stop === 'cancel') assert.equal(endOf(events)?.status, 'canceled')
    else assert.equal(endOf(events)?.error?.code, 'engine_stalled')
    assert.equal(eventsOf(events, 'tool.done').length, 1)
    assert.deepEqual(
      rig.complaints.filter((text) => /could not be stopped/.test(text)),
      [],
    )
    await fake.release()
  }
})
