// A connection that is opened before the request that uses it, over real sockets.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import * as http from 'node:http'
import * as https from 'node:https'
import type { AddressInfo, Server, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { until } from '../../test/support/until.ts'
import { EarlyConnection } from './early-connection.ts'

let server: http.Server | https.Server
let connections: Socket[]
let agent: http.Agent
let early: EarlyConnection

async function listen(created: http.Server | https.Server, event = 'connection'): Promise<number> {
  server = created
  connections = []
  ;(server as Server).on(event, (socket: Socket) => connections.push(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

beforeEach(async () => {
  const port = await listen(http.createServer((request, response) => response.end(String(request.socket.remotePort))))
  agent = new http.Agent({ keepAlive: true })
  early = new EarlyConnection(agent, { protocol: 'http:', hostname: '127.0.0.1', port: String(port) })
})
afterEach(() => {
  agent.destroy()
  server.close()
  server.closeAllConnections()
})

/** Resolves with the body. */
function ask(transport: typeof http | typeof https = http, hostname = '127.0.0.1'): Promise<string> {
  const { port } = server.address() as AddressInfo
  return new Promise((resolve, reject) => {
    const request = transport.request({ hostname, port, agent }, (response) => {
      let body = ''
      response.on('data', (part: Buffer) => (body += part.toString()))
      response.on('end', () => resolve(body))
    })
    request.on('error', reject)
    request.end()
  })
}

const opened = (count: number) => until(`${count} connections`, () => (connections.length === count ? true : undefined))

describe('a connection that is opened early', () => {
  test('is used by the next request, and by one at a time', async () => {
    early.open()
    await opened(1)
    const answers = await Promise.all([ask(), ask()])
    assert.equal(connections.length, 2)
    assert.deepEqual(new Set(answers).size, 2)
  })

  test('may still be being made when the request comes', async () => {
    early.open()
    await ask()
    assert.equal(connections.length, 1)
  })

  test('is not opened while another is idle or is being opened', async () => {
    early.open()
    early.open()
    await ask()
    await until('an idle connection', () => (Object.keys(agent.freeSockets).length === 1 ? true : undefined))
    early.open()
    await ask()
    assert.equal(connections.length, 1)
  })

  test('is not used when the server has closed it', async () => {
    let made: Socket | undefined
    class WatchedAgent extends http.Agent {
      override createConnection(...given: Parameters<http.Agent['createConnection']>) {
        made = super.createConnection(...given) as Socket
        return made
      }
    }
    agent = new WatchedAgent({ keepAlive: true })
    const { port } = server.address() as AddressInfo
    new EarlyConnection(agent, { protocol: 'http:', hostname: '127.0.0.1', port: String(port) }).open()
    await opened(1)
    connections[0]?.end()
    await until('the end of the connection', () => (made?.destroyed === true ? true : undefined))
    await ask()
    assert.equal(connections.length, 2)
  })

  test('that cannot be made leaves the error to the request', async () => {
    const gone = new EarlyConnection(agent, { protocol: 'http:', hostname: '127.0.0.1', port: '1' })
    gone.open()
    await assert.rejects(
      new Promise((_, reject) => http.get({ hostname: '127.0.0.1', port: 1, agent }).on('error', reject)),
      { code: 'ECONNREFUSED' },
    )
  })

  test('is a TLS connection to the host of the address for https', async (context) => {
    const folder = mkdtempSync(join(tmpdir(), 'polylog-early-'))
    context.after(() => rmSync(folder, { recursive: true, force: true }))
    const certificate = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost']
    const names = ['-addext', 'subjectAltName=DNS:localhost', '-keyout', 'key.pem', '-out', 'cert.pem']
    const made = spawnSync('openssl', ['req', ...certificate, ...names], { cwd: folder })
    if (made.status !== 0) return context.skip('there is no openssl here to make a certificate')
    server.close()
    const [key, cert] = [readFileSync(join(folder, 'key.pem')), readFileSync(join(folder, 'cert.pem'))]
    const port = await listen(
      https.createServer({ key, cert }, (_, response) => response.end('safe')),
      'secureConnection',
    )
    const secure = new https.Agent({ keepAlive: true, ca: cert })
    agent = secure
    const tls = new EarlyConnection(secure, { protocol: 'https:', hostname: 'localhost', port: String(port) })
    tls.open()
    await opened(1)
    assert.equal((connections[0] as unknown as { servername: string }).servername, 'localhost')
    assert.equal(await ask(https, 'localhost'), 'safe')
    assert.equal(connections.length, 1)
  })
})
