// Streams and concurrent runs of LangGraph with the real client of its SDK: joining again, repeating, reconnecting, cancelling.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  bearer,
  contents,
  eventsOf,
  human,
  langGraphClient,
  type LangGraphEvent,
  langGraphSecret,
  named,
  textShown,
} from '../support/langgraph-client.ts'
import { sharedMcpServerProcess } from '../support/shared-mcp-server.ts'
import { openStream } from '../support/sse.ts'
import { hangsAfter, type Json, says, someone, until } from '../support/test-server.ts'

const { server } = sharedMcpServerProcess(() => ({ POLYLOG_JWT_SECRET: langGraphSecret }))
const agent = 'chat_conversation'

const clientOf = (user: string, baseUrl = server.polylog.baseUrl) => langGraphClient(user, baseUrl)

describe('a stream, with the client of the LangGraph SDK,', () => {
  test('joins a run after a lost connection, from any event, without a gap or a repetition', async () => {
    const user = someone()
    const client = await clientOf(user)
    await server.provider.script([hangsAfter('One, ', 'two, ', 'three')], user)
    const { thread_id } = await client.threads.create()
    const run = await client.runs.create(thread_id, agent, { input: human(user) })
    const first: LangGraphEvent[] = []
    for await (const event of client.runs.joinStream(thread_id, run.run_id, {
      lastEventId: '-1',
      streamMode: ['messages-tuple', 'values'],
    })) {
      first.push(event)
      if (textShown(first)[0] === 'One, two, ') break
    }

    const lastEventId = first.at(-1)?.id ?? ''
    const rest: LangGraphEvent[] = []
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
    const events: LangGraphEvent[] = []
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

  test('gets the values if it names no stream mode, as LangGraph sends them', async () => {
    const user = someone()
    const client = await clientOf(user)
    await server.provider.script([says('It ', 'is ten.')], user)

    const events = await eventsOf(client.runs.stream(null, agent, { input: human(user) }))

    assert.deepEqual([...new Set(events.map(({ event }) => event))], ['metadata', 'values'])
  })

  test('cancels the run of a connection that closes, if the request says so', async () => {
    const user = someone()
    const client = await clientOf(user)
    await server.provider.script([hangsAfter('One')], user)
    const { thread_id } = await client.threads.create()
    const leave = new AbortController()
    const events: LangGraphEvent[] = []
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
