// Hostile schemas on a real server: whatever schema a skill package or an MCP server brings, the
// request that brought it gets an answer, and other requests are not delayed.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { calls, endOf, says, someone, sharedTestServer } from '../support/test-server.ts'
import { errand, jobOf, upload, zipped } from '../support/jobs.ts'

const folder = mkdtempSync(join(tmpdir(), 'polylog-hostile-'))
const mcp = createServer((request, response) => {
  const pieces: Buffer[] = []
  request.on('data', (piece: Buffer) => pieces.push(piece))
  request.on('end', () => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const { id, method } = JSON.parse(Buffer.concat(pieces).toString()) as { id?: number; method: string }
    if (id === undefined) return void response.writeHead(202).end()
    const results: Record<string, object> = {
      initialize: {
        protocolVersion: '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 'x', version: '1' },
      },
      'tools/list': { tools: [{ name: 'picky', inputSchema: pickySchema, annotations: { readOnlyHint: true } }] },
      'tools/call': { content: [{ type: 'text', text: 'called' }] },
    }
    const result = results[method]
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: { code: -32601, message: 'no' } }) }),
    )
  })
})
const pickySchema = {
  type: 'object',
  properties: { text: { type: 'string', pattern: '^(a+)+$' } },
  required: ['text'],
}

const server = sharedTestServer(async () => {
  await new Promise<void>((resolve) => mcp.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(mcp.address() as AddressInfo).port}/mcp`
  const config = join(folder, 'mcp.json')
  writeFileSync(config, JSON.stringify({ mcpServers: { hostile: { url } } }))
  return { POLYLOG_MCP_CONFIG: config }
})
after(() => {
  mcp.closeAllConnections()
  mcp.close()
  rmSync(folder, { recursive: true })
})

async function temporaryJob(user: string) {
  const { body } = await server.call('POST', '/v1/temp-skill-runs', { user, body: { input: { what: user } } })
  return jobOf(server, 'temp-skill-runs', user, String(body.request_id))
}

/** Asked while the server is at work on something else. */
async function othersAreAnswered(): Promise<void> {
  assert.equal((await server.call('GET', '/v1/health')).status, 200)
}

describe('a skill package', () => {
  const many = (count: number) => Array.from({ length: count }, (_, index) => index)
  const hostile: [what: string, schema: object][] = [
    ['thousands of alternatives', { anyOf: many(30_000).map((value) => ({ const: value })) }],
    ['thousands of references', { $defs: { a: {} }, allOf: many(3_000).map(() => ({ $ref: '#/$defs/a' })) }],
    ['hundreds of patterns', { patternProperties: Object.fromEntries(many(500).map((n) => [`^p${n}`, {}])) }],
    ['a pattern that repeats repeats', { pattern: '((a{50}){50}){50}' }],
    ['a reference to another host', { $ref: 'https://elsewhere.invalid/schema.json' }],
  ]
  for (const [what, schema] of hostile) {
    test(`with ${what} in its schema is refused`, async () => {
      const user = someone('package')
      const job = await temporaryJob(user)

      const [refused] = await Promise.all([
        upload(server, job.path, user, {
          skill_package: zipped(errand({ 'assets/output.json': JSON.stringify(schema) })),
        }),
        othersAreAnswered(),
      ])

      assert.equal(refused.status, 400)
      assert.equal(refused.body.code, 'skill_package_invalid')
    })
  }

  test('whose schema doubles its work at every level fails its job and nothing else', async () => {
    const user = someone('doubling')
    const two = [
      { items: { $ref: '#/$defs/two' }, minItems: 9 },
      { items: { $ref: '#/$defs/two' }, maxItems: 0 },
    ]
    const schema = { $defs: { two: { anyOf: two } }, properties: { list: { $ref: '#/$defs/two' } } }
    const answer = `{"list":${'['.repeat(60)}${']'.repeat(60)}}`
    await server.provider.script([says(answer), says(answer), says(answer)], user)
    const job = await temporaryJob(user)
    const skill = zipped(errand({ 'assets/output.json': JSON.stringify(schema) }))
    assert.equal((await upload(server, job.path, user, { skill_package: skill })).status, 200)

    const [state] = await Promise.all([job.reaches('failed', 'succeeded'), othersAreAnswered()])

    assert.equal(state.status, 'failed')
    assert.match(JSON.stringify(state), /too many steps/)
  })
})

test('a pattern of an MCP server that takes a backtracking engine for ever is checked at once', async () => {
  const user = someone('picky')
  await server.provider.script([calls(['picky', { text: `${'a'.repeat(60)}!` }]), says('I see.')], user)

  const [frames] = await Promise.all([server.chatToEnd(user, user), othersAreAnswered()])

  assert.equal(endOf(frames).status, 'succeeded')
  assert.match(JSON.stringify(await server.asked(user)), /must match pattern/)
})
