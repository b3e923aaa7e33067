// The client of the LangGraph SDK with the login of a user, and what tests read from its streams.

import { Client } from '@langchain/langgraph-sdk'
import { SignJWT } from 'jose'
import type { Json } from './test-server.ts'

/** For POLYLOG_JWT_SECRET. */
export const langGraphSecret = 'a secret that is long enough for a test'

export async function bearer(user: string): Promise<Record<string, string>> {
  const token = await new SignJWT({ sub: user })
    .setProtectedHeader({ alg: 'HS256' })
    .setExpirationTime(4_000_000_000)
    .sign(new TextEncoder().encode(langGraphSecret))
  return { authorization: `Bearer ${token}` }
}

export async function langGraphClient(user: string, baseUrl: string): Promise<Client> {
  return new Client({
    apiUrl: `${baseUrl}/langgraph`,
    apiKey: null,
    defaultHeaders: await bearer(user),
    callerOptions: { maxRetries: 0 },
  })
}

export const human = (content: unknown) => ({ messages: [{ type: 'human', content }] })

export type LangGraphEvent = { id?: string; event: string; data: Json }

export async function eventsOf(stream: AsyncIterable<unknown>): Promise<LangGraphEvent[]> {
  return (await Array.fromAsync(stream)) as LangGraphEvent[]
}

export const named = (events: readonly LangGraphEvent[], name: string): Json[] =>
  events.filter(({ event }) => event === name).map(({ data }) => data)

/** The text of the chunks of a stream, by message. */
export function textShown(events: readonly LangGraphEvent[]): string[] {
  const texts = new Map<string, string>()
  for (const data of named(events, 'messages')) {
    const [message] = data as unknown as Json[]
    if (message?.type === 'AIMessageChunk')
      texts.set(message.id, (texts.get(message.id) ?? '') + String(message.content))
  }
  return [...texts.values()].filter((text) => text !== '')
}

export const contents = (values: Json) => (values.messages as Json[]).map(({ type, content }) => `${type}: ${content}`)
