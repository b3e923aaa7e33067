import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, test } from 'node:test'
import { clusterBusContract } from '../../test/contracts/cluster-bus-contract.ts'
import { natsMissing, startNatsServer } from '../../test/support/nats-server.ts'
import { systemClock } from '../kit/clock.ts'
import type { ClusterBus } from './cluster-bus.ts'
import { natsAddress, openNatsBus } from './nats-bus.ts'

const log = { info: () => {}, warn: () => {} }

const open = (url: string, node: string) => openNatsBus({ url, node, clock: systemClock, log })

/** Resolves with the first run that `bus` hears a signal for. */
const firstSignal = (bus: ClusterBus) =>
  new Promise<string | null>((resolve) => {
    bus.listen({ announced: () => {}, signalled: resolve, missed: () => {} })
  })

test('the URL says everything about the connection', () => {
  assert.deepEqual(natsAddress('nats://bus.example'), {
    subject: 'polylog.hints',
    connection: { servers: 'bus.example:4222' },
  })
  assert.deepEqual(natsAddress('nats://u:p%40ss@bus.example:1/blue?ca=/ca.pem&cert=/c.pem&key=/k.pem'), {
    subject: 'blue.hints',
    connection: {
      servers: 'bus.example:1',
      user: 'u',
      pass: 'p@ss',
      tls: { caFile: '/ca.pem', certFile: '/c.pem', keyFile: '/k.pem' },
    },
  })
  assert.deepEqual(natsAddress('tls://token@bus.example').connection, {
    servers: 'bus.example:4222',
    token: 'token',
    tls: {},
  })
})

test('a server that is not there is said at the start, without the password', async () => {
  await assert.rejects(open('nats://u:s3cret@127.0.0.1:1', 'n'), (error: Error) => {
    assert.match(error.message, /NATS server of POLYLOG_BUS cannot be used.*Start it/)
    assert.doesNotMatch(error.message, /s3cret/)
    return true
  })
})

describe('with a NATS server', { skip: natsMissing }, () => {
  clusterBusContract('NATS', async () => {
    const server = await startNatsServer()
    const url = `nats://127.0.0.1:${server.port}`
    return {
      open: (node, meter) => openNatsBus({ url, node, clock: systemClock, log, meter }),
      cut: () => server.kill(),
      heal: () => server.restart(),
      stop: () => server.kill(),
    }
  })

  it('clusters with another subject hear nothing of each other', async () => {
    const server = await startNatsServer()
    const url = `nats://127.0.0.1:${server.port}`
    const [a, b, other] = [
      await open(`${url}/blue`, 'a'),
      await open(`${url}/blue`, 'b'),
      await open(`${url}/red`, 'c'),
    ]
    const heard = firstSignal(b)
    other.signal('red')
    await other.close()
    a.signal('blue')
    assert.equal(await heard, 'blue')
    await a.close()
    await b.close()
    await server.kill()
  })

  it('a wrong password is refused, the right one works', async () => {
    const server = await startNatsServer(['--user', 'u', '--pass', 'right'])
    const url = (password: string) => `nats://u:${password}@127.0.0.1:${server.port}`
    await assert.rejects(open(url('wrong'), 'a'), /POLYLOG_BUS cannot be used/)
    const [a, b] = [await open(url('right'), 'a'), await open(url('right'), 'b')]
    const heard = firstSignal(b)
    a.signal('r')
    assert.equal(await heard, 'r')
    await a.close()
    await b.close()
    await server.kill()
  })

  it('an encrypted connection checks the certificate', async (context) => {
    const folder = mkdtempSync(join(tmpdir(), 'polylog-nats-'))
    context.after(() => rmSync(folder, { recursive: true, force: true }))
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1']
    execFileSync(
      'openssl',
      ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, ...subject],
      {
        stdio: 'ignore',
      },
    )
    const server = await startNatsServer(['--tls', '--tlscert', cert, '--tlskey', key])
    const url = `tls://127.0.0.1:${server.port}`
    await assert.rejects(open(url, 'a'), /POLYLOG_BUS cannot be used/)
    const [a, b] = [await open(`${url}?ca=${cert}`, 'a'), await open(`${url}?ca=${cert}`, 'b')]
    const heard = firstSignal(b)
    a.signal('r')
    assert.equal(await heard, 'r')
    await a.close()
    await b.close()
    await server.kill()
  })
})
