// The routes for AG-UI clients, with the real clients of 1.0 and of the last version before it, each in
// a process of its own, with their check of the order of events on.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type AgUiUser, type AgUiVersion, startAgUiUser } from '../support/ag-ui-user.ts'
import { pngOf } from '../support/sample-files.ts'
import { sharedMcpServer } from '../support/shared-mcp-server.ts'
import { calls, hangsAfter, type Json, messagesOf, says, someone } from '../support/test-server.ts'

const { server, effects } = sharedMcpServer()

const ask = (content: unknown) => ({ id: `m-${someone()}`, role: 'user', content })
const urlFor = (user: string, path = '/v1/ag-ui') => `${server.polylog.baseUrl}${path}?userId=${user}`
const streamUrl = (user: string, threadId: string, query = '') =>
  `${server.polylog.baseUrl}/v1/ag-ui/threads/${encodeURIComponent(threadId)}/stream?userId=${user}${query}`
const runsOf = async (user: string) => (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]
const textIn = (messages: Record<string, unknown>[], role = 'assistant') =>
  messages.filter((message) => message['role'] === role).map((message) => message['content'])
const isText = (text: string) => (event: { type: string; [field: string]: unknown }) =>
  event.type === 'TEXT_MESSAGE_CONTENT' && event['delta'] === text

