// A remote agent in plain Node, for trying out: it looks up the weather, and before it sends a
// warning it stops and asks. Use LangGraph, Mastra, Pydantic AI or another framework for a real one.
//
//   WEATHER_AGENT_AUTH="Bearer secret" npx node examples/remote-agent/weather-agent.ts

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

type Input = {
  threadId: string
  runId: string
  messages: { role: string; content?: string }[]
  resume?: { payload?: { approved?: boolean } }[]
}
type Say = (type: string, fields?: object) => void

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body = ''
  for await (const chunk of request) body += String(chunk)
  if (request.headers.authorization !== process.env.WEATHER_AGENT_AUTH) {
    response.writeHead(401).end('the Authorization header is wrong')
    return
  }
  const input = JSON.parse(body) as Input
  const { threadId, runId } = input
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const say: Say = (type, fields = {}) => response.write(`data: ${JSON.stringify({ type, ...fields })}\n\n`)
  say('RUN_STARTED', { threadId, runId })
  say('RUN_FINISHED', { threadId, runId, outcome: answer(input, say) })
  response.end()
}

/** Returns how the run ends. */
function answer({ messages, resume }: Input, say: Say): object {
  if (resume !== undefined) {
    const approved = resume[0]?.payload?.approved === true
    say('TOOL_CALL_RESULT', { messageId: 'r', toolCallId: 'warn-1', content: approved ? 'sent' : 'not sent' })
    say('TEXT_MESSAGE_CHUNK', { messageId: 'm', delta: approved ? 'Everybody is warned.' : 'I told nobody.' })
    return { type: 'success' }
  }
  const asked = messages.findLast(({ role }) => role === 'user')?.content ?? ''
  say('TEXT_MESSAGE_CHUNK', { messageId: 'm', delta: 'A storm is coming.' })
  if (!asked.includes('warn')) return { type: 'success' }
  say('TOOL_CALL_CHUNK', { toolCallId: 'warn-1', toolCallName: 'send_warning', delta: '{"to":"everybody"}' })
  const message = 'Send a storm warning to everybody'
  return { type: 'interrupt', interrupts: [{ id: 'warn', reason: 'tool_call', toolCallId: 'warn-1', message }] }
}

const server = createServer((request, response) => void handle(request, response))
server.listen(Number(process.env.PORT ?? 8123), '127.0.0.1', () => console.log('The weather agent is ready.'))
