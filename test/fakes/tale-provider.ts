// A model provider for the torture test. What it says depends on the messages
// alone, so a server that was killed and asks again gets the same answer. OpenAI's
// chat-completions wire, one word a chunk, with a pause between words.
//
// The user's message steers it:
//   tale=<id>          marks the words, so that answers of different runs never look alike
//   words=<n>          words a step
//   pause=<ms>         between two words
//   tools=<a>,<b>,…    the tools that the steps before the last one call, one each
//   json               the last step says {"done":true} instead of words
//   vary               a step that is asked again is told in other words

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

type Message = { role: string; content: unknown; tool_calls?: unknown[] }

const asked = new Set<string>()

const server = createServer((request, response) => {
  void handle(request, response).catch(() => response.destroy())
})
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
})
process.stdin.on('end', () => process.exit(0)).resume()

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body = ''
  for await (const piece of request.setEncoding('utf8')) body += piece
  const { messages } = JSON.parse(body) as { messages: Message[] }
  const turn = messages.findLastIndex((message) => message.role === 'user')
  const prompt = textOf(messages[turn]?.content)
  const step = 1 + messages.slice(turn).filter((message) => (message.tool_calls?.length ?? 0) > 0).length
  await tell(prompt, step, response)
}

async function tell(prompt: string, step: number, response: ServerResponse): Promise<void> {
  const tale = valueOf(prompt, 'tale') ?? 'none'
  const tools = (valueOf(prompt, 'tools') ?? '').split(',').filter(Boolean)
  const tool = tools[step - 1]
  const again = asked.has(`${tale}:${step}`)
  asked.add(`${tale}:${step}`)
  const words =
    tool === undefined && /\bjson\b/.test(prompt)
      ? ['{"done"', ':', 'true}']
      : Array.from({ length: Number(valueOf(prompt, 'words') ?? 3) }, (_, index) => `${tale}-${step}-${index} `)
  if (again && /\bvary\b/.test(prompt) && tool === undefined && !words[0]?.startsWith('{')) words.unshift('Again: ')

  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
  const pauseMs = Number(valueOf(prompt, 'pause') ?? 0)
  for (const content of words) {
    if (response.destroyed) return
    send(response, { content })
    if (pauseMs > 0) await wait(pauseMs)
  }
  if (tool !== undefined) {
    send(response, {
      tool_calls: [
        {
          index: 0,
          id: `call_${step}`,
          type: 'function',
          function: { name: tool, arguments: JSON.stringify(argumentsOf(tool, tale, step)) },
        },
      ],
    })
  }
  send(response, {}, tool === undefined ? 'stop' : 'tool_calls')
  response.end('data: [DONE]\n\n')
}

function argumentsOf(tool: string, tale: string, step: number): object {
  switch (tool) {
    case 'pay':
      return { payment: `${tale}-${step}` }
    case 'fs_write':
      return { path: `${tale}.txt`, content: `step ${step} of ${tale}` }
    case 'ask_user':
      return { question: `How should ${tale} go on after step ${step}?` }
    case 'remember_note':
      return { text: `${tale}-${step}` }
    default:
      return {}
  }
}

function valueOf(prompt: string, name: string): string | undefined {
  return new RegExp(`\\b${name}=([\\w,.-]+)`).exec(prompt)?.[1]
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((part: { text?: string }) => part.text ?? '').join('') : ''
}

function send(response: ServerResponse, delta: object, finish: string | null = null): void {
  const chunk = {
    id: 'chatcmpl-tale',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'tale',
    choices: [{ index: 0, delta, finish_reason: finish }],
  }
  response.write(`data: ${JSON.stringify(chunk)}\n\n`)
}
