// Before the vote, the responses of the server do not reveal which arm of a comparison is which:
// every GET route is asked about both arms, in every format. After the vote the same routes
// reveal it.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type AbTestServer, armFrames, calm, conversationOf, startAbTestServer, wild } from '../support/comparisons.ts'
import type { Action } from '../support/fake-provider.ts'
import { hangsAfter, type Json, someone, until } from '../support/test-server.ts'

let server: AbTestServer
before(async () => {
  server = await startAbTestServer()
})
after(async () => {
  await server.close()
})

const tokens = { calm: [731_001, 731_002], wild: [842_003, 842_004] } as const
/** Configurations, models, instructions, thoughts, and token counts with their sums. */
const identity = /calm-|wild-|Be wild|deep thought|73100[12]|84200[34]|1462003|1684007/

/** They list what there is, or count all runs by model, for operators; they say nothing about an arm. */
const catalogues = ['/api/get_configs', '/v1/models', '/v1/models/{model}', '/openapi.json', '/metrics']

function answer(text: string, [prompt, completion]: readonly [number, number]): Action[] {
  return [
    { reasoning: ['A deep thought.'] },
    { text: [text] },
    { finish: 'stop', usage: { prompt_tokens: prompt, completion_tokens: completion } },
  ]
}

/** Every GET path of the server, for one arm. */
async function pathsOf(arm: { run: string; message: string }, comparison: Json, id: string): Promise<string[]> {
  const { body } = await server.call('GET', '/openapi.json')
  const unknown = await server.call('GET', `/v1/agent/runs/${arm.run}/stream?format=none`)
  const formats = /known are ([^.]+)/.exec(unknown.text)?.[1]?.split(', ') ?? []
  assert.ok(formats.length >= 6, unknown.text)
  const values: Record<string, string> = {
    conversationId: comparison.conversation_id,
    conversation_id: comparison.conversation_id,
    comparison_id: id,
    message_id: arm.message,
  }
  const paths = Object.entries(body.paths as Record<string, Json>)
    .filter(([path, methods]) => 'get' in methods && !catalogues.includes(path))
    .map(([path]) => path.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? arm.run))
  return [
    ...paths.filter((path) => path !== '/api/ab/pending' && path !== '/v1/feed'),
    '/v1/feed?follow=off',
    `/api/ab/pending?conversation_id=${comparison.conversation_id}`,
    `/v1/agent/messages?conversationId=${comparison.conversation_id}`,
    // LangGraph's routes are not in the description of the API.
    ...['', '/join', '/stream'].map((end) => `/langgraph/threads/${comparison.conversation_id}/runs/${arm.run}${end}`),
    `/langgraph/threads/${comparison.conversation_id}/state`,
    ...formats.map((format) => `/v1/agent/runs/${arm.run}/stream?format=${format}`),
  ]
}

/** Everything that both arms show: path → text. */
async function walk(user: string, comparison: Json, id: string): Promise<Map<string, string>> {
  const seen = new Map<string, string>()
  for (const arm of [
    { run: comparison.trace_a, message: comparison.response_a_mid },
    { run: comparison.trace_b, message: comparison.response_b_mid },
  ]) {
    for (const path of await pathsOf(arm, comparison, id)) {
      const url = new URL(path, server.polylog.baseUrl)
      url.searchParams.set('userId', user)
      const response = await fetch(url)
      const { status, headers } = response
      const text = await response.text()
      if (status === 200) seen.set(path, `${JSON.stringify([...headers])}${text}`)
      // An arm is exported after the vote only.
      else if (status === 409) assert.match(text, /"code":"export_refused"/, path)
      // 204: nothing runs in the chat, and the answer is empty.
      else assert.ok(status === 204 || status === 404 || status === 400, `${path} answered ${status}`)
    }
  }
  const loaded = await server.call('POST', '/api/load_conversation', {
    body: { client_id: user, conversation_id: comparison.conversation_id },
  })
  seen.set('load_conversation', loaded.text)
  return seen
}

