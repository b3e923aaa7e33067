// The HTTP client of the Feishu tool. It caches the tenant token until shortly before it
// expires. It never retries a request; the tool decides whether a retry is safe.

import { AppError } from '../errors/app-error.ts'
import type { Clock } from '../kit/clock.ts'
import { isRecord } from '../kit/is-record.ts'

export type FeishuAnswer = {
  status: number
  /** Feishu's result code, 0 for success; null if the response did not come from Feishu (for example, from a proxy). */
  code: number | null
  message: string
  data: Record<string, unknown>
}

export type FeishuToken = { value: string } | { refused: FeishuAnswer }

export type FeishuClient = {
  token(signal: AbortSignal): Promise<FeishuToken>
  /** Drops the cached token if it is still this one; another call may have fetched a newer token. */
  forgetToken(token: string): void
  /** Throws `tool_failed` if it is unknown whether the request arrived. */
  post(path: string, body: unknown, token: string, signal: AbortSignal): Promise<FeishuAnswer>
}

/** A token is not used in its last minute, because it could expire before the request arrives. */
const tokenMarginMs = 60_000

export function createFeishuClient(options: {
  appId: string
  appSecret: string
  baseUrl: string
  clock: Clock
  requestTimeoutMs: number
}): FeishuClient {
  const { appId, appSecret, baseUrl, clock, requestTimeoutMs } = options
  let kept: { value: string; usableUntil: number } | null = null

  async function request(path: string, body: unknown, headers: Record<string, string>, signal: AbortSignal) {
    signal.throwIfAborted()
    const overdue = new AbortController()
    const timer = clock.after(requestTimeoutMs, () =>
      overdue.abort(new Error(`No answer within ${requestTimeoutMs} ms.`)),
    )
    try {
      const response = await fetch(baseUrl + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
        body: JSON.stringify(body),
        signal: AbortSignal.any([signal, overdue.signal]),
        // Following a redirect would send the token and the message to another host.
        redirect: 'manual',
      })
      return readAnswer(response.status, await response.text())
    } finally {
      timer.cancel()
    }
  }

  return {
    async token(signal) {
      if (kept !== null && clock.monotonic() < kept.usableUntil) return { value: kept.value }
      const { answer, body } = await request(
        '/open-apis/auth/v3/tenant_access_token/internal',
        { app_id: appId, app_secret: appSecret },
        {},
        signal,
      ).catch((error: unknown) => {
        throw (
          stopped(signal) ??
          new AppError('tool_unavailable', 'Feishu cannot be reached. Nothing was sent.', { cause: error })
        )
      })
      const { tenant_access_token: value, expire } = body
      if (answer.status >= 500) {
        throw new AppError('tool_unavailable', `Feishu gave no token (HTTP ${answer.status}). Nothing was sent.`)
      }
      if (answer.code !== 0 || typeof value !== 'string') return { refused: answer }
      const livesMs = (typeof expire === 'number' ? expire : 0) * 1000
      kept = { value, usableUntil: clock.monotonic() + livesMs - tokenMarginMs }
      return { value }
    },

    forgetToken(token) {
      if (kept?.value === token) kept = null
    },

    async post(path, body, token, signal) {
      try {
        return (await request(path, body, { authorization: `Bearer ${token}` }, signal)).answer
      } catch (error) {
        const message =
          'The connection to Feishu broke or was silent for too long. The message may have been delivered.'
        throw stopped(signal) ?? new AppError('tool_failed', message, { cause: error, details: { outcome: 'unknown' } })
      }
    },
  }
}

/** The error for an aborted call: the signal's own reason if it is an AppError. Null if the signal is not aborted. */
function stopped(signal: AbortSignal): AppError | null {
  if (!signal.aborted) return null
  if (signal.reason instanceof AppError) return signal.reason
  return new AppError(
    'tool_cancelled',
    'The call was cancelled. A message that was already on its way may still arrive.',
  )
}

function readAnswer(status: number, text: string): { answer: FeishuAnswer; body: Record<string, unknown> } {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    parsed = null // not JSON (an empty body, or a proxy's error page): only the status is known
  }
  const body = isRecord(parsed) ? parsed : {}
  return {
    answer: {
      status,
      code: typeof body.code === 'number' ? body.code : null,
      message: typeof body.msg === 'string' ? body.msg : '',
      data: isRecord(body.data) ? body.data : {},
    },
    body,
  }
}
