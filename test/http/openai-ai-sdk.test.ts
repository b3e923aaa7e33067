// The OpenAI APIs as a provider of the AI SDK, which speaks them with code of its own: it sends references
// to items of earlier responses, and the results of tools with the whole history.

import { createOpenAI } from '@ai-sdk/openai'
import { generateText, isStepCount, type ModelMessage, streamText, tool } from 'ai'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { calls, type Json, says, sharedServerProcess, someone } from '../support/test-server.ts'

const server = sharedServerProcess()

/** The user is part of the address, because the provider has no other place for it. */
function providerOf(user: string) {
  const asUser: typeof fetch = (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input)
    url.searchParams.set('userId', user)
    return fetch(url, init)
  }
  return createOpenAI({ baseURL: `${server.polylog.baseUrl}/v1`, apiKey: 'not needed', fetch: asUser })
}

const weather = tool({
  description: 'The weather in a city.',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `4 degrees in ${city}`,
})

const runsOf = async (user: string) => (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]

for (const api of ['responses', 'chat'] as const) {
  test(`a tool of the program and a second turn, with ${api}`, async () => {
    const user = someone()
    const model = providerOf(user)[api]('chat_conversation')
    await server.provider.script([calls(['weather', { city: 'Oslo' }]), says('It is cold.'), says('Yes, cold.')], user)
    const messages: ModelMessage[] = [{ role: 'user', content: user }]

    const first = await generateText({ model, messages, tools: { weather }, stopWhen: isStepCount(3) })
    messages.push(...first.response.messages, { role: 'user', content: `${user} Sure?` })
    const second = streamText({ model, messages, tools: { weather } })

    assert.equal(first.text, 'It is cold.')
    assert.equal(await second.text, 'Yes, cold.')
    const asked = (await server.asked(user)).map(({ body }) => JSON.stringify(body.messages))
    assert.match(asked[1] ?? '', /4 degrees in Oslo/)
    assert.match(asked[2] ?? '', /It is cold\..*Sure\?/)
    assert.equal((await runsOf(user)).length, 2)
  })
}
