// What a test can tell the fake provider to do, and what the fake reports about its requests.

export type FakeToolCall = {
  index?: number
  /** Null: no id is sent. */
  id?: string | null
  name?: string
  arguments?: string
  /** The arguments come in pieces of this many characters. */
  pieces?: number
}

export type Action =
  | { text: string | string[] }
  | { reasoning: string | string[]; field?: 'reasoning_content' | 'reasoning' }
  /** Fragments of all calls are interleaved, as parallel calls are. */
  | { toolCalls: FakeToolCall[] }
  /** The end as it should be: finish reason, usage, [DONE]. */
  | { finish: string; usage?: Record<string, unknown> | false; done?: boolean }
  | { usage: Record<string, unknown> }
  | { done: true }
  /** The socket is destroyed. */
  | { cut: true }
  /** A clean end of the response, without anything before it. */
  | { end: true }
  | { stall: true }
  | { halfJson: true }
  | { error: unknown }
  /** Instead of a stream; must be the first action. */
  | { status: number; body?: unknown; headers?: Record<string, string> }
  | { json: unknown }
  | { delayMs: number }
  /** Exactly these bytes, each in a write of its own. */
  | { bytesBase64: string[] }
  /** `count` chunks of `text`, as fast as the client reads. Tells how many were accepted by the socket. */
  | { flood: { count: number; text: string } }

export type SeenRequest = {
  path: string
  body: {
    model?: string
    messages?: { role: string; content: unknown; [more: string]: unknown }[]
    [more: string]: unknown
  }
  /** Without the value of `authorization`. */
  headers: Record<string, string>
  hasAuthorization: boolean
  /** The client left before the answer was over. */
  closedEarly: boolean
  answered: boolean
  /** Chunks written so far by a flood. */
  flooded: number
  /** Requests on one connection have one number. */
  connection: number
}
