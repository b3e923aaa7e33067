// Opens a connection to a provider before there is a request for it. A run is stored before its model is asked, and if no
// connection is idle, the new one is made meanwhile.

import type * as http from 'node:http'
import { isIP, type Socket } from 'node:net'

/** A run asks its model within milliseconds, unless it is cancelled or waits for something. */
const unusedMsMax = 5_000

/** What the types of agents leave out. */
type ConnectingAgent = http.Agent & {
  readonly options: object
  createConnection(options: object, callback?: (error: Error | null, socket: Socket) => void): Socket | undefined
}

export class EarlyConnection {
  readonly #agent: ConnectingAgent
  readonly #options: object
  readonly #connect: ConnectingAgent['createConnection']
  #spare: Socket | undefined

  /** The agent must be used for this address only. */
  constructor(
    agent: http.Agent,
    { protocol, hostname, port }: { protocol: string; hostname: string; port: string | null },
  ) {
    this.#agent = agent as ConnectingAgent
    this.#options = {
      ...this.#agent.options,
      host: hostname,
      port: Number(port ?? (protocol === 'https:' ? 443 : 80)),
      // A certificate for an address has no name that could be asked for.
      servername: isIP(hostname) === 0 ? hostname : '',
    }
    this.#connect = this.#agent.createConnection.bind(agent)
    this.#agent.createConnection = (options, callback) => this.#take() ?? this.#connect(options, callback)
  }

  /** Opens a connection, unless one is idle or being opened. */
  open(): void {
    if (isUsable(this.#spare)) return
    for (const name in this.#agent.freeSockets) if ((this.#agent.freeSockets[name]?.length ?? 0) > 0) return
    const socket = this.#connect(this.#options)
    this.#spare = socket
    // If it cannot be made, neither can that of the request, which reports why.
    socket?.on('error', () => socket.destroy())
    socket?.setTimeout(unusedMsMax, () => {
      if (this.#spare === socket) socket.destroy()
    })
    // A process that has nothing else to do may end.
    socket?.unref()
  }

  #take(): Socket | undefined {
    const socket = this.#spare
    this.#spare = undefined
    if (!isUsable(socket)) return undefined
    socket.setTimeout(0)
    socket.ref()
    return socket
  }
}

function isUsable(socket: Socket | undefined): socket is Socket {
  return socket !== undefined && (socket.readyState === 'opening' || socket.readyState === 'open')
}