describe('the arms of a comparison', () => {
  it('cannot be distinguished on any GET route before the vote, and can be on the same routes after it', async () => {
    const user = someone()
    await server.script(user, answer('Calm.', tokens.calm), answer('Wild!', tokens.wild))
    const { stream, id } = await server.compareToEnd(user, `Who is who? ${user}`)
    const comparison = await server.comparison(user, id)

    const before = await walk(user, comparison, id)
    before.set('the stream of both', `${JSON.stringify(stream.headers)}${stream.text()}`)

    assert.ok(before.size >= 25, [...before.keys()].join('\n'))
    for (const [path, text] of before) assert.doesNotMatch(text, identity, path)
    const arms = [String(comparison.trace_a), String(comparison.trace_b)]
    for (const run of arms) {
      const { trace } = JSON.parse((await server.call('GET', `/api/trace/${run}`, { user })).text)
      assert.deepEqual(
        [trace.config_id, trace.total_tokens_used, trace.total_duration_ms, trace.status],
        [null, null, null, 'completed'],
      )
      const timeline = (await server.call('GET', `/v1/agent/runs/${run}/timeline`, { user })).body
      const done = timeline.events.find((entry: Json) => entry.event === 'step.done').payload
      assert.deepEqual(['usage' in done, 'durationMs' in done, 'costMicroUsd' in done], [false, false, false])
      assert.equal((await server.call('GET', `/v1/agent/runs/${run}`, { user })).body.usage, null)
    }

    await server.vote(user, id, 'a')

    const open = await walk(user, comparison, id)
    for (const path of [
      ...arms.flatMap((run) => [
        `/api/trace/${run}`,
        `/v1/agent/runs/${run}/timeline`,
        `/v1/agent/runs/${run}/stream`,
        `/v1/agent/runs/${run}/stream?format=vercel-ai`,
        `/v1/agent/runs/${run}/export`,
      ]),
      `/api/ab/comparison/${id}`,
      `/v1/conversations/${comparison.conversation_id}/messages`,
    ]) {
      assert.match(open.get(path) ?? '', identity, path)
    }
    const sideOfCalm = (await server.comparison(user, id)).side_a_config === calm.name ? 0 : 1
    const calmTrace = JSON.parse((await server.call('GET', `/api/trace/${arms[sideOfCalm]}`, { user })).text).trace
    assert.deepEqual([calmTrace.config_id, calmTrace.total_tokens_used], [calm.name, 1_462_003])
    assert.match(open.get(`/v1/agent/runs/${arms[1 - sideOfCalm]}/stream`) ?? '', new RegExp(wild.model))
  })

  it('are hidden while they are under way, and shown as soon as one has failed', async () => {
    const user = someone()
    await server.script(user, hangsAfter('Calm…'), hangsAfter('Wild…'))
    const stream = await server.compare(user, `Under way. ${user}`)
    await until('both arms to speak', () =>
      armFrames(stream.frames).filter(({ json }) => json.type === 'chunk').length === 2 ? true : undefined,
    )
    const runs = [String(stream.headers['x-trace-id-a']), String(stream.headers['x-trace-id-b'])]
    const shown = async () => {
      const texts = await Promise.all(
        runs.flatMap((run) =>
          [`/api/trace/${run}`, `/v1/agent/runs/${run}/timeline`, `/v1/agent/runs/${run}`].map((path) =>
            server.call('GET', path, { user }),
          ),
        ),
      )
      return texts.map(({ text }) => text).join('\n')
    }

    assert.doesNotMatch(await shown(), identity)
    await server.call('POST', '/api/cancel_stream', {
      body: { client_id: user, conversation_id: conversationOf(stream) },
    })
    await stream.ended()

    assert.match(await shown(), /calm-/)
    assert.match(await shown(), /wild-/)
  })

  it('give a reader that comes back before the vote the same bytes after any frame', async () => {
    const user = someone()
    await server.script(user, answer('Calm.', tokens.calm), answer('Wild!', tokens.wild))
    const { id } = await server.compareToEnd(user, `Come back. ${user}`)
    const { trace_a: run } = await server.comparison(user, id)
    const read = async (after: string) =>
      (await server.call('GET', `/v1/agent/runs/${run}/stream?after=${after}`, { user })).text
    const whole = await read('0')

    for (const match of whole.matchAll(/^id: (\S+)$/gm)) {
      const rest = await read(match[1] as string)
      assert.ok(whole.endsWith(rest), `after ${match[1]}`)
      assert.ok(rest === '' || rest.startsWith('id: '), `after ${match[1]}`)
    }
  })
})
