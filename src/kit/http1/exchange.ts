// One request and its response, whatever carries them.

import type { ResponseReceiver } from './response-parser.ts'

export interface ExchangeReceiver extends ResponseReceiver {
  /** Called once, last. Without an error the response is complete. */
  ended(error: Error | undefined): void
}

/** An exchange that goes on. None of it may be called after the receiver was told that it has ended. */
export interface Exchange {
  /** The receiver has enough for now. It may get what was read already. */
  pause(): void
  resume(): void
  /** The receiver wants no more, and the rest is read within limits, so that the connection can be used again. It is not told the end. */
  leave(): void
  /** Closes the connection. The receiver is told nothing more. */
  destroy(): void
}

export type ExchangeRequest = {
  /** Besides those that say how the body is framed. Names are in lower case. */
  headers: readonly (readonly [name: string, value: string])[]
  body: string
}

/** Sends requests to one address. */
export interface Requests {
  /** A request is likely to follow within milliseconds. */
  prepare(): void
  post(request: ExchangeRequest, receiver: ExchangeReceiver): Exchange
}

/** The rest of a response is read for this long without a byte, and up to this many bytes. */
export const restIdleMs = 2_000
export const restBytesMax = 64 * 1024
