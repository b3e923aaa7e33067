// The connection that all turns of this server share. It is opened for the first turn that
// needs it and closed after the last one, so a server without such runs holds no connection.
// A lost connection is replaced when a turn asks for the next one.

import type { Clock } from '../../kit/clock.ts'
import { type GatewayAddress, type GatewayConnection, openConnection } from './gateway-connection.ts'

export type BorrowedConnection = {
  readonly connection: GatewayConnection
  /** Calling it twice is harmless. */
  release(): void
}

type Shared = {
  opening: Promise<GatewayConnection>
  connection: GatewayConnection | undefined
  stop: AbortController
  users: number
}

export class GatewayLink {
  private readonly address: GatewayAddress
  private readonly clock: Clock
  private shared: Shared | undefined

  constructor(address: GatewayAddress, clock: Clock) {
    this.address = address
    this.clock = clock
  }

  /** Throws `ConnectFailure`, or the signal's reason. */
  async acquire(signal: AbortSignal): Promise<BorrowedConnection> {
    signal.throwIfAborted()
    const shared = this.current()
    shared.users += 1
    let released = false
    const release = () => {
      if (released) return
      released = true
      shared.users -= 1
      if (shared.users > 0) return
      if (this.shared === shared) this.shared = undefined
      shared.stop.abort(new Error('no turn needs the connection any more'))
      shared.connection?.close()
    }
    try {
      return { connection: await unlessAborted(shared.opening, signal), release }
    } catch (error) {
      release()
      throw error
    }
  }

  private current(): Shared {
    const { shared } = this
    if (shared !== undefined && shared.connection?.isLost !== true) return shared
    const stop = new AbortController()
    const opening = openConnection(this.address, this.clock, stop.signal)
    const next: Shared = { opening, connection: undefined, stop, users: 0 }
    this.shared = next
    opening.then(
      (connection) => {
        next.connection = connection
        if (stop.signal.aborted) connection.close()
      },
      () => {
        if (this.shared === next) this.shared = undefined
      },
    )
    return next
  }
}

/** Rejects with the signal's reason if that comes first. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason as Error)
    signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
