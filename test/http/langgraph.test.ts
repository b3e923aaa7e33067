// LangGraph's API over real sockets, with the real client of its SDK: threads, runs, streams, interrupts,
// joining again, and what is refused.

import { Client } from '@langchain/langgraph-sdk'
import { SignJWT } from 'jose'
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sharedMcpServerProcess } from '../support/shared-mcp-server.ts'
import { pngOf } from '../support/sample-files.ts'
import { openStream } from '../support/sse.ts'
import {
  calls,
  hangsAfter,
  type Json,
  says,
  sharedTestServer,
  someone,
  toolState,
  until,
} from '../support/test-server.ts'

const secret = 'a secret that is long enough for a test'
const { server, effects } = sharedMcpServerProcess(() => ({ POLYLOG_JWT_SECRET: secret }))
const required = sharedTestServer({ POLYLOG_JWT_SECRET: secret, POLYLOG_AUTH: 'required' })
const agent = 'chat_conversation'

async function bearer(user: string): Promise<Record<string, string>> {
  const token = await new SignJWT({ sub: user })
    .setProtectedHeader({ alg: 'HS256' })
    .setExpirationTime(4_000_000_000)
    .sign(new TextEncoder().encode(secret))
  return { authorization: `Bearer ${token}` }
}

async function clientOf(user: string, baseUrl = server.polylog.baseUrl): Promise<Client> {
  return new Client({
    apiUrl: `${baseUrl}/langgraph`,
    apiKey: null,
    defaultHeaders: await bearer(user),
    callerOptions: { maxRetries: 0 },
  })
}

const human = (content: unknown) => ({ messages: [{ type: 'human', content }] })

type Event = { id?: string; event: string; data: Json }

async function eventsOf(stream: AsyncIterable<unknown>): Promise<Event[]> {
  return (await Array.fromAsync(stream)) as Event[]
}

const named = (events: readonly Event[], name: string): Json[] =>
  events.filter(({ event }) => event === name).map(({ data }) => data)

/** The text of the chunks of a stream, by message. */
function textShown(events: readonly Event[]): string[] {
  const texts = new Map<string, string>()
  for (const data of named(events, 'messages')) {
    const [message] = data as unknown as Json[]
    if (message?.type === 'AIMessageChunk')
      texts.set(message.id, (texts.get(message.id) ?? '') + String(message.content))
  }
  return [...texts.values()].filter((text) => text !== '')
}

const contents = (values: Json) => (values.messages as Json[]).map(({ type, content }) => `${type}: ${content}`)

let amount = 7000

