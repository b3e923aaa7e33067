// A configuration in code is checked as a whole: every problem at once, by name and place.

import assert from 'node:assert/strict'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { checkConfig } from './check-config.ts'
import { readConfig } from './config.ts'
import { defineConfig } from './define-config.ts'

const folder = resolve('some-project')

function check(config: unknown, placeOf: (key: string) => string | null = () => null) {
  const checked = checkConfig(config, { folder, placeOf })
  return { ...checked, messages: checked.settings.problems.map(({ message }) => message) }
}

test('every kind of setting can stand in the file', () => {
  const checked = check(
    defineConfig({
      port: 0,
      data: './here',
      retentionDays: 1.5,
      openaiApiKey: 'k',
      openaiBaseUrl: 'http://127.0.0.1:9/v1',
      jwtWithoutExp: true,
      allowedHosts: ['a.example', '*.b.example'],
      trustProxy: ['10.0.0.0/8', 'loopback'],
      bash: 'confirm',
      model: undefined,
    }),
  )
  const config = readConfig({}, checked)

  assert.deepEqual(checked.messages, [])
  assert.deepEqual([config.port, config.dataDir, config.bash], [0, join(folder, 'here'), 'confirm'])
  assert.equal(config.limits.retentionMs, 1.5 * 24 * 60 * 60_000)
  assert.deepEqual(config.allowedHosts, ['a.example', '*.b.example'])
  assert.deepEqual(config.trustProxy, ['10.0.0.0/8', 'loopback'])
  assert.equal(config.providers.openaiApiKey, 'k')
  assert.equal(config.auth.allowTokensWithoutExp, true)
  assert.equal(readConfig({}, check({ trustProxy: 2 })).trustProxy, 2)
  assert.equal(readConfig({}, check({ trustProxy: false })).trustProxy, false)
})

test('an unknown key is an error that names the nearest known one', () => {
  const { messages } = check({
    prot: 1,
    POLYLOG_MAX_STEPS: 1,
    PORT: 1,
    mcpServer: {},
    nothingLikeIt: 1,
    config: 'x',
    nodeEnv: '',
  })

  assert.deepEqual(messages, [
    'prot is not a setting; did you mean port?',
    'POLYLOG_MAX_STEPS is not a setting; did you mean maxSteps?',
    'PORT is not a setting; did you mean port?',
    'mcpServer is not a setting; did you mean mcpServers?',
    'nothingLikeIt is not a setting; docs/configuration-file.md lists them all.',
    'config is not a setting; docs/configuration-file.md lists them all.',
    'nodeEnv is not a setting; docs/configuration-file.md lists them all.',
  ])
})

test('a value of another type is refused without being shown', () => {
  const { messages } = check(
    {
      port: '80',
      bash: true,
      openaiApiKey: ['s3cret'],
      jwtWithoutExp: 'yes',
      allowedHosts: 'a,b',
      corsOrigins: ['https://a.example,https://b.example'],
      log: null,
      trustProxy: {},
    },
    (key) => (key === 'port' ? 'polylog.config.ts:3' : null),
  )

  assert.deepEqual(messages, [
    'polylog.config.ts:3: port is a text; it must be a number from 0 to 65535.',
    `bash is a boolean; it must be one of 'off', 'confirm', 'allow'.`,
    'openaiApiKey is a list; it must be a text.',
    'jwtWithoutExp is a text; it must be true or false.',
    'allowedHosts is a text; it must be a list of texts, none of which holds a comma.',
    'corsOrigins is a list; it must be a list of texts, none of which holds a comma.',
    `log is null; it must be one of 'trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'.`,
    'trustProxy is an object; it must be a text, a number, true, false or a list of texts.',
  ])
})

test('a value that the setting does not allow is refused as one of the environment is', () => {
  for (const [config, sentence] of [
    [{ port: 0.5 }, /port is "0.5"; it must be a whole number/],
    [{ port: Number.NaN }, /port is "NaN"; it must be a whole number/],
    [{ maxSteps: 1e21 }, /maxSteps is "1e\+21"; it must be/],
    [{ openaiBaseUrl: 'nowhere' }, /openaiBaseUrl has a value that is not shown here; it must be a URL/],
  ] as const)
    assert.throws(() => readConfig({}, check(config)), sentence)
})

test('agents, MCP servers, models and hooks are taken as they are, with paths from the folder of the file', () => {
  const onRunEnded = () => {}
  const checked = check(
    defineConfig({
      agents: ['./agents'],
      mcpServers: { files: { command: 'my-server', cwd: 'sub' }, search: { url: 'https://mcp.example/mcp' } },
      models: { default: {}, brief: { temperature: 0.2, tools: ['current_time'] } },
      hooks: { onRunEnded },
    }),
  )

  assert.deepEqual(checked.messages, [])
  assert.deepEqual(checked.agents, [join(folder, 'agents')])
  assert.deepEqual(checked.mcp?.mcpServers['files'], { command: 'my-server', cwd: join(folder, 'sub') })
  assert.deepEqual(checked.models, [{ name: 'default' }, { name: 'brief', temperature: 0.2, tools: ['current_time'] }])
  assert.equal(checked.hooks.onRunEnded, onRunEnded)
})

test('each wrong part has its sentence, and all come together', () => {
  const { messages, tools, agents, hooks } = check({
    tools: {},
    agents: './agents',
    mcpServers: { files: {} },
    models: { brief: { temprature: 1 } },
    hooks: { onRunEnd() {}, onRunEnded: 'x' },
  })

  assert.deepEqual(messages, [
    'tools must be a list: [defineTool({ … })].',
    `agents must be a list of folders: ['./agents'].`,
    'The server "files" in the configuration needs either a "command" or a "url".',
    'The set "brief" of models does not fit: Unrecognized key: "temprature".',
    'There is no hook onRunEnd; known are onRunEnded.',
    'The hook onRunEnded must be a function.',
  ])
  assert.deepEqual([tools, agents, hooks], [[], [], {}])
  assert.match(check({ models: { brief: 5 } }).messages[0] ?? '', /The set "brief" of models does not fit/)
  assert.match(check({ mcpServers: [] }).messages[0] ?? '', /must hold an object for each server/)
})

test('a part and the setting that names a file for it cannot both be given', () => {
  const { messages } = check({ mcpServers: {}, mcpConfig: 'mcp.json', agents: [], agentsDir: 'x' })

  assert.deepEqual(messages, [
    'mcpServers and mcpConfig say the same thing; keep one of them.',
    'agents and agentsDir say the same thing; keep one of them.',
  ])
})

test('anything but an object is no configuration', () => {
  for (const config of [null, 5, 'x', [], () => ({})]) {
    assert.deepEqual(check(config).messages, ['The configuration must be an object: defineConfig({ … }).'])
  }
})

// The compiler checks these.
defineConfig({
  port: 3000,
  log: 'debug',
  // @ts-expect-error: a list, not a text
  allowedHosts: 'a',
})
defineConfig({
  // @ts-expect-error: there is no such setting
  prot: 3000,
})
defineConfig({
  // @ts-expect-error: the file cannot name itself
  config: 'x',
})
