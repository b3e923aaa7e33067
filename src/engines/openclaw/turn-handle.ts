// The handle of a turn: what is journaled so that another life of this server finds the
// remote run again. It holds no secret and no address.

import { AppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import { fieldsOf, textOf } from './gateway-frames.ts'

/** The run key is the idempotency key of the start; gateways use it as the id of the run, too. `starting` is written before the run is started, `started` when the gateway has confirmed it. */
export type TurnHandle =
  | { transport: 'websocket'; sessionKey: string; runKey: string; state: 'starting' }
  | { transport: 'websocket'; sessionKey: string; runKey: string; state: 'started'; runId: string }
  | { transport: 'http'; sessionKey: string }

/** Throws `engine_outcome_unknown` if this version cannot read the handle. */
export function readTurnHandle(handle: JsonValue): TurnHandle {
  const fields = fieldsOf(handle)
  const sessionKey = textOf(fields['sessionKey'])
  const runKey = textOf(fields['runKey'])
  if (fields['transport'] === 'http') return { transport: 'http', sessionKey }
  if (sessionKey === '' || runKey === '') {
    throw new AppError('engine_outcome_unknown', 'The journal does not say which run of the gateway this turn is.')
  }
  const found = { transport: 'websocket', sessionKey, runKey } as const
  const runId = textOf(fields['runId'])
  return runId === '' ? { ...found, state: 'starting' } : { ...found, state: 'started', runId }
}
