// A model provider whose answer depends on the messages alone, so that a server that was killed
// and asks again gets the same answer. OpenAI's chat-completions wire.
//
// Words in the user's message select the answer:
//   mark=<name>            names the run; it is part of words and arguments, so that the runs differ
//   words=<n>              words per step (3)
//   tools=<a>,<b>,…        the tools that the steps before the last one call, one each
//   toolms=<ms>            how long the tools `pay`, `stamp` and `audit` of the ledger take
//   json                   the last step answers {"done":true} instead of words
//   message-bob            instead of the above, three fixed steps: text with a clock and a note; a message to Bob; text
//   pause=<ms>             waits between two chunks
//   hold=<step>:<chunks>   when this step is asked for the first time, sends nothing after so many chunks of its text
//   hold-always            the same every time
//   vary                   a step that is asked again gets other words
//
// GET /control/asked?mark=<name> lists the numbers of the steps that were asked, in order.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

type Message = { role: string; content: unknown; tool_calls?: unknown[] }
type Step = { text: string[]; calls: { name: string; arguments: object }[] }

const asked = new Map<string, number[]>()

const server = createServer((request, response) => {
  void handle(request, response).catch(() => response.destroy())
})
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
})
process.stdin.on('end', () => process.exit(0)).resume()

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://fake')
  if (url.pathname === '/control/asked') {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(asked.get(url.searchParams.get('mark') ?? '') ?? []))
    return
  }
  let body = ''
  for await (const piece of request.setEncoding('utf8')) body += piece
  const { messages } = JSON.parse(body) as { messages: Message[] }
  const turn = messages.findLastIndex((message) => message.role === 'user')
  const prompt = textOf(messages[turn]?.content)
  const number = 1 + messages.slice(turn).filter((message) => (message.tool_calls?.length ?? 0) > 0).length
  await answer(prompt, number, response)
}

async function answer(prompt: string, number: number, response: ServerResponse): Promise<void> {
  const mark = valueOf(prompt, 'mark') ?? 'none'
  const before = asked.get(mark) ?? []
  const again = before.includes(number)
  asked.set(mark, [...before, number])

  const { text, calls } = has(prompt, 'message-bob') ? messageToBob(number, mark) : stepOf(prompt, number, mark)
  const varies = again && has(prompt, 'vary') && text.length > 0 && !text[0]?.startsWith('{')
  const chunks = varies ? ['In other ', 'words: ', ...text] : text
  const [, holdStep, holdChunks] = /\bhold=(\d+):(\d+)/.exec(prompt) ?? []
  const holds = Number(holdStep) === number && (!again || has(prompt, 'hold-always'))
  const pauseMs = Number(valueOf(prompt, 'pause') ?? 0)

  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
  for (const [index, content] of chunks.entries()) {
    if (response.destroyed) return
    if (holds && index === Number(holdChunks)) return
    send(response, { content })
    if (pauseMs > 0) await wait(pauseMs)
  }
  // `hold` with the number of all chunks: the text is complete, and the end of the answer is missing.
  if (holds) return
  const toolCalls = calls.map((call, index) => ({
    index,
    id: `call_${number}_${index}`,
    type: 'function',
    function: { name: call.name, arguments: JSON.stringify(call.arguments) },
  }))
  if (toolCalls.length > 0) send(response, { tool_calls: toolCalls })
  send(response, {}, toolCalls.length > 0 ? 'tool_calls' : 'stop')
  response.end('data: [DONE]\n\n')
}

function messageToBob(number: number, mark: string): Step {
  if (number === 1) {
    const calls = [
      { name: 'current_time', arguments: {} },
      { name: 'remember_note', arguments: { text: `note of ${mark}` } },
    ]
    return { text: ['Let me ', 'look ', 'first.'], calls }
  }
  if (number === 2) {
    const message = { recipientId: 'bob', message: `hello of ${mark}` }
    return { text: [], calls: [{ name: 'send_feishu_message', arguments: message }] }
  }
  return { text: ['All ', 'is ', 'sent.'], calls: [] }
}

function stepOf(prompt: string, number: number, mark: string): Step {
  const tool = (valueOf(prompt, 'tools') ?? '').split(',').filter(Boolean)[number - 1]
  if (tool === undefined && has(prompt, 'json')) return { text: ['{"done"', ':', 'true}'], calls: [] }
  const words = Number(valueOf(prompt, 'words') ?? 3)
  return {
    text: Array.from({ length: words }, (_, index) => `${mark}-${number}-${index} `),
    calls: tool === undefined ? [] : [{ name: tool, arguments: argumentsOf(tool, mark, number, prompt) }],
  }
}

function argumentsOf(tool: string, mark: string, step: number, prompt: string): object {
  const ms = valueOf(prompt, 'toolms')
  const takes = ms === undefined ? {} : { ms: Number(ms) }
  switch (tool) {
    case 'pay':
      return { payment: `${mark}-${step}`, ...takes }
    case 'stamp':
      return { entry: `${mark}-${step}`, ...takes }
    case 'audit':
      return takes
    case 'fs_write':
      return { path: `${mark}.txt`, content: `step ${step} of ${mark}` }
    case 'ask_user':
      return { question: `How should ${mark} go on after step ${step}?` }
    case 'remember_note':
      return { text: `${mark}-${step}` }
    default:
      return {}
  }
}

function valueOf(prompt: string, name: string): string | undefined {
  return new RegExp(`\\b${name}=([\\w,.-]+)`).exec(prompt)?.[1]
}

function has(prompt: string, word: string): boolean {
  return new RegExp(`(?<![\\w=-])${word}(?![\\w-])`).test(prompt)
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((part: { text?: string }) => part.text ?? '').join('') : ''
}

function send(response: ServerResponse, delta: object, finish: string | null = null): void {
  const chunk = {
    id: 'chatcmpl-repeatable',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'repeatable',
    choices: [{ index: 0, delta, finish_reason: finish }],
  }
  response.write(`data: ${JSON.stringify(chunk)}\n\n`)
}
