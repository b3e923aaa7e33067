// LangGraph's API over real sockets, with the real client of its SDK: threads, runs, messages, and what is refused.

import { Client } from '@langchain/langgraph-sdk'
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  contents,
  eventsOf,
  human,
  langGraphClient,
  langGraphSecret,
  named,
  textShown,
} from '../support/langgraph-client.ts'
import { sharedMcpServerProcess } from '../support/shared-mcp-server.ts'
import { pngOf } from '../support/sample-files.ts'
import { calls, type Json, says, sharedTestServer, someone } from '../support/test-server.ts'

const { server, effects } = sharedMcpServerProcess(() => ({ POLYLOG_JWT_SECRET: langGraphSecret }))
const required = sharedTestServer({ POLYLOG_JWT_SECRET: langGraphSecret, POLYLOG_AUTH: 'required' })
const agent = 'chat_conversation'

const clientOf = (user: string, baseUrl = server.polylog.baseUrl) => langGraphClient(user, baseUrl)

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

  test('reads the same tool messages in the stream, in its repetition and in the state: what the model was told', async () => {
    const user = someone()
    const client = await clientOf(user)
    await server.provider.script(
      [calls(['lookup', {}], ['no_such_tool', {}], ['lookup', { word: 'x' }]), says('Sorry.')],
      user,
    )
    const { thread_id } = await client.threads.create()
    const streamMode: ('values' | 'messages' | 'messages-tuple')[] = ['values', 'messages', 'messages-tuple']
    const onlyTools = (messages: Json[]) => messages.filter(({ type }) => type === 'tool')
    const live = await eventsOf(client.runs.stream(thread_id, agent, { input: human(user), streamMode }))
    const runId = named(live, 'metadata')[0]?.['run_id'] as string
    const replay = await eventsOf(client.runs.joinStream(thread_id, runId, { lastEventId: '-1', streamMode }))

    const state = await client.threads.getState(thread_id)
    const stored = onlyTools((state.values as Json)['messages'])

    const asked = (await server.asked(user)).at(-1)
    assert.deepEqual(
      stored.map(({ content }) => content),
      asked?.body.messages?.filter(({ role }: Json) => role === 'tool').map(({ content }: Json) => content),
    )
    assert.deepEqual(
      stored.map(({ content, status }) => [String(content).startsWith('The tool failed: '), status]),
      [
        [true, 'error'],
        [true, 'error'],
        [false, 'success'],
      ],
    )
    for (const events of [live, replay]) {
      assert.deepEqual(onlyTools(named(events, 'values').at(-1)?.['messages']), stored)
      assert.deepEqual(onlyTools(named(events, 'messages/complete').flat()), stored)
      assert.deepEqual(onlyTools(named(events, 'messages').map((data) => (data as unknown as Json[])[0] ?? {})), stored)
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

  test('reads the state by its checkpoint, and no older one', async () => {
    const user = someone()
    const client = await clientOf(user)
    await server.provider.script([says('One.'), says('Two.')], user)
    const { thread_id } = await client.threads.create()
    await client.runs.wait(thread_id, agent, { input: human(user) })
    const first = await client.threads.getState(thread_id)

    for (const checkpoint of [first.checkpoint, { thread_id }, first.checkpoint.checkpoint_id ?? ''])
      assert.deepEqual(await client.threads.getState(thread_id, checkpoint as typeof first.checkpoint), first)
    await client.runs.wait(thread_id, agent, { input: human(`More. ${user}`) })

    await assert.rejects(client.threads.getState(thread_id, first.checkpoint), /400.*langgraph_unsupported/s)
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
})
