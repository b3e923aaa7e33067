// The one error class of the client. `code` is for programs: a code of the server (docs/errors.md), or one of the client:
// `network_error` (no response), `stream_cut` (the connection broke or went silent) and `unexpected_response` (the answer
// is not one of a Polylog server).

export type PolylogErrorFields = {
  code: string
  message: string
  status?: number
  retryable?: boolean
  retryAfterMs?: number
  details?: Record<string, unknown>
  cause?: unknown
}

export class PolylogError extends Error {
  readonly code: string
  /** The HTTP status; 0 if there was no response. */
  readonly status: number
  /** True if the same request may succeed later. */
  readonly retryable: boolean
  /** How long the server asks to wait before the next try. */
  readonly retryAfterMs: number
  readonly details: Record<string, unknown> | undefined

  constructor({ code, message, status = 0, retryable = false, retryAfterMs = 0, details, cause }: PolylogErrorFields) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'PolylogError'
    this.code = code
    this.status = status
    this.retryable = retryable
    this.retryAfterMs = retryAfterMs
    this.details = details
  }
}

/** Statuses of a server or proxy that is busy or restarting; Cloudflare has some of its own, from 520. */
const passing = [408, 425, 429, 502, 503, 504, 520, 521, 522, 523, 524]

/** A proxy may answer with a page of its own instead of JSON. */
export async function errorOf(response: Response): Promise<PolylogError> {
  const { status } = response
  // Routes under /api say `error` instead of `message`.
  const body = (await response.json().catch(() => null)) as (Partial<PolylogErrorFields> & { error?: unknown }) | null
  const sentence = typeof body?.error === 'string' ? body.error : undefined
  const after = response.headers.get('retry-after') ?? ''
  const waitMs = /^\d+$/.test(after) ? Number(after) * 1000 : Date.parse(after) - Date.now()
  return new PolylogError({
    code: body?.code ?? 'unexpected_response',
    message: body?.message ?? sentence ?? `The server answered with status ${status}.`,
    status,
    // A 502 of the server itself says that a provider failed; it tells whether another try makes sense.
    retryable: body?.retryable ?? (passing.includes(status) && !(status === 502 && body?.code !== undefined)),
    retryAfterMs: waitMs > 0 ? waitMs : 0,
    ...(body?.details === undefined ? {} : { details: body.details }),
  })
}
