// Looks for a text or a regular expression in the lines of a text. A regular
// expression comes from a model and may take for ever; so it runs in a thread of
// its own (search-thread.ts), which is ended with the call.

import { Worker } from 'node:worker_threads'
import { refused } from './refusal.ts'

export type Hit = { line: number; column: number; preview: string }

export interface LineSearch {
  in(text: string, hitsMax: number): Promise<Hit[]>
  close(): Promise<void>
}

const previewCharsMax = 300

export function plainSearch(find: string, caseSensitive: boolean): LineSearch {
  const wanted = caseSensitive ? find : find.toLowerCase()
  return {
    in: async (text, hitsMax) =>
      hitsIn(text, hitsMax, (line) => (caseSensitive ? line : line.toLowerCase()).indexOf(wanted)),
    close: async () => {},
  }
}

export function regexSearch(source: string, caseSensitive: boolean, signal: AbortSignal): LineSearch {
  const { flags } = valid(source, caseSensitive ? 'u' : 'iu')
  const thread = new Worker(new URL('./search-thread.ts', import.meta.url), { workerData: { source, flags }, env: {} })
  thread.unref()
  return {
    in: (text, hitsMax) =>
      new Promise((resolve, reject) => {
        const stop = () => {
          thread.off('message', done)
          thread.off('error', fail)
          signal.removeEventListener('abort', abort)
        }
        const done = (hits: Hit[]) => (stop(), resolve(hits))
        const fail = (error: Error) => (stop(), reject(error))
        const abort = () => (stop(), void thread.terminate(), reject(signal.reason as Error))
        if (signal.aborted) return abort()
        thread.on('message', done)
        thread.on('error', fail)
        signal.addEventListener('abort', abort)
        thread.postMessage({ text, hitsMax })
      }),
    close: async () => void (await thread.terminate()),
  }
}

function valid(source: string, flags: string): RegExp {
  try {
    return new RegExp(source, flags)
  } catch (error) {
    throw refused(`The regular expression is not valid: ${error instanceof Error ? error.message : String(error)}.`)
  }
}

/** The first hit of each line. */
export function hitsIn(text: string, hitsMax: number, columnOf: (line: string) => number): Hit[] {
  const hits: Hit[] = []
  let number = 0
  for (let at = 0; at <= text.length && hits.length < hitsMax; ) {
    const end = text.indexOf('\n', at)
    const line = text.slice(at, end < 0 ? text.length : end)
    number += 1
    const column = columnOf(line)
    if (column >= 0 && !(line === '' && end < 0)) {
      hits.push({ line: number, column: column + 1, preview: preview(line, column) })
    }
    if (end < 0) break
    at = end + 1
  }
  return hits
}

function preview(line: string, column: number): string {
  const from = line.length <= previewCharsMax ? 0 : Math.max(0, column - 60)
  return line.slice(from, from + previewCharsMax).trimEnd()
}
