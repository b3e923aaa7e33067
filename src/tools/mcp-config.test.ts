import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { readMcpConfig, withVariables } from './mcp-config.ts'

const folder = mkdtempSync(join(tmpdir(), 'polylog-config-'))
after(() => rmSync(folder, { recursive: true }))

function read(content: unknown) {
  const path = join(folder, 'mcp.json')
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return readMcpConfig(path)
}

test('the shape of desktop clients is read, and what only they know is ignored', async () => {
  const config = await read({
    mcpServers: {
      files: { command: 'npx', args: ['-y', 'x'], env: { A: '1' }, type: 'stdio', autoApprove: [] },
      web: { url: 'https://example.com/mcp', type: 'http', headers: { authorization: 'x' }, disabled: true },
    },
    theme: 'dark',
  })

  assert.deepEqual(config.mcpServers, {
    files: { command: 'npx', args: ['-y', 'x'], env: { A: '1' } },
    web: { url: 'https://example.com/mcp', type: 'http', headers: { authorization: 'x' }, disabled: true },
  })
})

const broken: [what: string, content: unknown, message: RegExp][] = [
  ['is not JSON', '{', /POLYLOG_MCP_CONFIG: The file .* is not JSON/],
  ['has no servers', {}, /needs an object "mcpServers"/],
  [
    'has a server that is neither started nor called',
    { mcpServers: { a: {} } },
    /server "a" .* needs either a "command" or a "url"/,
  ],
  [
    'has a server that is both',
    { mcpServers: { a: { command: 'x', url: 'http://x' } } },
    /either a "command" or a "url"/,
  ],
  [
    'has arguments that are no list',
    { mcpServers: { a: { command: 'x', args: 'y' } } },
    /server "a" .* is not valid: args: /,
  ],
  ['has an address that is none', { mcpServers: { a: { url: 'file:///x' } } }, /server "a" .* is not valid: url: /],
]
for (const [what, content, message] of broken) {
  test(`a file that ${what} is refused with a sentence that names the place`, async () => {
    await assert.rejects(read(content), { code: 'config_invalid', message })
  })
}

test('a file that is not there is refused by its name', async () => {
  await assert.rejects(readMcpConfig(join(folder, 'none.json')), {
    code: 'config_invalid',
    message: /none\.json cannot be read/,
  })
})

test('variables are replaced, with their default where they have one', () => {
  const environment = { TOKEN: 'abc', EMPTY: '' }

  assert.deepEqual(withVariables({ a: 'Bearer ${TOKEN}', b: '${OTHER:-none}', c: '$TOKEN {TOKEN}' }, environment), {
    a: 'Bearer abc',
    b: 'none',
    c: '$TOKEN {TOKEN}',
  })
  assert.throws(() => withVariables({ a: '${NOT_SET}' }, environment), { message: /NOT_SET is not set/ })
})
