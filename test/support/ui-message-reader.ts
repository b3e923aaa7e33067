// The real readers of the UI message stream, of AI SDK 6 and 7, fed with bytes in pieces of any
// size, and the message that they make of them in short lines.

import * as sdk7 from 'ai'
import * as sdk6 from 'ai-6'
import type { UIMessage } from 'ai'
import type { Pieces } from './byte-pieces.ts'

export type Read = {
  message: UIMessage | undefined
  /** What the reader threw, or the text of an `error` part; undefined if it accepted everything. */
  error: string | undefined
}

export type UiReader = { name: string; read(pieces: Pieces, before?: UIMessage): Promise<Read> }

type Sdk = Pick<typeof sdk7, 'parseJsonEventStream' | 'readUIMessageStream' | 'uiMessageChunkSchema'>

function readerOf(name: string, sdk: Sdk): UiReader {
  return {
    name,
    async read(pieces, before) {
      const bytes = ReadableStream.from(pieces) as ReadableStream<Uint8Array<ArrayBuffer>>
      const parts = sdk.parseJsonEventStream({ stream: bytes, schema: sdk.uiMessageChunkSchema })
      const stream = parts.pipeThrough(
        new TransformStream({
          transform(part, controller) {
            if (part.success) controller.enqueue(part.value)
            else controller.error(part.error)
          },
        }),
      )
      let message = before
      try {
        const start = before === undefined ? {} : { message: structuredClone(before) }
        for await (const next of sdk.readUIMessageStream({ stream, terminateOnError: true, ...start })) message = next
        return { message, error: undefined }
      } catch (error) {
        return { message, error: error instanceof Error ? error.message : String(error) }
      }
    },
  }
}

export const uiReaders: readonly UiReader[] = [
  readerOf('AI SDK 7', sdk7),
  // The types of the two versions have different names for the same things.
  readerOf('AI SDK 6', sdk6 as unknown as Sdk),
]

/** One line for each part of a message. */
export function linesOfMessage(message: UIMessage | undefined): string[] {
  return (message?.parts ?? []).map((part) => {
    if (part.type === 'text' || part.type === 'reasoning') return `${part.type} ${part.state}: ${part.text}`
    if (part.type.startsWith('data-')) return `${part.type} ${JSON.stringify('data' in part ? part.data : null)}`
    if (part.type === 'source-url') return `${part.type} ${part.url} ${part.title}`
    if (part.type === 'source-document') return `${part.type} ${part.mediaType} ${part.title}`
    if (!('toolCallId' in part)) return part.type
    const result = part.state === 'output-error' ? part.errorText : JSON.stringify(part.output)
    return `${part.type} ${JSON.stringify(part.input)} ${part.state}${result === undefined ? '' : `: ${result}`}`
  })
}