const weather = {
  name: 'show_map',
  description: 'Shows a map to the user.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

let amount = 70_000

for (const version of ['1.0', '0.0'] as const satisfies AgUiVersion[]) {
  describe(`a client of AG-UI ${version}`, () => {
    let client: AgUiUser
    before(() => {
      client = startAgUiUser(version)
    })
    after(() => client.stop())

    /** A client of its own user and thread, under the name of the user. */
    async function open(initialState?: Record<string, unknown>) {
      const user = someone()
      const threadId = `thread of ${user}`
      const config = { url: urlFor(user), threadId, ...(initialState === undefined ? {} : { initialState }) }
      await client.open(user, config)
      return { user, threadId }
    }

    test('talks with an agent, and only its last message is new to the server', async () => {
      const { user, threadId } = await open()
      await server.provider.script([says('One.'), says('Two', '.')], user)

      const first = await client.run(user, { message: ask(user), parameters: { runId: `run-${user}` } })
      const second = await client.run(user, { message: ask(`${user} again`) })

      assert.equal(first.refused ?? second.refused, undefined)
      const [started] = first.events
      assert.deepEqual(
        [started?.type, started?.['threadId'], started?.['runId']],
        ['RUN_STARTED', threadId, `run-${user}`],
      )
      assert.deepEqual([first.events.at(-1)?.['threadId'], first.events.at(-1)?.['runId']], [threadId, `run-${user}`])
      assert.deepEqual(textIn(second.messages), ['One.', 'Two.'])
      const sent = messagesOf((await server.asked(user))[1])
      assert.deepEqual(
        sent.filter(({ role }) => role !== 'system').map(({ content }) => content),
        [user, 'One.', `${user} again`],
      )
      assert.deepEqual(
        (await runsOf(user)).map(({ status }) => status),
        ['succeeded', 'succeeded'],
      )
    })

    test('shows reasoning and the calls of server tools with their results', async () => {
      const { user } = await open()
      const thinks = [{ reasoning: ['Hm, ', 'the clock.'] }, ...calls(['current_time', {}])]
      await server.provider.script([thinks, says('Late.')], user)

      const { refused, messages } = await client.run(user, { message: ask(user) })

      assert.equal(refused, undefined)
      assert.deepEqual(
        messages.map(({ role }) => role),
        ['user', 'reasoning', 'assistant', 'tool', 'assistant'],
      )
      assert.deepEqual(textIn(messages, 'reasoning'), ['Hm, the clock.'])
      const [call] = (messages[2]?.['toolCalls'] ?? []) as { id: string; function: { name: string } }[]
      assert.equal(call?.function.name, 'current_time')
      assert.equal(messages[3]?.['toolCallId'], call?.id)
    })

    for (const approved of [true, false]) {
      test(`${approved ? 'allows' : 'denies'} a call by resuming, and the same run goes on`, async () => {
        const { user } = await open()
        amount += 1
        const charged = `charge ${amount}`
        await server.provider.script([calls(['charge', { amount }]), says('Done.')], user)

        const waiting = await client.run(user, { message: ask(user) })
        assert.equal(waiting.refused, undefined)
        const [interrupt] = waiting.interrupts
        const resume = [
          { interruptId: interrupt?.id ?? '', status: 'resolved' as const, payload: { approved, reason: 'Too much.' } },
        ]
        assert.ok(!effects.lines().includes(charged))
        const done = await client.run(user, { parameters: { runId: `resumed-${user}`, resume } })

        assert.equal(done.refused, undefined)
        assert.deepEqual(done.interrupts, [])
        assert.equal(done.events[0]?.['runId'], `resumed-${user}`)
        assert.deepEqual(textIn(done.messages).filter(Boolean), ['Done.'])
        const results = done.messages.filter(({ toolCallId }) => toolCallId === interrupt?.toolCallId)
        assert.equal(results.length, 1)
        if (!approved) assert.match(String(results[0]?.['content']), /did not allow this call.* Too much\.$/)
        assert.equal(effects.lines().filter((line) => line === charged).length, approved ? 1 : 0)
        assert.equal((await runsOf(user)).length, 1)
      })
    }

    test('runs its own tools, and the same run goes on with their results', async () => {
      const { user } = await open()
      const parameters = { tools: [weather] }
      await server.provider.script(
        [calls(['show_map', { city: 'Rome' }, 'call-map'], ['current_time', {}]), says('There.')],
        user,
      )

      const waiting = await client.run(user, { message: ask(user), parameters })
      assert.equal(waiting.refused, undefined)
      assert.deepEqual(waiting.interrupts, [])
      const result = { id: `r-${user}`, role: 'tool', toolCallId: 'call-map', content: '{"shown":true}' }
      const done = await client.run(user, { message: result, parameters })

      assert.equal(done.refused, undefined)
      assert.deepEqual(textIn(done.messages).filter(Boolean), ['There.'])
      // The client has its own result, and gets no second one.
      assert.equal(done.messages.filter(({ toolCallId }) => toolCallId === 'call-map').length, 1)
      const asked = messagesOf((await server.asked(user))[1])
      assert.deepEqual(
        asked.filter(({ tool_call_id }) => tool_call_id === 'call-map').map(({ content }) => content),
        ['{"shown":true}'],
      )
      assert.equal((await runsOf(user)).length, 1)
    })

    test('leaves a call of its own tool behind by asking something else', async () => {
      const { user } = await open()
      const parameters = { tools: [weather] }
      await server.provider.script([calls(['show_map', { city: 'Rome' }]), says('Fine.')], user)
      await client.run(user, { message: ask(user), parameters })

      const { refused, messages } = await client.run(user, { message: ask(`${user} never mind`), parameters })

      assert.equal(refused, undefined)
      assert.equal(textIn(messages).at(-1), 'Fine.')
      assert.deepEqual(
        (await runsOf(user)).map(({ status }) => status),
        ['succeeded', 'cancelled'],
      )
    })

    test('tells the model its state and its context, and its settings count', async () => {
      const { user } = await open({ city: 'Rome', 'a/b': [1, 2] })
      await server.provider.script([says('Ok.')], user, 'another')
      const context = [{ description: 'the open page', value: 'x'.repeat(3000) }]

      const { refused, state } = await client.run(user, {
        message: ask(user),
        parameters: { context, forwardedProps: { model: 'openai/another', temperature: 0.5, unknownToUs: true } },
      })

      assert.equal(refused, undefined)
      assert.deepEqual(state, { city: 'Rome', 'a/b': [1, 2] })
      const [request] = await server.asked(user)
      assert.equal(request?.body.temperature, 0.5)
      const told = JSON.stringify(messagesOf(request))
      assert.match(told, /Rome/)
      assert.match(told, /the open page/)
      assert.ok(told.includes('x'.repeat(3000)))
    })

    test('sends a picture with its question', async () => {
      const { user } = await open()
      await server.provider.script([says('A square.')], user)
      const image = {
        type: 'image',
        source: { type: 'data', value: pngOf().toString('base64'), mimeType: 'image/png' },
      }

      const { refused, messages } = await client.run(user, { message: ask([{ type: 'text', text: user }, image]) })

      assert.equal(refused, undefined)
      assert.deepEqual(textIn(messages), ['A square.'])
      const sent = messagesOf((await server.asked(user))[0]).at(-1)
      assert.match(JSON.stringify(sent), /image\/png/)
    })

    test('learns from RUN_ERROR that a run failed, and from 4xx that none was started', async () => {
      const { user } = await open()
      await server.provider.script([[{ status: 400, body: { error: { message: 'no' } } }]], user)

      const failed = await client.run(user, { message: ask(user) })
      assert.equal(failed.refused, undefined)
      assert.equal(failed.events.at(-1)?.type, 'RUN_ERROR')
      assert.match(String(failed.events.at(-1)?.['code']), /^model_/)

      await client.open(`${user}x`, { url: urlFor(user, '/v1/ag-ui/nobody'), threadId: 't' })
      const refused = await client.run(`${user}x`, { message: ask(user) })
      assert.match(refused.refused ?? '', /HTTP 404.*agent_not_found/s)
    })

    test('leaves its run running when it hangs up, and another client attaches to it and stops it', async () => {
      const { user, threadId } = await open()
      await server.provider.script([says('Before.'), hangsAfter('Once', ' upon')], user)
      await client.run(user, { message: ask(user) })
      const running = client.run(user, { message: ask(`${user} again`) })
      await client.saw(user, isText(' upon'))
      await client.abort(user)
      await running

      const [other, third] = [`${user}-2`, `${user}-3`]
      for (const name of [other, third]) await client.open(name, { url: urlFor(user), threadId })
      const attached = [other, third].map((name) => client.connect(name, streamUrl(user, threadId)))
      for (const name of [other, third]) await client.saw(name, isText(' upon'))
      const stopped = await server.call('POST', `/v1/ag-ui/threads/${encodeURIComponent(threadId)}/stop`, {
        user,
        body: {},
      })

      assert.equal((stopped.body.stopped as string[]).length, 1)
      assert.deepEqual(stopped.body.stopping, [])
      for (const { refused, messages, events } of await Promise.all(attached)) {
        assert.equal(refused, undefined)
        assert.deepEqual(
          messages.map(({ role, content }) => `${String(role)}: ${String(content)}`),
          [`user: ${user}`, 'assistant: Before.', `user: ${user} again`, 'assistant: Once upon'],
        )
        const outcome = events.at(-1)?.['outcome'] as { type: string } | undefined
        assert.equal(outcome?.type, version === '1.0' ? 'cancelled' : undefined)
      }
    })

    test('attaches to a thread that waits, and answers there', async () => {
      const { user, threadId } = await open({ open: true })
      amount += 1
      await server.provider.script([calls(['charge', { amount }]), says('Charged.')], user)
      await client.run(user, { message: ask(user) })
      const other = `${user}-2`
      await client.open(other, { url: urlFor(user), threadId })

      const attached = await client.connect(other, streamUrl(user, threadId))
      assert.equal(attached.refused, undefined)
      assert.deepEqual(attached.state, { open: true })
      const resume = attached.interrupts.map(({ id }) => ({
        interruptId: id,
        status: 'resolved' as const,
        payload: { approved: true },
      }))
      assert.equal(resume.length, 1)
      const done = await client.run(other, { parameters: { resume } })
      assert.deepEqual(textIn(done.messages).filter(Boolean), ['Charged.'])

      // The whole run, past the decision, for a third one that comes later.
      await client.open(`${user}-3`, { url: urlFor(user), threadId })
      const late = await client.connect(`${user}-3`, streamUrl(user, threadId))
      assert.equal(late.refused, undefined)
      assert.deepEqual(late.interrupts, [])
      const rolesOf = (messages: Record<string, unknown>[]) => messages.map(({ role }) => role)
      assert.deepEqual(rolesOf(late.messages), rolesOf(done.messages))
    })
  })
}
