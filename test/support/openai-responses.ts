// The clients of OpenAI in the versions that are tested, and what tests of the Responses API share.

import OpenAi7 from 'openai'
import OpenAi6 from 'openai-6'
import type { ResponseStreamEvent } from 'openai/resources/responses/responses'

/** The two differ only in details that these tests do not use. */
export const openAiVersions = [
  ['openai 7', OpenAi7],
  ['openai 6', OpenAi6 as unknown as typeof OpenAi7],
] as const

export function openAiClient(version: typeof OpenAi7, baseUrl: string, user: string): OpenAi7 {
  return new version({ baseURL: `${baseUrl}/v1`, apiKey: 'not needed', defaultQuery: { userId: user } })
}

export const model = 'chat_conversation'

export const weather = {
  type: 'function' as const,
  name: 'weather',
  description: 'The weather in a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  strict: false,
}

export async function eventsOf(stream: AsyncIterable<ResponseStreamEvent>): Promise<ResponseStreamEvent[]> {
  const events: ResponseStreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

export function functionCalls(response: OpenAi7.Responses.Response) {
  return response.output.filter((item) => item.type === 'function_call')
}
