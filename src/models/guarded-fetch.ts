// The `fetch` for the AI SDK's adapters. It adds limits that they do not have: redirects are
// not followed, because the API key in a header would be sent along, and the length of a line
// and of an error page is bounded. Requests are well-formed JSON, whatever texts they hold.

import { wellFormedJson } from '../kit/well-formed-json.ts'
import type { Fetch } from './kept-connections.ts'
import { malformedError, type ProviderIdentity } from './provider-error.ts'

/** One line of a stream, as in our own client. */
const lineBytesMax = 8 * 1024 * 1024
/** The largest response in bytes, far above any real answer with its framing. */
const bytesMax = 512 * 1024 * 1024
/** An error page is read for its message only. */
const errorBytesMax = 64 * 1024

const lineFeed = 0x0a

export function guardedFetch(identity: ProviderIdentity, ask: Fetch): Fetch {
  return async (input, init) => {
    const body = typeof init?.body === 'string' ? { body: wellFormedJson(init.body) } : {}
    const response = await ask(input, { ...init, ...body, redirect: 'manual' })
    if (response.body === null) return response
    const limit = response.ok ? lineLimit(identity) : errorLimit()
    return new Response(response.body.pipeThrough(limit), {
      status: response.status,
      statusText: response.statusText,
      headers: response.headers,
    })
  }
}

function lineLimit(identity: ProviderIdentity): TransformStream<Uint8Array, Uint8Array> {
  let line = 0
  let all = 0
  return new TransformStream({
    transform(bytes, controller) {
      const end = bytes.lastIndexOf(lineFeed)
      line = end === -1 ? line + bytes.length : bytes.length - end - 1
      all += bytes.length
      if (line > lineBytesMax) throw malformedError(identity, 'one line of its stream is longer than 8 MiB')
      if (all > bytesMax) throw malformedError(identity, 'it is longer than 512 MiB')
      controller.enqueue(bytes)
    },
  })
}

function errorLimit(): TransformStream<Uint8Array, Uint8Array> {
  let left = errorBytesMax
  return new TransformStream({
    transform(bytes, controller) {
      controller.enqueue(bytes.subarray(0, left))
      left -= Math.min(left, bytes.length)
      if (left === 0) controller.terminate()
    },
  })
}
