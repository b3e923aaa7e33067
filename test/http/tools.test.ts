// Tools of MCP servers, tools that cannot be used, and the demo model, which answers if no
// provider is configured.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { stdioFake } from '../support/fake-mcp.ts'
import {
  callServer,
  calls,
  endOf,
  type Json,
  messagesOf,
  says,
  someone,
  toolState,
  toolStatuses,
} from '../support/test-server.ts'
import { type Polylog, startPolylog } from '../support/polylog.ts'
import { eventNames, openStream, type SseStream } from '../support/sse.ts'
import { sharedMcpServer } from '../support/shared-mcp-server.ts'

describe('MCP and missing tools', () => {
  const { server, effects } = sharedMcpServer(undefined, ({ file }) => ({
    demo: stdioFake({ FAKE_MCP_FILE: file, LONG: 'y'.repeat(110_000) }),
    lame: stdioFake({ FAKE_MCP_MODE: 'fail' }),
  }))

  const listed = async () => (await server.call('GET', '/v1/tools')).body as unknown as Json[]

  test('a tool that only reads runs without asking, and its output reaches stream and model', async () => {
    const user = someone()
    await server.provider.script([calls(['lookup', { word: 'tea' }]), says('Tea it is.')], user)

    const frames = await server.chatToEnd(user, user)

    assert.deepEqual(toolStatuses(frames), ['queued', 'running', 'succeeded'])
    assert.match(JSON.stringify(frames.find(toolState('succeeded'))?.json.data.output), /about tea/)
    assert.match(JSON.stringify((await server.asked(user))[1]?.body.messages), /about tea/)
  })

  test('a tool that changes something asks first, and then runs once', async () => {
    const user = someone()
    await server.provider.script([calls(['charge', { amount: 5 }]), says('Paid.')], user)
    const stream = await server.chat(user, user)
    const { json } = await stream.waitFor(toolState('awaiting_input'))
    const before = effects.lines().length

    await server.call('POST', `/v1/tool-confirmations/${json.data.confirmationId}/confirm`, { user })
    await stream.ended()

    assert.equal(before, 0)
    assert.deepEqual(effects.lines(), ['charge 5'])
    assert.equal(endOf(stream.frames).output, 'Paid.')
  })

  test('a tool that reports an error fails with it, and the run goes on', async () => {
    const user = someone()
    await server.provider.script([calls(['broken', {}]), says('Oh well.')], user)
    const stream = await server.chat(user, user)
    const { json } = await stream.waitFor(toolState('awaiting_input'))
    await server.call('POST', `/v1/tool-confirmations/${json.data.confirmationId}/confirm`, { user })
    await stream.ended()

    assert.match(JSON.stringify(stream.frames.find(toolState('failed'))?.json.data.error), /shelf is empty/)
    assert.equal(endOf(stream.frames).output, 'Oh well.')
  })

  test('a tool whose server dies in the middle of an unsafe call is never called again: its outcome is unknown', async () => {
    const user = someone()
    await server.provider.script([calls(['charge', { amount: 66, die: true }]), says('I do not know.')], user)
    const stream = await server.chat(user, user)
    const { json } = await stream.waitFor(toolState('awaiting_input'))
    await server.call('POST', `/v1/tool-confirmations/${json.data.confirmationId}/confirm`, { user })
    await stream.ended()

    const last = stream.frames.filter(toolState('failed')).at(-1)?.json.data
    assert.equal(last?.error.code, 'tool_outcome_unknown')
    assert.deepEqual(
      effects.lines().filter((line) => line === 'charge 66'),
      ['charge 66'],
    )
    assert.match(messagesOf((await server.asked(user))[1]).at(-1)?.content, /unknown/)
    assert.equal(endOf(stream.frames).output, 'I do not know.')
  })

  test('an output that is too long is cut in the stream, and whole for its owner under its ref', async () => {
    const user = someone()
    await server.provider.script([calls(['environment', {}]), says('Long.')], user)
    const frames = await server.chatToEnd(user, user)
    const runId = frames[0]?.json.data.runId as string
    const otherRun = (await server.chatToEnd(user, 'hello'))[0]?.json.data.runId as string
    const output = frames.find(toolState('succeeded'))?.json.data.output as Json

    const mine = await server.call('GET', `/v1/agent/runs/${runId}/outputs/${output.ref}`, { user })
    const foreign = await server.call('GET', `/v1/agent/runs/${runId}/outputs/${output.ref}`, { user: someone() })
    const elsewhere = await server.call('GET', `/v1/agent/runs/${otherRun}/outputs/${output.ref}`, { user })

    assert.equal(output.truncated, true)
    assert.ok(output.fullLength > 110_000 && output.preview.length < output.fullLength)
    assert.equal(mine.status, 200)
    assert.equal(mine.text.length, output.fullLength)
    assert.ok(mine.text.startsWith(output.preview))
    assert.deepEqual([foreign.status, elsewhere.status], [404, 404])
  })

  test('what a tool says while it works is shown as it works', async () => {
    const user = someone()
    await server.provider.script([calls(['slow', {}])], user)
    const stream = await server.chat(user, { input: user, onDisconnect: 'cancel' })

    const { json } = await stream.waitFor(({ json }) => json.data.message === 'halfway')

    assert.equal(json.data.status, 'running')
    assert.equal(json.data.name, 'slow')
    stream.leave()
  })

  test('/v1/tools lists everything with its effect, and what cannot be used with the reason', async () => {
    const tools = await listed()
    const of = (name: string) => tools.find((tool) => tool.name === name)

    assert.deepEqual([of('lookup')?.effect, of('lookup')?.available], ['read', true])
    assert.deepEqual([of('add_item')?.effect, of('charge')?.effect], ['idempotent', 'unsafe'])
    assert.equal(of('send_feishu_message')?.available, false)
    assert.match(of('send_feishu_message')?.reason, /FEISHU_APP_ID/)
    const lame = tools.find((tool) => tool.source.includes('lame') as boolean)
    assert.equal(lame?.available, false)
    assert.equal(typeof lame?.reason, 'string')
  })

  test('what cannot be used, or needs a working directory, is not offered to the provider; everything else is', async () => {
    const user = someone()

    await server.chatToEnd(user, user)

    const [asked] = await server.asked(user)
    const offered = ((asked?.body.tools ?? []) as Json[]).map((tool) => tool.function.name as string)
    // Those of jobs are offered to jobs, those of a workspace to runs that have one.
    const forChats = (await listed()).filter((tool) => tool.audience === undefined || tool.audience === 'chats')
    const usable = forChats.filter((tool) => tool.available).map((tool) => tool.name as string)
    const fit = usable.filter((name) => !/^(?:fs|bash|todo)_|^skills$/.test(name))
    assert.ok(fit.length < usable.length)
    assert.deepEqual(offered.toSorted(), fit.toSorted())
    assert.ok(!offered.includes('send_feishu_message'))
    for (const name of offered) assert.match(name, /^[a-zA-Z0-9_-]{1,64}$/)
  })
})

