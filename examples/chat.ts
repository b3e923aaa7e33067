// A chat client with fetch and eventsource-parser. It prints the answer while it streams,
// asks you before a tool that needs consent runs, and if the connection is lost, it
// reconnects with Last-Event-ID and continues at the same place.
//
//   npx node examples/chat.ts "remember that the door code is 4711"

import { createInterface } from 'node:readline/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { createParser, type EventSourceMessage } from 'eventsource-parser'

const server = process.env.POLYLOG_URL ?? 'http://127.0.0.1:3000'
const login = process.env.POLYLOG_TOKEN === undefined ? {} : { authorization: `Bearer ${process.env.POLYLOG_TOKEN}` }
const body = JSON.stringify({ input: process.argv[2] ?? 'what time is it', agentId: process.env.AGENT })
// With the key, a POST whose answer was lost can be sent again: it finds its run and starts no second one.
const key = { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() }
let run: string | null = null
let lastId = ''
let over = false

for (let tries = 0; !over && tries < 60; tries += 1) {
  try {
    const response: Response = await (run === null
      ? fetch(`${server}/v1/agent/chat`, { method: 'POST', body, headers: { ...login, ...key } })
      : fetch(`${server}/v1/agent/runs/${run}/stream`, { headers: { ...login, 'last-event-id': lastId } }))
    if (response.body === null) break
    if (!response.ok) console.error(await response.text())
    if (response.status >= 400 && response.status < 500) break
    run = response.headers.get('x-run-id') ?? run
    const frames: EventSourceMessage[] = []
    const parser = createParser({ onEvent: (frame) => frames.push(frame) })
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      parser.feed(text)
      for (const frame of frames.splice(0)) await show(frame)
    }
  } catch {
    console.error('(the server is not there; trying again)')
  }
  if (!over) await sleep(500)
}
process.exitCode = over ? 0 : 1

async function show({ id, event, data: json }: EventSourceMessage): Promise<void> {
  const { data } = JSON.parse(json) as { data: Record<string, string> }
  if (event === 'agent.delta') process.stdout.write(data.delta ?? '')
  if (event === 'agent.message') process.stdout.write('\n')
  if (event === 'tool.state') console.log(`[${data.name}: ${data.status}] ${data.message ?? ''}`)
  if (event === 'tool.state' && data.status === 'awaiting_input') await decide(data.confirmationId ?? '')
  if (event === 'error') console.error(data.message)
  if (event === 'agent.end') over = true
  lastId = id ?? lastId
}

async function decide(confirmationId: string): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const decision = (await terminal.question('Allow it? [y/N] ')).startsWith('y') ? 'confirm' : 'reject'
  terminal.close()
  await fetch(`${server}/v1/tool-confirmations/${confirmationId}/${decision}`, { method: 'POST', headers: login })
}
