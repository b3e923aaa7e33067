// A server that is killed while a response of the Responses API is written in the background. The real
// clients of OpenAI go on after their last sequence_number, and get what they would have got.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import OpenAi7 from 'openai'
import OpenAi6 from 'openai-6'
import type { ResponseStreamEvent } from 'openai/resources/responses/responses'
import { calls, hangsAfter, says, someone, startTestServerProcess, type TestServer } from '../support/test-server.ts'

const model = 'chat_conversation'
const weather = { type: 'function' as const, name: 'weather', parameters: { type: 'object' }, strict: false }

for (const [name, version] of [
  ['openai 7', OpenAi7],
  ['openai 6', OpenAi6 as unknown as typeof OpenAi7],
] as const) {
  const clientOf = ({ polylog }: TestServer, user: string) =>
    new version({ baseURL: `${polylog.baseUrl}/v1`, apiKey: 'not needed', defaultQuery: { userId: user } })

  test(`a response in the background survives kill -9, and its numbers go on (${name})`, async () => {
    let server = await startTestServerProcess()
    try {
      const user = someone()
      await server.provider.script([hangsAfter('Once ', 'upon '), says('Once ', 'upon ', 'a time.')], user)
      const { id } = await clientOf(server, user).responses.create({ model, input: user, background: true })
      const before: ResponseStreamEvent[] = []
      for await (const event of await clientOf(server, user).responses.retrieve(id, { stream: true })) {
        before.push(event)
        if (event.type === 'response.output_text.delta' && event.delta === 'upon ') break
      }
      await server.polylog.kill()
      server = await server.restartProcess()

      const client = clientOf(server, user)
      const starting_after = before.length - 1
      const rest: ResponseStreamEvent[] = []
      for await (const event of await client.responses.retrieve(id, { stream: true, starting_after })) rest.push(event)

      const numbers = [...before, ...rest].map(({ sequence_number }) => sequence_number)
      assert.deepEqual(
        numbers,
        numbers.map((_, index) => index),
      )
      const end = rest.at(-1)
      assert.ok(end?.type === 'response.completed')
      assert.equal((await client.responses.retrieve(id)).output_text, 'Once upon a time.')
      // The helper of the client puts the whole response together from the replay.
      assert.equal(
        (await client.responses.stream({ response_id: id }).finalResponse()).output_text,
        'Once upon a time.',
      )
    } finally {
      await server.close()
    }
  })

  test(`a call of the client’s function waits over a kill -9 (${name})`, async () => {
    let server = await startTestServerProcess()
    try {
      const user = someone()
      await server.provider.script([calls(['weather', { city: 'Oslo' }]), says('Cold.')], user)
      const asked = await clientOf(server, user).responses.create({ model, input: user, tools: [weather] })
      const call = asked.output.find((item) => item.type === 'function_call')
      assert.ok(call !== undefined, JSON.stringify(asked))
      await server.polylog.kill()
      server = await server.restartProcess()

      const answer = await clientOf(server, user).responses.create({
        model,
        previous_response_id: asked.id,
        input: [{ type: 'function_call_output', call_id: call.call_id, output: '4 degrees' }],
      })

      assert.equal(answer.output_text, 'Cold.')
    } finally {
      await server.close()
    }
  })
}
