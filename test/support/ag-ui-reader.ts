// The real AG-UI clients, 1.0 and the last one before, fed with bytes in pieces of any size. Both
// check the order of events. What they make of a stream is shown in short lines.

import * as current from '@ag-ui/client'
import * as older from 'ag-ui-client-0'

type Client = Pick<typeof current, 'HttpAgent'>
export type AgUiAgent = current.HttpAgent

export type AgUiRead = {
  /** What the client threw; undefined if it accepted everything. */
  refused: string | undefined
  /** The message of a RUN_ERROR. */
  failed: string | undefined
  outcome: string | undefined
}

export type AgUiReader = {
  name: string
  /** A client whose requests are answered with `answers`, one after the other, each in pieces. */
  open(answers: readonly (readonly Uint8Array[])[]): AgUiAgent
  read(agent: AgUiAgent, parameters?: Parameters<AgUiAgent['runAgent']>[0]): Promise<AgUiRead>
}

function readerOf(name: string, client: Client): AgUiReader {
  return {
    name,
    open(answers) {
      const left = [...answers]
      return new client.HttpAgent({
        url: 'http://polylog.test/v1/ag-ui',
        threadId: 'thread-1',
        fetch: async () => {
          const body = ReadableStream.from(left.shift() ?? []) as ReadableStream<Uint8Array<ArrayBuffer>>
          return new Response(body, { headers: { 'content-type': 'text/event-stream; charset=utf-8' } })
        },
      })
    },
    async read(agent, parameters) {
      const read: AgUiRead = { refused: undefined, failed: undefined, outcome: undefined }
      try {
        await agent.runAgent(parameters, {
          onRunErrorEvent: ({ event }) => void (read.failed = event.message),
          onRunFinishedEvent: ({ event }) => void (read.outcome = event.outcome?.type ?? 'none'),
        })
      } catch (error) {
        read.refused = error instanceof Error ? error.message : String(error)
      }
      return read
    },
  }
}

export const agUiReaders: readonly AgUiReader[] = [
  readerOf('AG-UI 1.0', current),
  // The types of the two versions differ in names only.
  readerOf('AG-UI 0.0', older as unknown as Client),
]

/** One line for each message and each of its calls. */
export function linesOfAgent({ messages }: Pick<AgUiAgent, 'messages'>): string[] {
  return messages.flatMap((message) => {
    const lines: string[] = []
    if (message.content !== undefined && message.content !== '') {
      lines.push(
        `${message.role}: ${typeof message.content === 'string' ? message.content : JSON.stringify(message.content)}`,
      )
    }
    if (message.role === 'assistant') {
      for (const { function: called } of message.toolCalls ?? []) lines.push(`call ${called.name} ${called.arguments}`)
    }
    return lines
  })
}
