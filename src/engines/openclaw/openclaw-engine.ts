// The engine that lets an OpenClaw gateway own the turn. The gateway keeps the session of a
// conversation and runs its own tools; this engine starts one remote run per turn, follows it,
// and forwards approvals. It falls back to plain chat completions where the gateway serves no
// WebSocket.

import type { Clock } from '../../kit/clock.ts'
import type { Model } from '../../models/model.ts'
import { AppError } from '../../errors/app-error.ts'
import type { TurnEngine } from '../engine.ts'
import { abortRun, followRun } from './follow-run.ts'
import { ConnectFailure } from './gateway-connection.ts'
import { type BorrowedConnection, GatewayLink } from './gateway-link.ts'
import { isHttpServed, runOverHttp } from './http-turn.ts'
import { sessionKeyOf } from './session-key.ts'
import { readTurnHandle } from './turn-handle.ts'

export type OpenclawOptions = {
  /** Its scheme is http, https, ws or wss. */
  url: string
  token: string | undefined
  version: string
  clock: Clock
  /** The gateway's chat completions. */
  chatCompletions: Model
}

export function createOpenclawEngine(options: OpenclawOptions): TurnEngine {
  const { token, version, clock, chatCompletions } = options
  const link = new GatewayLink({ url: openclawUrl(options.url, 'ws'), token, version }, clock)
  const http = { url: openclawUrl(options.url, 'http'), token, clock }
  return {
    kind: 'turn',
    name: 'openclaw',
    // The gateway runs a command as it was requested, or not at all.
    canEditInput: false,
    async *turn(request, stored, decisions, signal) {
      const handle = stored === undefined ? undefined : readTurnHandle(stored)
      if (handle?.transport === 'http') {
        throw new AppError(
          'engine_outcome_unknown',
          'The turn ran over HTTP, where the OpenClaw gateway cannot be asked what became of it.',
        )
      }
      const follow = (borrowed: BorrowedConnection | undefined) =>
        followRun({
          link,
          borrowed,
          clock,
          messages: request.messages,
          sessionKey: handle?.sessionKey ?? sessionKeyOf(request.conversationId, request.runId),
          runKey: handle?.runKey ?? request.runId,
          runId: handle?.state === 'started' ? handle.runId : undefined,
          isNew: handle === undefined,
          decisions,
          signal,
        })
      if (handle !== undefined) {
        yield* follow(undefined)
        return
      }
      let borrowed: BorrowedConnection
      try {
        borrowed = await link.acquire(signal)
      } catch (error) {
        if (!(error instanceof ConnectFailure)) throw error
        const plain = error.reason === 'socket' && (await isHttpServed(http, signal))
        if (!plain) {
          throw new AppError('engine_unavailable', `The OpenClaw gateway cannot be used: ${error.message}.`, {
            retryable: true,
          })
        }
        const sessionKey = sessionKeyOf(request.conversationId, request.runId)
        yield* runOverHttp(chatCompletions, request.messages, sessionKey, signal)
        return
      }
      yield* follow(borrowed)
    },
    async abort(stored, signal) {
      const handle = readTurnHandle(stored)
      // Over HTTP the gateway stops a run when its connection is closed, which has happened already.
      if (handle.transport === 'websocket') await abortRun(link, clock, handle, signal)
    },
  }
}

/** The address with the scheme of the transport, without a slash at its end. */
export function openclawUrl(address: string, transport: 'ws' | 'http'): string {
  const url = new URL(address)
  const secure = url.protocol === 'https:' || url.protocol === 'wss:'
  return `${transport}${secure ? 's' : ''}://${url.host}${url.pathname.replace(/\/+$/, '')}`
}
