// A TCP proxy in front of several nodes: each connection goes to the next node. A node that refuses
// the connection is passed over, as load balancers do. Connections to a node can be cut.

import { connect, createServer, type Socket } from 'node:net'

export type RoundRobinProxy = {
  readonly baseUrl: string
  /** Where connections to this node go from now on. Null: the proxy knows that the node is down. */
  route(node: number, port: number | null): void
  /** Cuts the connections to this node. */
  cut(node: number): void
  /** How many connections each node got. */
  readonly counts: readonly number[]
  close(): Promise<void>
}

export async function startRoundRobinProxy(nodes: number): Promise<RoundRobinProxy> {
  const ports: (number | null)[] = Array.from({ length: nodes }, () => null)
  const counts = ports.map(() => 0)
  const open = ports.map(() => new Set<Socket>())
  let next = 0

  /** Tries the nodes in turn, each once. */
  const forward = (client: Socket, tries: number) => {
    const node = next
    next = (next + 1) % nodes
    const port = ports[node] ?? null
    if (tries === 0) return void client.destroy()
    if (port === null) return forward(client, tries - 1)
    const upstream = connect({ host: '127.0.0.1', port })
    const refused = () => forward(client, tries - 1)
    upstream.once('error', refused)
    upstream.once('connect', () => {
      upstream.off('error', refused)
      counts[node] = (counts[node] ?? 0) + 1
      join(client, upstream, open[node] as Set<Socket>)
    })
  }

  const server = createServer({ pauseOnConnect: true }, (client) => {
    client.on('error', () => {})
    forward(client, nodes)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const cut = (node: number) => {
    for (const socket of open[node] ?? []) socket.destroy()
  }
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    counts,
    route(node, port) {
      ports[node] = port
    },
    cut,
    async close() {
      for (const node of ports.keys()) cut(node)
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function join(client: Socket, upstream: Socket, open: Set<Socket>): void {
  for (const [one, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    open.add(one)
    one.on('error', () => {})
    one.pipe(other)
    one.once('close', () => {
      open.delete(one)
      other.destroy()
    })
  }
  client.resume()
}
