// Looks for a text or a regular expression in the lines of a text. A regular
// expression comes from a model and may take for ever; so it runs in a thread of
// its own (search-thread.ts), which is ended with the call.

import { Worker } from 'node:worker_threads'
import { type Hit, hitsIn } from './line-hits.ts'
import { refused } from './refusal.ts'

export interface LineSearch {
  in(text: string, hitsMax: number): Promise<Hit[]>
  close(): Promise<void>
}

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
    // Many in the wild are not valid as unicode ones (`[\w-.]`, `\-`).
    if (flags.includes('u')) return valid(source, flags.replace('u', ''))
    throw refused(`The regular expression is not valid: ${error instanceof Error ? error.message : String(error)}.`)
  }
}
