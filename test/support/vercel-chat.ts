// The real client of the data stream wire, as its `useChat` hook uses it, and a
// server that replays bytes to it over a socket in pieces of any size.

import {
  callChatApi,
  extractMaxToolInvocationStep,
  type JSONValue,
  shouldResubmitMessages,
  type UIMessage,
} from '@ai-sdk/ui-utils'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Pieces } from './byte-pieces.ts'

export type Chat = { message: UIMessage | undefined; data: JSONValue[]; finish: string; posts: number; usage: unknown }

/** Does what the hook does: posts, reads the stream, and posts again as long as the client asks for another step. */
export async function chat(url: string, request: typeof fetch = fetch): Promise<Chat> {
  const user: UIMessage = { id: 'user-1', role: 'user', content: 'hi', parts: [{ type: 'text', text: 'hi' }] }
  let messages = [user]
  const result: Chat = { message: undefined, data: [], finish: 'nothing', posts: 0, usage: undefined }
  for (;;) {
    const last = messages.at(-1)
    const originalMaxToolInvocationStep = extractMaxToolInvocationStep(last?.toolInvocations)
    const originalMessageCount = messages.length
    result.posts += 1
    let ids = 0
    try {
      await callChatApi({
        api: url,
        body: { id: 'conversation-1', messages },
        streamProtocol: 'data',
        credentials: undefined,
        headers: undefined,
        abortController: undefined,
        restoreMessagesOnFailure: () => {},
        onResponse: undefined,
        onUpdate({ message, data, replaceLastMessage }) {
          result.message = message
          result.data = data ?? []
          messages = [
            ...(replaceLastMessage ? messages.slice(0, -1) : messages.slice(0, originalMessageCount)),
            message,
          ]
        },
        onFinish(_message, { finishReason, usage }) {
          result.finish = finishReason
          result.usage = usage
        },
        onToolCall: undefined,
        generateId: () => `client-${++ids}`,
        fetch: request,
        lastMessage: last,
      })
    } catch (error) {
      result.finish = String(error)
    }
    const again = shouldResubmitMessages({ originalMaxToolInvocationStep, originalMessageCount, maxSteps: 5, messages })
    if (!again || result.posts === 3) return result
  }
}

/** Answers every POST with `pieces`, each in a write of its own. */
export class ReplayServer {
  pieces: Pieces = []
  private readonly headers: Readonly<Record<string, string>>
  posts = 0
  private readonly server = createServer((request, response) => {
    if (request.method === 'POST') this.posts += 1
    request.resume()
    void this.replay(response)
  })

  constructor(headers: Readonly<Record<string, string>>) {
    this.headers = headers
  }

  async listen(): Promise<void> {
    await new Promise<void>((listening) => this.server.listen(0, '127.0.0.1', listening))
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/v1/agent/chat?format=vercel-ai`
  }

  close(): void {
    this.server.close()
    this.server.closeAllConnections()
  }

  private async replay(response: ServerResponse): Promise<void> {
    response.writeHead(200, { ...this.headers })
    response.socket?.setNoDelay(true)
    for (const piece of this.pieces) {
      await new Promise<void>((written) => response.write(piece, () => written()))
      // The reader is in this process: it gets its turn before the next piece comes.
      await nextTurn()
    }
    response.end()
  }
}
