// Interrupts of LangGraph with the real client of its SDK: how they are shown, answered, joined and left.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  bearer,
  contents,
  eventsOf,
  human,
  langGraphClient,
  langGraphSecret,
  named,
  textShown,
} from '../support/langgraph-client.ts'
import { sharedMcpServerProcess } from '../support/shared-mcp-server.ts'
import { calls, type Json, says, someone, toolState, until } from '../support/test-server.ts'

const { server, effects } = sharedMcpServerProcess(() => ({ POLYLOG_JWT_SECRET: langGraphSecret }))
const agent = 'chat_conversation'

const clientOf = (user: string, baseUrl = server.polylog.baseUrl) => langGraphClient(user, baseUrl)

let amount = 7000

describe('an interrupt, with the client of the LangGraph SDK,', () => {
  test('resumes an interrupted run with a decision, in the shape of the human-in-the-loop middleware', async () => {
    const user = someone()
    const client = await clientOf(user)
    amount += 1
    await server.provider.script([calls(['charge', { amount }]), says('Charged.')], user)
    const { thread_id } = await client.threads.create()

    const asked = await eventsOf(
      client.runs.stream(thread_id, agent, { input: human(user), streamMode: ['values', 'updates', 'messages-tuple'] }),
    )
    const [interrupt] = named(asked, 'values').at(-1)?.['__interrupt__'] ?? []
    assert.deepEqual(
      interrupt.value.action_requests.map(({ name, args }: Json) => [name, args]),
      [['charge', { amount }]],
    )
    assert.equal((await client.threads.get(thread_id)).status, 'interrupted')
    const state = await client.threads.getState(thread_id)
    assert.deepEqual([state.next, state.tasks[0]?.interrupts[0]?.id], [['tools'], interrupt.id])
    assert.ok(!effects.lines().includes(`charge ${amount}`))

    const rest = await eventsOf(
      client.runs.stream(thread_id, agent, {
        command: { resume: { decisions: [{ type: 'approve' }] } },
        streamMode: ['values', 'messages-tuple'],
      }),
    )

    assert.equal(effects.lines().filter((line) => line === `charge ${amount}`).length, 1)
    assert.deepEqual(textShown(rest), ['Charged.'])
    assert.equal(named(rest, 'metadata')[0]?.['run_id'], named(asked, 'metadata')[0]?.['run_id'], 'it is the same run')
    assert.deepEqual(contents(named(rest, 'values').at(-1) ?? {}).at(-1), 'ai: Charged.')
    assert.equal((await client.threads.get(thread_id)).status, 'idle')
    const runId = String(named(rest, 'metadata')[0]?.['run_id'])
    const replay = await eventsOf(
      client.runs.joinStream(thread_id, runId, { lastEventId: '-1', streamMode: ['values'] }),
    )
    assert.ok(named(replay, 'values').every((values) => values.__interrupt__ === undefined))
    assert.deepEqual(replay.at(-1)?.data, rest.at(-1)?.data, 'a replay goes past what was decided')
    await assert.rejects(
      client.runs.wait(thread_id, agent, { command: { resume: true } }),
      /409.*thread_not_interrupted/s,
    )
  })

  test('is answered by a command with an empty list of nodes, as RemoteGraph sends it', async () => {
    const user = someone()
    const client = await clientOf(user)
    amount += 1
    await server.provider.script([calls(['charge', { amount }]), says('Charged.')], user)
    const { thread_id } = await client.threads.create()
    await client.runs.wait(thread_id, agent, { input: human(user) })

    const resume = { decisions: [{ type: 'approve' }] }
    const command = { resume, goto: [] }
    const done = (await client.runs.wait(thread_id, agent, { command })) as Json

    assert.equal(contents(done).at(-1), 'ai: Charged.')
  })

  test('edits, rejects and answers by the ids of interrupts', async () => {
    const user = someone()
    const client = await clientOf(user)
    const [one, two, edited] = [amount + 1, amount + 2, amount + 3]
    amount += 3
    await server.provider.script(
      [calls(['charge', { amount: one }], ['charge', { amount: two }, 'second']), says('Done.')],
      user,
    )
    const { thread_id } = await client.threads.create()
    const waiting = (await client.runs.wait(thread_id, agent, { input: human(user) })) as Json
    const [interrupt] = waiting.__interrupt__

    for (const resume of [
      true,
      { decisions: [{ type: 'approve' }] },
      { decisions: [{ type: 'edit' }, { type: 'reject' }] },
      { decisions: [{ type: 'sell' }, { type: 'reject' }] },
      { 'an interrupt of somebody': { decisions: [{ type: 'approve' }, { type: 'approve' }] } },
    ]) {
      await assert.rejects(
        client.runs.wait(thread_id, agent, { command: { resume } }),
        /400.*confirmation_payload_invalid/s,
      )
    }
    const decisions = [
      { type: 'edit', edited_action: { name: 'charge', args: { amount: edited } } },
      { type: 'reject', message: 'Too much.' },
    ]
    const done = (await client.runs.wait(thread_id, agent, {
      command: { resume: { [interrupt.id]: { decisions } } },
    })) as Json

    const charged = effects.lines().filter((line) => [one, two, edited].some((value) => line === `charge ${value}`))
    assert.deepEqual(charged, [`charge ${edited}`])
    const results = (done.messages as Json[]).filter(({ type }) => type === 'tool')
    assert.deepEqual(new Set(results.map(({ status }) => status)), new Set(['error', 'success']))
    assert.ok(results.some(({ content }) => String(content).includes('Too much.')))
  })

  test('decides nothing with an answer that is none, and with one for another interrupt', async () => {
    const user = someone()
    const client = await clientOf(user)
    amount += 1
    await server.provider.script([calls(['charge', { amount }]), says('Not charged.')], user)
    const { thread_id } = await client.threads.create()
    await client.runs.wait(thread_id, agent, { input: human(user) })

    for (const resume of [{ 'another interrupt': { decisions: [{ type: 'approve' }] } }, {}, 1, { approved: 'yes' }]) {
      await assert.rejects(
        client.runs.wait(thread_id, agent, { command: { resume } }),
        /400.*confirmation_payload_invalid/s,
      )
    }
    assert.equal((await client.threads.get(thread_id)).status, 'interrupted')
    const done = (await client.runs.wait(thread_id, agent, { command: { resume: { approved: false } } })) as Json
    assert.equal(contents(done).at(-1), 'ai: Not charged.')
    assert.ok(!effects.lines().includes(`charge ${amount}`))
  })

  test('ends at once when it joins an interrupted run after its last event, and goes on after the answer', async () => {
    const user = someone()
    const client = await clientOf(user)
    amount += 1
    await server.provider.script([calls(['charge', { amount }]), says('Charged.')], user)
    const { thread_id } = await client.threads.create()
    const asked = await eventsOf(client.runs.stream(thread_id, agent, { input: human(user), streamMode: 'values' }))
    const runId = String(named(asked, 'metadata')[0]?.['run_id'])
    // A connection that broke between the last event and the end of the stream.
    const join = () =>
      eventsOf(client.runs.joinStream(thread_id, runId, { lastEventId: asked.at(-1)?.id ?? '', streamMode: 'values' }))

    assert.deepEqual(await join(), [])
    await client.runs.wait(thread_id, agent, { command: { resume: true } })
    assert.equal(contents(named(await join(), 'values').at(-1) ?? {}).at(-1), 'ai: Charged.')
  })

  test('gets the rest of an interrupt when its connection broke between the frames of it', async () => {
    const user = someone()
    const client = await clientOf(user)
    amount += 1
    await server.provider.script([calls(['charge', { amount }]), says('Charged.')], user)
    const { thread_id } = await client.threads.create()
    const streamMode: ('updates' | 'values')[] = ['updates', 'values']
    const asked = await eventsOf(client.runs.stream(thread_id, agent, { input: human(user), streamMode }))
    const runId = String(named(asked, 'metadata')[0]?.['run_id'])
    const [told, state] = asked.slice(-2)

    const rest = await eventsOf(client.runs.joinStream(thread_id, runId, { lastEventId: told?.id ?? '', streamMode }))

    assert.deepEqual([told?.event, state?.event], ['updates', 'values'])
    assert.deepEqual(
      rest.filter(({ id }) => id !== undefined),
      [state],
    )
  })

  test('brings the result of a tool of the client, in the shape of the headless tools of the SDK', async () => {
    const user = someone()
    const client = await clientOf(user)
    const clientTools = [{ name: 'locate', inputSchema: { type: 'object' } }]
    for (const [value, expected] of [
      [{ city: 'Oslo' }, /Oslo/],
      [{ error: 'No signal.' }, /No signal\./],
    ] as const) {
      await server.provider.script([calls(['locate', {}, 'call_here']), says('Thanks.')], user)
      const name = `thread-${user}-${'error' in value ? 'failed' : 'found'}`
      const chat = await server.chat(user, { input: user, conversationId: name, clientTools }, await bearer(user))
      await chat.waitFor(toolState('awaiting_input'))
      const interrupts = await until('the thread to be interrupted', async () => {
        const { tasks } = await client.threads.getState(name)
        return tasks[0]?.interrupts
      })
      assert.deepEqual(
        interrupts.map(({ value: asked }) => asked),
        [{ type: 'tool', tool_call: { id: 'call_here', name: 'locate', args: {} } }],
      )

      const done = (await client.runs.wait(name, agent, { command: { resume: { call_here: value } } })) as Json

      const [result, answer] = (done.messages as Json[]).slice(-2)
      assert.match(String(result?.['content']), expected)
      assert.deepEqual([result?.['status'], answer?.['content']], ['error' in value ? 'error' : 'success', 'Thanks.'])
    }
  })

  test('does not wait for an interrupted run: a new message leaves it, with every strategy', async () => {
    for (const multitaskStrategy of [undefined, 'enqueue', 'reject', 'interrupt'] as const) {
      const user = someone()
      const client = await clientOf(user)
      await server.provider.script([calls(['remember_note', { text: user }]), says('Something else.')], user)
      const { thread_id } = await client.threads.create()
      await client.runs.wait(thread_id, agent, { input: human(user) })
      assert.equal((await client.threads.get(thread_id)).status, 'interrupted')

      const second = (await client.runs.wait(thread_id, agent, {
        input: human(user),
        signal: AbortSignal.timeout(5000),
        ...(multitaskStrategy === undefined ? {} : { multitaskStrategy }),
      })) as Json

      assert.equal(contents(second).at(-1), 'ai: Something else.')
      assert.equal((await client.threads.get(thread_id)).status, 'idle')
    }
  })
})
