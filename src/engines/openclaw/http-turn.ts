// A turn over the gateway's chat completions: text only. Tools of the gateway are invisible
// there, and the run cannot be found again after an interruption.

import { AppError } from '../../errors/app-error.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Model, ModelMessage, ModelRequest } from '../../models/model.ts'
import type { TurnPart } from '../engine.ts'
import { newInput } from './new-input.ts'

export type HttpAddress = { url: string; token: string | undefined; clock: Clock }

const probeTimeoutMs = 10_000

/** Whether the gateway answers the chat completions API with this token. Nothing is started. */
export async function isHttpServed({ url, token, clock }: HttpAddress, signal: AbortSignal): Promise<boolean> {
  const timeout = new AbortController()
  const timer = clock.after(probeTimeoutMs, () => timeout.abort())
  try {
    const response = await fetch(`${url}/v1/models`, {
      // A redirect could carry the token to another host.
      redirect: 'manual',
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      signal: AbortSignal.any([signal, timeout.signal]),
    })
    await response.body?.cancel()
    return response.ok
  } catch {
    signal.throwIfAborted()
    return false
  } finally {
    timer.cancel()
  }
}

export async function* runOverHttp(
  model: Model,
  messages: readonly ModelMessage[],
  sessionKey: string,
  signal: AbortSignal,
): AsyncIterable<TurnPart[]> {
  yield [{ type: 'handle', handle: { transport: 'http', sessionKey } }]
  const message = newInput(messages, true)
  const request: ModelRequest = {
    model: 'openclaw',
    messages: [{ role: 'user', content: message }],
    tools: [],
    user: sessionKey,
  }
  try {
    for await (const parts of model.stream(request, signal)) {
      yield parts.flatMap((part): TurnPart[] =>
        part.type === 'text' || part.type === 'reasoning' || part.type === 'spent' || part.type === 'finish'
          ? [part]
          : [],
      )
    }
  } catch (error) {
    signal.throwIfAborted()
    throw turnError(error)
  }
}

function turnError(error: unknown): unknown {
  if (!(error instanceof AppError)) return error
  const code = error.code === 'model_stream_incomplete' ? 'engine_stream_incomplete' : 'engine_failed'
  return new AppError(code, `The OpenClaw gateway failed: ${error.message}`, { retryable: error.retryable })
}
