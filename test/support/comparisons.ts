// A server with two model configurations, and a client of /api/ab.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Action } from './fake-provider.ts'
import {
  type Answer,
  type Json,
  startTestServer,
  startTestServerProcess,
  type TestServer,
  type TestServerProcess,
} from './test-server.ts'
import { openStream, type SseFrame, type SseStream } from './sse.ts'

/** Names and models of the two configurations. The client must not see any of them before the vote. */
export const calm = { name: 'calm-config', model: 'calm-model' }
export const wild = { name: 'wild-config', model: 'wild-model' }

export const arms = ['a', 'b'] as const

export type ArmFrame = { id: string; json: Json & { type: string; arm: 'a' | 'b' } }

export type AbTestServer<Server extends TestServer = TestServer> = Omit<Server, 'restart'> & {
  compare(user: string, body: string | Json, headers?: Record<string, string>): Promise<SseStream>
  /** The same, read to its end. */
  compareToEnd(
    user: string,
    body: string | Json,
  ): Promise<{ stream: SseStream; frames: ArmFrame[]; id: string; conversationId: string }>
  attach(user: string, id: string, lastEventId?: string): Promise<SseStream>
  vote(user: string, id: string, preference: string, more?: Json): Promise<Answer>
  comparison(user: string, id: string): Promise<Json>
  /** The comparison of this conversation that waits for a vote. */
  pendingComparison(user: string, conversationId: string): Promise<Json | null>
  /** The messages of a conversation, by /api/load_conversation. */
  load(user: string, conversationId: string): Promise<{ sender: string; content: string; message_id: string }[]>
  /** Only their texts. */
  contents(user: string, conversationId: string): Promise<string[]>
  /** Answers of both models to the question with `marker`. */
  script(marker: string, calmly: Action[], wildly: Action[]): Promise<void>
  restart(environment?: Record<string, string>): Promise<AbTestServer>
}

export function startAbTestServer(): Promise<AbTestServer> {
  return startComparing(startTestServer)
}

/** One that can be killed. */
export function startAbTestServerProcess(): Promise<AbTestServer<TestServerProcess>> {
  return startComparing(startTestServerProcess)
}

async function startComparing<Server extends TestServer>(
  start: (environment: Record<string, string>) => Promise<Server>,
): Promise<AbTestServer<Server>> {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-configs-'))
  const file = join(folder, 'configs.json')
  const configs = [
    { name: 'default' },
    { name: calm.name, model: `openai/${calm.model}`, temperature: 0 },
    { name: wild.name, model: `openai/${wild.model}`, systemPrompt: 'Be wild.' },
  ]
  writeFileSync(file, JSON.stringify(configs))
  const server = abTestServerOf(await start({ POLYLOG_MODEL_CONFIGS: file }))
  return {
    ...server,
    async close() {
      await server.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function abTestServerOf<Server extends TestServer>(server: Server): AbTestServer<Server> {
  const base = server.polylog.baseUrl
  const ab: AbTestServer<Server> = {
    ...server,
    async compare(user, body, headers = {}) {
      const fields = typeof body === 'string' ? { message: body } : body
      const whole = { client_id: user, config_a: calm.name, config_b: wild.name, ...fields }
      return await openStream(`${base}/api/ab/compare`, { method: 'POST', body: whole, headers })
    },
    async compareToEnd(user, body) {
      const stream = await ab.compare(user, body)
      await stream.ended()
      assert.equal(stream.status, 200, stream.text())
      return { stream, frames: armFrames(stream.frames), id: idOf(stream), conversationId: conversationOf(stream) }
    },
    attach: (user, id, lastEventId) =>
      openStream(`${base}/api/ab/${id}/stream?client_id=${encodeURIComponent(user)}`, {
        headers: lastEventId === undefined ? {} : { 'last-event-id': lastEventId },
      }),
    vote: (user, id, preference, more = {}) =>
      server.call('POST', '/api/ab/preference', { body: { client_id: user, comparison_id: id, preference, ...more } }),
    async comparison(user, id) {
      const { status, body, text } = await server.call(
        'GET',
        `/api/ab/comparison/${id}?client_id=${encodeURIComponent(user)}`,
      )
      assert.equal(status, 200, text)
      return body.comparison
    },
    async pendingComparison(user, conversationId) {
      const { status, body, text } = await server.call(
        'GET',
        `/api/ab/pending?client_id=${user}&conversation_id=${conversationId}`,
      )
      assert.equal(status, 200, text)
      return body.comparison
    },
    async load(user, conversationId) {
      const { status, body, text } = await server.call('POST', '/api/load_conversation', {
        body: { client_id: user, conversation_id: conversationId },
      })
      assert.equal(status, 200, text)
      return body.messages
    },
    contents: async (user, conversationId) => (await ab.load(user, conversationId)).map((message) => message.content),
    async script(marker, calmly, wildly) {
      await server.provider.script([calmly], marker, calm.model)
      await server.provider.script([wildly], marker, wild.model)
    },
    restart: async (environment) => abTestServerOf(await server.restart(environment)),
  }
  return ab
}

export function armFrames(frames: readonly SseFrame[]): ArmFrame[] {
  return frames.map((frame) => ({ id: frame.id as string, json: frame.json as unknown as ArmFrame['json'] }))
}

export function textOfArm(frames: readonly ArmFrame[], arm: 'a' | 'b'): string {
  return frames
    .filter(({ json }) => json.arm === arm && json.type === 'chunk')
    .map(({ json }) => json.content as string)
    .join('')
}

/** The side on which a configuration was shown. The server reveals it after the vote. */
export function sideOf(comparison: Json, config: string): 'a' | 'b' {
  return comparison.side_a_config === config ? 'a' : 'b'
}

/** A model answer that stalls after `text` until the provider is released, and then ends normally. */
export const pausesAfter = (text: string): Action[] => [{ text }, { stall: true }, { finish: 'stop' }]

export function idOf(stream: Pick<SseStream, 'headers'>): string {
  const id = stream.headers['x-comparison-id']
  assert.equal(typeof id, 'string')
  return id as string
}

export function conversationOf(stream: Pick<SseStream, 'headers'>): string {
  const id = stream.headers['x-conversation-id']
  assert.equal(typeof id, 'string')
  return decodeURIComponent(id as string)
}
