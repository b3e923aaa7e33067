// A remote agent that speaks AG-UI, built with the official packages: every request is checked
// with their schema, and every event is checked and encoded by them. A test scripts its answers
// over routes under /_control, with the faults of real networks. It counts the runs that it
// started and the decisions that it applied.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { RunAgentInput } from '@ag-ui/core'
import { EventSchemas, RunAgentInputSchema } from '@ag-ui/core/schemas'
import { EventEncoder } from '@ag-ui/encoder'

/** An event of the protocol (thread and run are filled in), or a fault. */
export type AgUiAction =
  | { type: string; [name: string]: unknown }
  /** Bytes as they are. */
  | { raw: string }
  /** A frame of this many characters. */
  | { giant: number }
  /** Says nothing until the test releases it. */
  | { stall: true }
  /** The connection is destroyed. */
  | { cut: true }
  /** The answer ends here, without RUN_FINISHED. */
  | { hangUp: true }
  /** Instead of a stream. */
  | { status: number; body?: string; headers?: Record<string, string> }
  | { waitMs: number }

export type SeenRun = {
  input: RunAgentInput
  headers: Record<string, string>
  /** The client closed the connection before the answer was complete. */
  closedEarly: boolean
  /** The connection is closed, by whichever side. */
  isOver: boolean
}

export type AgUiSeen = {
  runs: SeenRun[]
  /** How often each interrupt was answered, by thread and interrupt. */
  applied: Record<string, number>
  refused: string[]
}

type Script = { match: string; answers: AgUiAction[][] }

const encoder = new EventEncoder()
let scripts: Script[] = []
let seen: AgUiSeen = { runs: [], applied: {}, refused: [] }
const releases: (() => void)[] = []
/** The interrupts that each thread waits for. */
const pending = new Map<string, string[]>()

const server = createServer((request, response) => {
  void handle(request, response).catch((error: unknown) => {
    process.stderr.write(`fake AG-UI agent: ${String(error)}\n`)
    response.destroy()
  })
})
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
})
process.stdin.on('end', () => process.exit(0)).resume()

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await readAll(request)
  switch (request.url) {
    case '/_control/script':
      scripts.push(JSON.parse(body) as Script)
      return json(response, 200, {})
    case '/_control/seen':
      return json(response, 200, seen)
    case '/_control/release':
      for (const release of releases.splice(0)) release()
      return json(response, 200, {})
    case '/_control/reset':
      scripts = []
      seen = { runs: [], applied: {}, refused: [] }
      pending.clear()
      return json(response, 200, {})
    default:
      return await answer(request, body, response)
  }
}

async function answer(request: IncomingMessage, body: string, response: ServerResponse): Promise<void> {
  const parsed = RunAgentInputSchema.safeParse(JSON.parse(body))
  if (!parsed.success) {
    seen.refused.push(parsed.error.message)
    return json(response, 422, { detail: parsed.error.message })
  }
  const input = parsed.data as RunAgentInput
  const run: SeenRun = { input, headers: request.headers as Record<string, string>, closedEarly: false, isOver: false }
  const actions = nextScript(input)
  const first = actions[0]
  if (first !== undefined && 'status' in first && typeof first.status === 'number') {
    const {
      status,
      body: text = '',
      headers = {},
    } = first as { body?: string; headers?: Record<string, string> } & {
      status: number
    }
    seen.runs.push(run)
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
    return
  }
  seen.runs.push(run)
  let complete = false
  response.on('close', () => {
    run.closedEarly = !complete
    run.isOver = true
  })
  response.writeHead(200, { 'content-type': encoder.getContentType() })
  response.flushHeaders()
  const say = (event: Record<string, unknown>) => {
    const checked = EventSchemas.parse({ ...event, ...addressOf(event, input) })
    response.write(encoder.encodeSSE(checked as Parameters<EventEncoder['encodeSSE']>[0]))
  }
  say({ type: 'RUN_STARTED' })
  const wrong = takeResume(input)
  if (wrong !== null) {
    seen.refused.push(wrong)
    say({ type: 'RUN_ERROR', message: wrong, code: 'bad_resume' })
    response.end()
    return
  }
  for (const action of actions) {
    if ('type' in action && typeof action.type === 'string') {
      const outcome = action['outcome'] as { type?: string; interrupts?: { id: string }[] } | undefined
      if (outcome?.type === 'interrupt') pending.set(input.threadId, outcome.interrupts?.map(({ id }) => id) ?? [])
      if (action.type === 'RUN_FINISHED' || action.type === 'RUN_ERROR') complete = true
      say(action)
    } else if ('raw' in action) response.write(action.raw)
    else if ('giant' in action) response.write(`data: ${'x'.repeat(Number(action.giant))}`)
    else if ('waitMs' in action) await new Promise((resolve) => setTimeout(resolve, Number(action.waitMs)))
    else if ('stall' in action) await new Promise<void>((resolve) => releases.push(resolve))
    else if ('hangUp' in action) {
      response.end()
      return
    } else if ('cut' in action) {
      // What was written must be on its way first.
      await new Promise<void>((resolve) => response.write(': cut\n', () => resolve()))
      response.destroy()
      return
    }
  }
  const ended = actions.some((action) => 'type' in action && /^RUN_(FINISHED|ERROR)$/.test(action.type))
  if (!ended) {
    complete = true
    say({ type: 'RUN_FINISHED' })
  }
  response.end()
}

/** The next answer for the question of this run; a greeting if none was scripted. */
function nextScript(input: RunAgentInput): AgUiAction[] {
  const asked = JSON.stringify(input.messages.findLast(({ role }) => role === 'user')?.content ?? '')
  const script = scripts.find(({ match, answers }) => answers.length > 0 && asked.includes(match))
  return (
    script?.answers.shift() ?? [
      { type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'Hello from afar.' },
      { type: 'TEXT_MESSAGE_END', messageId: 'm' },
    ]
  )
}

/** What is wrong with the decisions of the request, which have to cover all interrupts of the thread; null if nothing. */
function takeResume({ threadId, resume = [] }: RunAgentInput): string | null {
  const open = pending.get(threadId) ?? []
  const answered = resume.map(({ interruptId }) => interruptId)
  if (open.length === 0 && answered.length === 0) return null
  if (open.toSorted().join() !== answered.toSorted().join()) {
    return `the thread waits for [${open.join()}], and [${answered.join()}] was answered`
  }
  pending.delete(threadId)
  for (const id of answered) {
    const key = `${threadId} ${id}`
    seen.applied[key] = (seen.applied[key] ?? 0) + 1
  }
  return null
}

function addressOf({ type }: Record<string, unknown>, { threadId, runId }: RunAgentInput): Record<string, string> {
  return type === 'RUN_STARTED' || type === 'RUN_FINISHED' ? { threadId, runId } : {}
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function readAll(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return text
}
