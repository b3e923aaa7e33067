// A real AG-UI client in a process of its own, driven by lines of JSON: `node ag-ui-user.ts 1.0`, or
// `0.0` for the last version before 1.0. Its check of the order of events is on. Every event is
// reported as it comes, and every command is answered with what the client knows then.

import { createInterface } from 'node:readline'
import type * as current from '@ag-ui/client'
import type { HttpAgentConfig, RunAgentParameters } from '@ag-ui/client'

export type AgUiCommand =
  /** Creates a client under a name; the other commands say which one they mean. */
  | { do: 'open'; config: Pick<HttpAgentConfig, 'url' | 'threadId' | 'headers' | 'initialState'> }
  | { do: 'run'; message?: unknown; parameters?: RunAgentParameters }
  /** Attaches to the thread with GET. */
  | { do: 'connect'; url: string }
  | { do: 'abort' }

export type AgUiSeenEvent = { type: string; [field: string]: unknown }

export type AgUiReport = {
  /** What the client threw; undefined if it accepted everything. */
  refused?: string
  events: AgUiSeenEvent[]
  messages: Record<string, unknown>[]
  state: unknown
  interrupts: { id: string; toolCallId?: string; message?: string }[]
}

export type AgUiLine = { agent: string; event: AgUiSeenEvent } | { command: number; report: AgUiReport }

const isCurrent = process.argv[2] === '1.0'
// The types of the two versions differ in names only.
const client = (isCurrent ? await import('@ag-ui/client') : await import('ag-ui-client-0')) as typeof current

/** `HttpAgent` leaves attaching to its subclasses. */
class AttachingAgent extends client.HttpAgent {
  attachUrl = ''
  protected override connect() {
    const headers = { ...this.headers, accept: 'text/event-stream' }
    return client.transformHttpEventStream(client.runHttpRequest(() => fetch(this.attachUrl, { headers })))
  }
}

const agents = new Map<string, AttachingAgent>()
const say = (line: AgUiLine) => process.stdout.write(`${JSON.stringify(line)}\n`)

// Warnings about fields that the client strips would be failures of the server.
const warnings: string[] = []
console.warn = (...words: unknown[]) => void warnings.push(words.map(String).join(' '))
console.error = () => {}

// When a connection is cut, the client rejects its run and leaves a second rejection behind that nobody handles.
process.on('unhandledRejection', () => {})

for await (const line of createInterface({ input: process.stdin })) {
  const { command, agent, ...rest } = JSON.parse(line) as { command: number; agent: string } & AgUiCommand
  void handle(command, agent, rest)
}

async function handle(command: number, name: string, given: AgUiCommand): Promise<void> {
  const events: AgUiSeenEvent[] = []
  const report: { refused?: string } = {}
  const agent = given.do === 'open' ? new AttachingAgent(given.config) : (agents.get(name) as AttachingAgent)
  agents.set(name, agent)
  const subscriber = {
    onEvent({ event }: { event: unknown }) {
      events.push(event as AgUiSeenEvent)
      say({ agent: name, event: event as AgUiSeenEvent })
    },
  }
  try {
    if (given.do === 'abort') agent.abortRun()
    if (given.do === 'run') {
      if (given.message !== undefined) agent.addMessage(given.message as Parameters<typeof agent.addMessage>[0])
      await agent.runAgent(given.parameters, subscriber)
    }
    if (given.do === 'connect') {
      agent.attachUrl = given.url
      await agent.connectAgent({}, subscriber)
    }
  } catch (error) {
    report.refused = error instanceof Error ? error.message : String(error)
  }
  if (warnings.length > 0) report.refused ??= warnings.splice(0).join('\n')
  const { messages, state, pendingInterrupts } = agent
  say({
    command,
    report: { ...report, events, messages, state, interrupts: pendingInterrupts },
  })
}