describe('the client of the LangGraph SDK', () => {
  test('creates a thread, streams a run, and reads the state of the thread', async () => {
    const user = someone()
    const client = await clientOf(user)
    await server.provider.script([calls(['lookup', { word: 'x' }]), says('It ', 'is ten.'), says('Still ten.')], user)
    const thread = await client.threads.create()

    const created: Json[] = []
    const events = await eventsOf(
      client.runs.stream(thread.thread_id, agent, {
        input: human(user),
        streamMode: ['values', 'messages-tuple', 'updates'],
        onRunCreated: (run) => created.push(run),
      }),
    )
    const second = await eventsOf(
      client.runs.stream(thread.thread_id, agent, { input: human(`Again. ${user}`), streamMode: 'values' }),
    )

    const [metadata] = named(events, 'metadata')
    assert.deepEqual(created, [{ run_id: metadata?.['run_id'], thread_id: thread.thread_id }])
    assert.deepEqual(textShown(events), ['It is ten.'])
    const last = named(events, 'values').at(-1) ?? {}
    assert.deepEqual(
      contents(last).map((line) => line.split(':')[0]),
      ['human', 'ai', 'tool', 'ai'],
    )
    assert.deepEqual(
      last.messages[1].tool_calls.map((call: Json) => [call.name, call.args]),
      [['lookup', { word: 'x' }]],
    )
    assert.deepEqual(
      named(events, 'updates').map((update) => Object.keys(update)[0]),
      ['agent', 'tools', 'agent'],
    )
    assert.equal(
      named(second, 'values')[0]?.['messages'].length,
      5,
      'the state has the whole thread, also at the start',
    )
    const state = await client.threads.getState(thread.thread_id)
    assert.deepEqual(contents(state.values as Json).slice(-2), [`human: Again. ${user}`, 'ai: Still ten.'])
    assert.deepEqual(
      (state.values as Json).messages.slice(0, 4).map(({ id }: Json) => id),
      last.messages.map(({ id }: Json) => id),
    )
    assert.deepEqual([state.next, state.tasks], [[], []])
    const [head] = await client.threads.getHistory(thread.thread_id)
    assert.deepEqual(head?.checkpoint, state.checkpoint)
    assert.equal((await client.threads.get(thread.thread_id)).status, 'idle')
    const runs = await client.runs.list(thread.thread_id)
    assert.deepEqual(
      runs.map(({ status, assistant_id }) => [status, assistant_id]),
      [
        ['success', agent],
        ['success', agent],
      ],
    )
    assert.equal((await client.runs.get(thread.thread_id, runs[0]?.run_id ?? '')).run_id, runs[0]?.run_id)
  })

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

  test('joins a run after a lost connection, from any event, without a gap or a repetition', async () => {
    const user = someone()
    const client = await clientOf(user)
    await server.provider.script([hangsAfter('One, ', 'two, ', 'three')], user)
    const { thread_id } = await client.threads.create()
    const run = await client.runs.create(thread_id, agent, { input: human(user) })
    const first: Event[] = []
    for await (const event of client.runs.joinStream(thread_id, run.run_id, {
      lastEventId: '-1',
      streamMode: ['messages-tuple', 'values'],
    })) {
      first.push(event)
      if (textShown(first)[0] === 'One, two, ') break
    }

    const lastEventId = first.at(-1)?.id ?? ''
    const rest: Event[] = []
    for await (const event of client.runs.joinStream(thread_id, run.run_id, {
      lastEventId,
      streamMode: ['messages-tuple', 'values'],
    })) {
      rest.push(event)
      if (textShown(rest)[0] === 'three') await client.runs.cancel(thread_id, run.run_id, true)
    }

    assert.deepEqual(textShown([...first, ...rest]), ['One, two, three'])
    assert.equal((await client.runs.get(thread_id, run.run_id)).status, 'interrupted')
    await assert.rejects(
      eventsOf(client.runs.joinStream(thread_id, run.run_id, { lastEventId: '9999' })),
      /400.*unknown_cursor/s,
    )
  })

  test('starts one run for the requests with one Idempotency-Key', async () => {
    const user = someone()
    const client = await clientOf(user)
    await server.provider.script([says('Once.')], user)
    const { thread_id } = await client.threads.create()
    const path = `/langgraph/threads/${thread_id}/runs`
    const key = { ...(await bearer(user)), 'idempotency-key': `key-${user}` }
    const body = { assistant_id: agent, input: human(user) }
    const send = (to: string, sent: object, headers: Record<string, string>) =>
      server.call('POST', to, { body: { ...sent }, headers })

    const starts = await Promise.all(Array.from({ length: 8 }, () => send(path, body, key)))
    const runId = starts[0]?.body.run_id as string
    await client.runs.join(thread_id, runId)
    const late = await send(path, body, key)
    const waited = await send(`${path}/wait`, body, key)
    const other = await send(path, { ...body, input: human(`${user} too`) }, key)

    assert.deepEqual(new Set([...starts, late].map((answer) => answer.body.run_id)), new Set([runId]))
    assert.equal(contents(waited.body).at(-1), 'ai: Once.')
    assert.deepEqual([other.status, other.body.code], [409, 'idempotency_key_reused'])
    assert.equal((await client.runs.list(thread_id)).length, 1)

    const whole = await openStream(`${server.polylog.baseUrl}${path}/stream`, { body, headers: key })
    await whole.ended()
    const cut = whole.frames[1]
    const resumed = await openStream(`${server.polylog.baseUrl}${path}/stream`, {
      body,
      headers: { ...key, 'last-event-id': cut?.id ?? '' },
    })
    await resumed.ended()
    assert.deepEqual(
      resumed.frames.filter(({ id }) => id !== undefined && id !== null).map(({ id }) => id),
      whole.frames.slice(2).map(({ id }) => id),
    )
    const unclear = await send(`${path}/stream`, body, { ...(await bearer(user)), 'last-event-id': '3' })
    assert.deepEqual([unclear.status, unclear.body.code], [400, 'resume_by_post'])
    assert.equal((await client.runs.list(thread_id)).length, 1)
  })

  test('reconnects by itself to the address in Location, with the modes that it asked for', async () => {
    const user = someone()
    await server.provider.script([hangsAfter('One')], user)
    const headers = await bearer(user)
    const { body: thread } = await server.call('POST', '/langgraph/threads', { body: {}, headers })
    const stream = await openStream(`${server.polylog.baseUrl}/langgraph/threads/${thread.thread_id}/runs/stream`, {
      method: 'POST',
      headers,
      body: { assistant_id: agent, input: human(user), stream_mode: ['messages-tuple'] },
    })
    await stream.waitFor(({ event }) => event === 'messages')
    stream.leave()

    const location = String(stream.headers.location)
    const run = String(stream.headers['content-location'])
    assert.equal(location, `${run}/stream?stream_mode=messages-tuple`)
    const again = await openStream(`${server.polylog.baseUrl}/langgraph${location}`, {
      headers: { ...headers, 'last-event-id': '2.1' },
    })
    await again.waitFor(({ event }) => event === 'messages')
    await server.call('POST', `/langgraph${run}/cancel?wait=1`, { headers })
    await again.ended()
    assert.deepEqual([...new Set(again.frames.map(({ event }) => event))], ['metadata', 'messages'])
  })

  test('cancels a run; its stream ends, and the thread can go on', async () => {
    const user = someone()
    const client = await clientOf(user)
    await server.provider.script([hangsAfter('Once upon'), says('Again.')], user)
    const { thread_id } = await client.threads.create()
    const events: Event[] = []
    for await (const event of client.runs.stream(thread_id, agent, {
      input: human(user),
      streamMode: ['messages-tuple', 'values'],
    })) {
      events.push(event)
      if (event.event === 'messages')
        await client.runs.cancel(thread_id, named(events, 'metadata')[0]?.['run_id'], true)
    }

    assert.equal(events.at(-1)?.event, 'values')
    const done = (await client.runs.wait(thread_id, agent, { input: human(`More. ${user}`) })) as Json
    assert.equal(contents(done).at(-1), 'ai: Again.')
  })

  test('decides what happens to a run before: wait, refuse or cancel', async () => {
    const user = someone()
    const client = await clientOf(user)
    await server.provider.script([hangsAfter('Busy'), says('Second.')], user)
    const { thread_id } = await client.threads.create()
    const first = await client.runs.create(thread_id, agent, { input: human(user) })
    await server.askedTimes(user, 1)
    assert.equal((await client.threads.get(thread_id)).status, 'busy')

    await assert.rejects(
      client.runs.create(thread_id, agent, { input: human('x'), multitaskStrategy: 'reject' }),
      /409.*conversation_busy/s,
    )
    await assert.rejects(
      client.runs.create(thread_id, agent, { input: human('x'), multitaskStrategy: 'rollback' }),
      /400.*langgraph_unsupported/s,
    )
    const second = (await client.runs.wait(thread_id, agent, {
      input: human(user),
      multitaskStrategy: 'interrupt',
    })) as Json

    assert.equal(contents(second).at(-1), 'ai: Second.')
    assert.equal((await client.runs.get(thread_id, first.run_id)).status, 'interrupted')
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

  test('tells the error of a run that failed, on each way', async () => {
    const user = someone()
    const client = await clientOf(user)
    const down = [{ status: 500, body: {} }]
    await server.provider.script([down, down], user)
    const { thread_id } = await client.threads.create()

    const events = await eventsOf(client.runs.stream(thread_id, agent, { input: human(user) }))
    await assert.rejects(client.runs.wait(thread_id, agent, { input: human(user) }), /^Error: model_\w+: /)

    assert.equal(events.at(-1)?.event, 'error')
    assert.match(String(events.at(-1)?.data['error']), /^model_/)
    assert.equal((await client.threads.get(thread_id)).status, 'error')
    assert.equal((await client.runs.list(thread_id))[0]?.status, 'error')
  })

  test('runs without a thread, and with one that the request creates', async () => {
    const user = someone()
    const client = await clientOf(user)
    await server.provider.script([says('Alone.'), says('Waited.'), says('Named.')], user)

    const streamed = await eventsOf(client.runs.stream(null, agent, { input: human(user), streamMode: 'values' }))
    const waited = (await client.runs.wait(null, agent, { input: human(user) })) as Json
    const name = `thread-${user}`
    await assert.rejects(client.runs.wait(name, agent, { input: human(user) }), /404.*conversation_not_found/s)
    const made = (await client.runs.wait(name, agent, { input: human(user), ifNotExists: 'create' })) as Json

    assert.deepEqual(
      [named(streamed, 'values').at(-1) ?? {}, waited, made].map((values) => contents(values).at(-1)),
      ['ai: Alone.', 'ai: Waited.', 'ai: Named.'],
    )
    assert.equal((await client.threads.get(name)).thread_id, name)
  })

  test('lists agents as assistants, and threads last used first', async () => {
    const user = someone()
    const client = await clientOf(user)
    const assistants = await client.assistants.search({ limit: 100 })
    assert.ok(assistants.some(({ assistant_id }) => assistant_id === agent))
    assert.equal((await client.assistants.get(agent)).graph_id, agent)
    assert.ok((await client.assistants.getSchemas(agent)).state_schema != null)
    await assert.rejects(client.assistants.get('nobody'), /404.*agent_not_found/s)

    const first = await client.threads.create({ metadata: { title: 'A first one' } })
    const second = await client.threads.create({ threadId: `named-${user}`, ifExists: 'do_nothing' })
    assert.equal(second.thread_id, `named-${user}`)
    await assert.rejects(client.threads.create({ threadId: `named-${user}` }), /409.*thread_exists/s)
    await client.threads.create({ threadId: `named-${user}`, ifExists: 'do_nothing' })
    const found = await client.threads.search({ metadata: { graph_id: agent } })
    assert.deepEqual(
      found.map(({ thread_id }) => thread_id),
      [`named-${user}`, first.thread_id],
    )
    assert.equal(found[1]?.metadata?.['title'], 'A first one')
    assert.deepEqual(
      (await client.threads.search({ offset: 1, limit: 1 })).map(({ thread_id }) => thread_id),
      [first.thread_id],
    )
    assert.deepEqual(
      (await client.threads.search({ ids: [`named-${user}`] })).map(({ thread_id }) => thread_id),
      [`named-${user}`],
    )
    await client.threads.update(first.thread_id, { metadata: { title: 'Renamed' } })
    assert.equal((await client.threads.get(first.thread_id)).metadata?.['title'], 'Renamed')
    await client.threads.delete(first.thread_id)
    await assert.rejects(client.threads.get(first.thread_id), /404/)
    assert.deepEqual(await client.threads.getHistory(`named-${user}`), [])
  })

  test('sends images, instructions and the history of a new thread', async () => {
    const user = someone()
    const client = await clientOf(user)
    await server.provider.script([says('I see.')], user)
    const url = `data:image/png;base64,${pngOf().toString('base64')}`

    const done = (await client.runs.wait(null, agent, {
      input: {
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Hello.' },
          { role: 'assistant', content: 'Hi.' },
          {
            type: 'human',
            content: [
              { type: 'text', text: user },
              { type: 'image_url', image_url: { url } },
            ],
          },
        ],
      },
    })) as Json

    assert.deepEqual(
      contents(done).map((line) => line.split('\n')[0]),
      ['human: Hello.', 'ai: Hi.', `human: ${user}`, 'ai: I see.'],
    )
    const [asked] = await server.asked(user)
    assert.match(JSON.stringify(asked?.body.messages), /Be brief\./)
  })

  test('sends messages in every form that LangGraph takes', async () => {
    const user = someone()
    const client = await clientOf(user)
    await server.provider.script([says('One.'), says('Two.'), says('Three.'), says('Four.')], user)
    const constructed = (name: string, content: unknown) => ({
      lc: 1,
      type: 'constructor',
      id: ['langchain_core', 'messages', name],
      kwargs: { content, additional_kwargs: {}, response_metadata: {} },
    })
    const image = { type: 'image', base64: pngOf().toString('base64'), mime_type: 'image/png' }
    const forms = [
      [
        ['system', 'Be brief.'],
        ['user', 'Hello.'],
        ['ai', 'Hi.'],
        ['human', user],
      ],
      [constructed('SystemMessage', 'Be brief.'), constructed('HumanMessage', user)],
      [user],
      [{ role: 'user', content: [{ type: 'text', text: user }, image] }],
    ]

    for (const messages of forms) await client.runs.wait(null, agent, { input: { messages } })

    const prompts = (await server.asked(user)).map(({ body }) => JSON.stringify(body.messages))
    assert.equal(prompts.length, 4)
    for (const prompt of prompts.slice(0, 2)) assert.match(prompt, /Be brief\./)
    assert.match(prompts[0] ?? '', /Hello\..*Hi\./)
    assert.match(prompts[3] ?? '', /data:image\/png/)
  })

  test('gets the values if it names no stream mode, as LangGraph sends them', async () => {
    const user = someone()
    const client = await clientOf(user)
    await server.provider.script([says('It ', 'is ten.')], user)

    const events = await eventsOf(client.runs.stream(null, agent, { input: human(user) }))

    assert.deepEqual([...new Set(events.map(({ event }) => event))], ['metadata', 'values'])
  })

  test('is refused what is not served, with a sentence that says what to do', async () => {
    const user = someone()
    const client = await clientOf(user)
    const { thread_id } = await client.threads.create()
    const refused = async (payload: Json, code = 'langgraph_unsupported') =>
      await assert.rejects(
        client.runs.wait(thread_id, agent, payload),
        (error: Error & { status: number; text: string }) => {
          const body = JSON.parse(error.text) as Json
          assert.deepEqual([error.status, body.code, body.detail], [400, code, body.message])
          return true
        },
      )
    const input = human('x')

    await refused({ input, interruptBefore: ['tools'] })
    await refused({ input, webhook: 'https://example.com' })
    await refused({ input, afterSeconds: 5 })
    await refused({ input, checkpointId: 'older' })
    await refused({ command: { goto: 'tools' } })
    await refused({ input: null }, 'messages_or_prompt_required')
    await refused({ input: human(' ') }, 'messages_or_prompt_required')
    await refused({ input: { messages: [{ type: 'remove', id: 'x', content: '' }] } }, 'messages_invalid')
    await refused({ input: { messages: [7] } }, 'messages_invalid')
    for (const streamMode of ['events', 'debug', 'tasks', 'checkpoints'] as const) {
      await assert.rejects(
        eventsOf(client.runs.stream(thread_id, agent, { input, streamMode })),
        /400.*langgraph_unsupported/s,
      )
    }
    await assert.rejects(client.threads.updateState(thread_id, { values: {} }), /400.*langgraph_unsupported/s)
    await assert.rejects(client.threads.search({ metadata: { colour: 'red' } }), /400.*langgraph_unsupported/s)
    await assert.rejects(client.runs.wait(thread_id, 'nobody', { input }), /404.*agent_not_found/s)
    assert.deepEqual(await client.runs.list(thread_id), [])
  })

  test('finds nothing of another user', async () => {
    const [user, other] = [someone('owner'), someone('other')]
    const [client, stranger] = [await clientOf(user), await clientOf(other)]
    amount += 1
    await server.provider.script([calls(['charge', { amount }]), says('Done.')], user)
    const { thread_id } = await client.threads.create()
    await client.runs.wait(thread_id, agent, { input: human(user) })
    const [run] = await client.runs.list(thread_id)
    const runId = run?.run_id ?? ''

    const tries = [
      () => stranger.threads.get(thread_id),
      () => stranger.threads.getState(thread_id),
      () => stranger.threads.getHistory(thread_id),
      () => stranger.threads.update(thread_id, { metadata: { title: 'mine' } }),
      () => stranger.threads.delete(thread_id),
      () => stranger.threads.create({ threadId: thread_id, ifExists: 'do_nothing' }),
      () => stranger.threads.updateState(thread_id, { values: {} }),
      () => stranger.runs.list(thread_id),
      () => stranger.runs.get(thread_id, runId),
      () => stranger.runs.join(thread_id, runId),
      () => stranger.runs.cancel(thread_id, runId),
      () => stranger.runs.delete(thread_id, runId),
      () => stranger.runs.create(thread_id, agent, { input: human('hi') }),
      () => stranger.runs.create(thread_id, agent, { input: human('hi'), ifNotExists: 'create' }),
      () => stranger.runs.wait(thread_id, agent, { input: human('hi') }),
      () => stranger.runs.wait(thread_id, agent, { command: { resume: true } }),
      () => eventsOf(stranger.runs.stream(thread_id, agent, { input: human('hi') })),
      () => eventsOf(stranger.runs.joinStream(thread_id, runId)),
    ]
    for (const attempt of tries) await assert.rejects(attempt, /404/, String(attempt))
    assert.deepEqual(await stranger.threads.search(), [])
    assert.equal((await client.threads.get(thread_id)).status, 'interrupted')
    assert.ok(!effects.lines().includes(`charge ${amount}`))
    // A run is found only in its own thread.
    const otherThread = await client.threads.create()
    await assert.rejects(client.runs.get(otherThread.thread_id, runId), /404.*run_not_found/s)
  })

  test('needs a login where one is required', async () => {
    const apiUrl = `${required.polylog.baseUrl}/langgraph`
    const stranger = new Client({ apiUrl, apiKey: null, callerOptions: { maxRetries: 0 } })
    await assert.rejects(stranger.threads.create(), /401/)
    await assert.rejects(stranger.assistants.search(), /401/)
    const client = await clientOf(someone(), required.polylog.baseUrl)
    assert.ok((await client.threads.create()).thread_id !== '')
  })

  test('cancels the run of a connection that closes, if the request says so', async () => {
    const user = someone()
    const client = await clientOf(user)
    await server.provider.script([hangsAfter('One')], user)
    const { thread_id } = await client.threads.create()
    const leave = new AbortController()
    const events: Event[] = []
    await assert.rejects(async () => {
      for await (const event of client.runs.stream(thread_id, agent, {
        input: human(user),
        streamMode: 'messages-tuple',
        onDisconnect: 'cancel',
        signal: leave.signal,
      })) {
        events.push(event)
        if (event.event === 'messages') leave.abort()
      }
      throw new Error('left')
    })

    await until('the run to be cancelled', async () =>
      (await client.runs.list(thread_id))[0]?.status === 'interrupted' ? true : undefined,
    )
  })
})
