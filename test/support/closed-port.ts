// An address on this machine on which no process listens. (A fixed low port will not do:
// fetch refuses those by itself.)

import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

export async function closedAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return `http://127.0.0.1:${port}`
}
