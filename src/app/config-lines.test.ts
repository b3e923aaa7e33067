// The line that a problem of the configuration file is about.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lineOfKey } from './config-lines.ts'

const source = `import { defineConfig } from 'polylog'

const data = './data'
export default defineConfig({
  tools: [defineTool({ name: 'x', port: 1 })],
  mcpServers: {
    port: { command: 'x' },
  },
  'port': 3000,
  data,
  hooks: { onRunEnded() {} }, log: 'info',
})
`

test('a key is found where it is written as a property, the outermost first', () => {
  assert.equal(lineOfKey(source, 'tools'), 5)
  assert.equal(lineOfKey(source, 'port'), 9)
  assert.equal(lineOfKey(source, 'mcpServers'), 6)
  assert.equal(lineOfKey(source, 'data'), 10)
  assert.equal(lineOfKey(source, 'log'), 11)
  assert.equal(lineOfKey(source, 'hooks'), 11)
  assert.equal(lineOfKey(source, 'bash'), null)
  assert.equal(lineOfKey(source, 'a(b'), null)
})