describe('the demo model', () => {
  let polylog: Polylog

  before(async () => {
    polylog = await startPolylog()
  })

  after(() => polylog.dispose())

  async function say(user: string, input: string): Promise<SseStream> {
    return await openStream(`${polylog.baseUrl}/v1/agent/chat`, { body: { userId: user, input } })
  }

  test('the first answer comes without any setting, and says how to get a real one', async () => {
    const health = await callServer(polylog.baseUrl, 'GET', '/v1/health')
    const stream = await say(someone(), 'hello')
    await stream.ended()

    assert.equal(health.body.model, 'demo/demo')
    assert.equal(endOf(stream.frames).status, 'succeeded')
    assert.match(endOf(stream.frames).output, /OPENAI_API_KEY/)
    assert.ok(eventNames(stream.frames).filter((name) => name === 'agent.delta').length > 3)
  })

  test('it can show a confirmation: a note is saved after consent, and found again', async () => {
    const user = someone()
    const stream = await say(user, 'Please remember that the tea is in the blue tin.')
    const { json } = await stream.waitFor(toolState('awaiting_input'))
    await callServer(polylog.baseUrl, 'POST', `/v1/tool-confirmations/${json.data.confirmationId}/confirm`, { user })
    await stream.ended()
    const search = await say(user, 'search my notes for tea')
    await search.ended()
    const foreign = await say(someone(), 'search my notes for tea')
    await foreign.ended()

    assert.match(endOf(search.frames).output, /blue tin/)
    assert.doesNotMatch(endOf(foreign.frames).output, /blue tin/)
  })
})
