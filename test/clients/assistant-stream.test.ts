// `assistant-stream`, the reader of assistant-ui: an independent implementation of both wires of the AI
// SDK. It reads every scenario, and a real server over a socket.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type AssistantMessage,
  AssistantMessageAccumulator,
  DataStreamDecoder,
  UIMessageStreamDecoder,
} from 'assistant-stream'
import type { Dialect } from '../../src/dialects/dialect.ts'
import { uiMessageDialect } from '../../src/dialects/ui-message/ui-message.ts'
import { vercelDataDialect } from '../../src/dialects/vercel-data/vercel-data.ts'
import { framesOf, textOf } from '../contracts/dialect-contract.ts'
import type { Scenario } from '../scenarios/journal-builder.ts'
import { scenarios } from '../scenarios/scenarios.ts'
import { calls, says, sharedServerProcess, someone } from '../support/test-server.ts'

type Wire = {
  name: string
  /** The bytes of a whole run, also over the decisions of a person. */
  bytesOf(scenario: Scenario): string
  decoder(): DataStreamDecoder | UIMessageStreamDecoder
  post(user: string, text: string): { path: string; body: object }
}

const clientTools = [{ name: 'locate', inputSchema: { type: 'object', properties: {} } }]
const allFrames = <State>(dialect: Dialect<State>, scenario: Scenario) =>
  framesOf(dialect, scenario)
    .map(({ text }) => text)
    .join('')

const wires: Wire[] = [
  {
    name: 'ui-message',
    bytesOf: (scenario) => textOf(uiMessageDialect({ decidedUpTo: Number.MAX_SAFE_INTEGER }), scenario),
    decoder: () => new UIMessageStreamDecoder(),
    post: (user, text) => ({
      path: '/v1/ui/chat',
      body: {
        id: `chat-${user}`,
        userId: user,
        tools: clientTools,
        messages: [{ role: 'user', parts: [{ type: 'text', text }] }],
      },
    }),
  },
  {
    name: 'vercel-ai',
    bytesOf: (scenario) => allFrames(vercelDataDialect, scenario),
    decoder: () => new DataStreamDecoder(),
    post: (user, text) => ({
      path: '/v1/agent/chat?format=vercel-ai',
      body: { id: `chat-${user}`, userId: user, clientTools, messages: [{ role: 'user', content: text }] },
    }),
  },
]

async function read(bytes: ReadableStream<Uint8Array>, wire: Wire): Promise<AssistantMessage> {
  let message: AssistantMessage | undefined
  const messages = bytes
    .pipeThrough(wire.decoder() as unknown as ReadableWritablePair<never, Uint8Array>)
    .pipeThrough(new AssistantMessageAccumulator())
  for await (const next of messages) message = next
  assert.ok(message !== undefined)
  return message
}

const textIn = ({ parts }: AssistantMessage) =>
  parts.flatMap((part) => (part.type === 'text' ? [part.text.trim()] : [])).join(' ')

/** The text of a run that was shown, and the results of its calls. */
function expectedOf({ events }: Scenario) {
  const texts = new Map<string, string>()
  const outputs: string[] = []
  for (const { type, data } of events) {
    if (type === 'text.delta') texts.set(data.messageId, (texts.get(data.messageId) ?? '') + data.text)
    if (type === 'tool.done' && data.outcome === 'succeeded' && !data.truncated)
      outputs.push(JSON.stringify(data.output))
  }
  return { text: [...texts.values()].map((text) => text.trim()).join(' '), outputs }
}

for (const wire of wires) {
  describe(`assistant-stream on ${wire.name}`, () => {
    for (const scenario of scenarios) {
      test(`reads “${scenario.name}”`, async () => {
        const body = new Response(wire.bytesOf(scenario)).body
        assert.ok(body !== null)
        const message = await read(body, wire)

        const { text, outputs } = expectedOf(scenario)
        // The reader joins texts of a message that follow each other.
        assert.equal(textIn(message).replaceAll(/\s+/g, ''), text.replaceAll(/\s+/g, ''))
        const results = message.parts.flatMap((part) =>
          part.type === 'tool-call' && part.result !== undefined ? [JSON.stringify(part.result)] : [],
        )
        for (const output of outputs) assert.ok(results.includes(output), `${output} in ${results.join(', ')}`)
      })
    }
  })
}

describe('assistant-stream on a real server', () => {
  const server = sharedServerProcess()

  for (const wire of wires) {
    test(`${wire.name}: sees that a tool of the client is awaited, and an answer without one`, async () => {
      const user = someone()
      await server.provider.script([calls(['locate', {}, 'call_a']), says('Hi.')], user)
      const ask = async (text: string) => {
        const { path, body } = wire.post(user, text)
        const response = await fetch(`${server.polylog.baseUrl}${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ ...body, whenBusy: 'cancel' }),
        })
        assert.ok(response.body !== null)
        return await read(response.body, wire)
      }

      const waiting = await ask(user)
      const answered = await ask(`${user} again`)

      assert.deepEqual(waiting.status, { type: 'requires-action', reason: 'tool-calls' })
      assert.equal(textIn(answered), 'Hi.')
      assert.equal(answered.status.type, 'complete')
    })
  }
})
