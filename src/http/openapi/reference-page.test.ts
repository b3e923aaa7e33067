import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import { referencePage } from './reference-page.ts'

test('everybody who asks for the API page or its script gets the same bytes in memory, not a copy', async () => {
  const server = Fastify()
  const sent: unknown[] = []
  server.addHook('onSend', async (_request, _reply, body) => {
    sent.push(body)
    return body
  })
  referencePage(server)
  for (const [path, type] of [
    ['/docs/', 'text/html; charset=utf-8'],
    ['/docs/js/scalar.js', 'application/javascript; charset=utf-8'],
  ] as const) {
    const first = await server.inject(path)
    const second = await server.inject(`${path}?again`)

    assert.deepEqual([first.statusCode, first.headers['content-type']], [200, type])
    assert.deepEqual(second.headers, first.headers)
    const [one, other] = sent.splice(0)
    assert.ok(Buffer.isBuffer(one), path)
    assert.equal(other, one, path)
  }
  await server.close()
})
