// A model provider that tells one story, and tells it the same way whenever it is
// asked: what it says depends on the messages alone, so a server that was killed
// and asks again gets the same answer. OpenAI's chat-completions wire.
//
// The user's message steers it:
//   story=<name>           whose requests these are
//   hold=<step>:<pieces>   the first time that this step is asked, go silent after so many pieces of its text
//   hold-always            … every time
//   vary                   a step that is asked again is told in other words
//
// GET /control/asked?story=<name> lists the steps that were asked, in their order.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

type Message = { role: string; content: unknown; tool_calls?: unknown[] }
type Step = { text: string[]; calls: { name: string; arguments: object }[] }

const asked = new Map<string, number[]>()

function stepOf(number: number, story: string): Step {
  if (number === 1) {
    const calls = [
      { name: 'current_time', arguments: {} },
      { name: 'remember_note', arguments: { text: `note of ${story}` } },
    ]
    return { text: ['Let me ', 'look ', 'first.'], calls }
  }
  if (number === 2) {
    return {
      text: [],
      calls: [{ name: 'send_feishu_message', arguments: { recipientId: 'bob', message: `hello of ${story}` } }],
    }
  }
  return { text: ['All ', 'is ', 'sent.'], calls: [] }
}

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
    response.end(JSON.stringify(asked.get(url.searchParams.get('story') ?? '') ?? []))
    return
  }
  let body = ''
  for await (const piece of request.setEncoding('utf8')) body += piece
  tell((JSON.parse(body) as { messages: Message[] }).messages, response)
}

function tell(messages: Message[], response: ServerResponse): void {
  const turn = messages.findLastIndex((message) => message.role === 'user')
  const prompt = String(messages[turn]?.content)
  const story = /story=(\S+)/.exec(prompt)?.[1] ?? 'none'
  const number = 1 + messages.slice(turn).filter((message) => (message.tool_calls?.length ?? 0) > 0).length
  const before = asked.get(story) ?? []
  const again = before.includes(number)
  asked.set(story, [...before, number])

  const { text, calls } = stepOf(number, story)
  const told = again && prompt.includes('vary') ? ['In other ', 'words: ', ...text] : text
  const [, holdStep, holdPieces] = /hold=(\d+):(\d+)/.exec(prompt) ?? []
  const holds = Number(holdStep) === number && (!again || prompt.includes('hold-always'))

  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
  for (const [index, content] of told.entries()) {
    if (holds && index === Number(holdPieces)) return
    send(response, { content })
  }
  // Silence after the last word, too: everything is said, and the end does not come.
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

function send(response: ServerResponse, delta: object, finish: string | null = null): void {
  const chunk = {
    id: 'chatcmpl-story',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'story',
    choices: [{ index: 0, delta, finish_reason: finish }],
  }
  response.write(`data: ${JSON.stringify(chunk)}\n\n`)
}
