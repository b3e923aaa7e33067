import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { basename, isAbsolute, join, resolve } from 'node:path'
import { test } from 'node:test'
import { AppError } from '../errors/app-error.ts'
import { isLoopback } from '../kit/loopback.ts'
import { type CodeParts, describeConfig, readConfig, unknownSettings } from './config.ts'
import { fileNameOf } from './setting-names.ts'
import { type SettingName, settingTable } from './setting-table.ts'
import { riskySettings } from './risky-settings.ts'

const hash = 'a'.repeat(64)

function problemsOf(environment: Record<string, string>): { variable: string; message: string }[] {
  try {
    readConfig(environment)
  } catch (error) {
    assert.ok(error instanceof AppError)
    assert.equal(error.code, 'config_invalid')
    const problems = error.details?.['problems'] as { variable: string; message: string }[]
    for (const problem of problems)
      assert.ok(error.message.includes(problem.message), 'the message lists every problem')
    return problems
  }
  return []
}

test('an empty environment gives the documented defaults', () => {
  const config = readConfig({})

  assert.equal(config.host, '127.0.0.1')
  assert.equal(config.port, 3000)
  assert.equal(config.dataDir, resolve('data'))
  assert.equal(config.workspaceDir, join(resolve('data'), 'workspace'))
  assert.equal(config.workspaceShared, false)
  assert.equal(config.bash, 'off')
  assert.equal(config.sandbox, 'auto')
  assert.equal(basename(config.skillsDir), 'skills')
  assert.equal(config.databaseUrl, null)
  assert.equal(config.databaseConnections, 16)
  assert.equal(config.bus, null)
  assert.equal(config.model, null)
  assert.ok(Object.values(config.providers).every((value) => value === null))
  assert.equal(config.openaiClient, 'lean')
  assert.equal(config.auth.mode, 'open')
  assert.equal(config.rateLimitPerMinute, 0)
  assert.equal(config.trustProxy, false)
  assert.deepEqual(config.corsOrigins, [])
  assert.equal(config.engine, 'local')
  assert.equal(config.engineFallback, 'local')
  assert.deepEqual([config.pingMs, config.fcmpHeartbeatMs, config.sessionHeartbeatMs], [15_000, 5_000, 2_000])
  assert.equal(config.onDisconnect, 'continue')
  assert.equal(config.mcpConfigFile, null)
  const [agents = '', ...ownAgents] = config.agentsDirs
  assert.ok(isAbsolute(agents) && existsSync(agents))
  assert.deepEqual(ownAgents, [])
  assert.equal(config.agentsReload, true)
  assert.deepEqual(config.limits, {
    jsonBodyBytes: 2 * 1024 * 1024,
    uploadBytes: 20 * 1024 * 1024,
    ownerFileBytes: 1024 * 1024 * 1024,
    fileTtlMs: 24 * 60 * 60_000,
    stepsMax: 25,
    contextTokens: 32_000,
    providerRetries: 2,
    providerRetryBudgetMs: 8_000,
    runMaxMs: 30 * 60_000,
    stallMs: 120_000,
    concurrency: 1024,
    nodeConcurrency: 1024,
    unplaceableMs: 60_000,
    leaseMs: 30_000,
    queueMax: 1024,
    confirmationTtlMs: 24 * 60 * 60_000,
    uploadTtlMs: 24 * 60 * 60_000,
    retentionMs: null,
    toolsAtOnce: 16,
    toolTimeoutMs: 60_000,
    budgets: {
      run: { microUsd: null, tokens: null },
      userDay: { microUsd: null, tokens: null },
      day: { microUsd: null, tokens: null },
    },
  })
  assert.equal(config.demoPaceMs, 15)
  assert.equal(config.freezeMaxMs, 60_000)
  assert.equal(config.logLevel, 'info')
})

test('every setting that is given is used', () => {
  const config = readConfig({
    HOST: '[::1]',
    PORT: '0',
    POLYLOG_DATA: 'elsewhere',
    POLYLOG_DATABASE_URL: 'postgres://user:word@db.example/polylog',
    POLYLOG_DATABASE_CONNECTIONS: '40',
    POLYLOG_BUS: 'nats://user:word@bus.example/blue',
    POLYLOG_MODEL: ' openai/gpt-x ',
    OPENAI_API_KEY: 'k1',
    OPENAI_BASE_URL: 'http://127.0.0.1:9/v1/',
    ANTHROPIC_API_KEY: 'k2',
    GOOGLE_GENERATIVE_AI_API_KEY: 'k3',
    OLLAMA_BASE_URL: 'http://127.0.0.1:11434',
    POLYLOG_OPENAI_CLIENT: 'ai-sdk',
    POLYLOG_AUTH: 'required',
    POLYLOG_JWT_SECRET: ' blanks belong to it ',
    POLYLOG_JWKS_URL: 'https://login.example/keys',
    POLYLOG_JWT_ISSUER: 'iss',
    POLYLOG_JWT_AUDIENCE: 'aud',
    POLYLOG_API_KEYS: `ann=${hash}, b=o=b=${'B'.repeat(64)}`,
    POLYLOG_RATE_LIMIT: '7',
    POLYLOG_TRUST_PROXY: 'yes',
    POLYLOG_CORS_ORIGINS: 'https://a.example, http://localhost:5173',
    POLYLOG_ENGINE: 'OpenClaw',
    POLYLOG_ENGINE_FALLBACK: 'none',
    OPENCLAW_URL: 'http://claw.example',
    OPENCLAW_TOKEN: 't',
    POLYLOG_PING_MS: '50',
    POLYLOG_ON_DISCONNECT: 'cancel',
    POLYLOG_WORKSPACE: 'work',
    POLYLOG_BASH: 'confirm',
    POLYLOG_SANDBOX: 'bwrap',
    POLYLOG_SKILLS_DIR: 'my-skills',
    POLYLOG_AGENTS_DIR: 'my-agents',
    NODE_ENV: 'production',
    FEISHU_APP_ID: 'app',
    FEISHU_APP_SECRET: 'hush',
    FEISHU_BASE_URL: 'http://127.0.0.1:1',
    POLYLOG_MCP_CONFIG: 'mcp.json',
    POLYLOG_RETENTION_DAYS: '1.5',
    POLYLOG_QUEUE_MAX: '0',
    POLYLOG_LOG: 'debug',
  })

  assert.equal(config.host, '::1')
  assert.equal(config.port, 0)
  assert.equal(config.databaseUrl, 'postgres://user:word@db.example/polylog')
  assert.equal(config.databaseConnections, 40)
  assert.deepEqual(config.bus, { natsUrl: 'nats://user:word@bus.example/blue' })
  assert.equal(config.model, 'openai/gpt-x')
  assert.equal(config.providers.openaiBaseUrl, 'http://127.0.0.1:9/v1/')
  assert.equal(config.openaiClient, 'ai-sdk')
  assert.equal(config.auth.mode, 'required')
  assert.equal(config.auth.jwtSecret, ' blanks belong to it ')
  assert.deepEqual(
    [...config.auth.apiKeys],
    [
      [hash, 'ann'],
      ['b'.repeat(64), 'b=o=b'],
    ],
  )
  assert.equal(config.rateLimitPerMinute, 7)
  assert.equal(config.trustProxy, 1)
  assert.deepEqual(config.corsOrigins, ['https://a.example', 'http://localhost:5173'])
  assert.equal(config.engine, 'openclaw')
  assert.equal(config.engineFallback, 'none')
  assert.equal(config.pingMs, 50)
  assert.equal(config.onDisconnect, 'cancel')
  assert.equal(config.workspaceDir, resolve('work'))
  assert.equal(config.bash, 'confirm')
  assert.equal(config.sandbox, 'bwrap')
  assert.equal(config.skillsDir, resolve('my-skills'))
  assert.deepEqual([config.agentsDirs.length, config.agentsDirs[1]], [2, resolve('my-agents')])
  assert.equal(config.agentsReload, false)
  assert.equal(config.mcpConfigFile, resolve('mcp.json'))
  assert.equal(config.limits.retentionMs, 1.5 * 24 * 60 * 60_000)
  assert.equal(config.limits.queueMax, 0)
  assert.equal(config.logLevel, 'debug')
})

test('LOG_LEVEL sets the log level unless POLYLOG_LOG does', () => {
  assert.equal(readConfig({ LOG_LEVEL: 'warn' }).logLevel, 'warn')
  assert.equal(readConfig({ LOG_LEVEL: 'warn', POLYLOG_LOG: 'error' }).logLevel, 'error')
})

test('the value is frozen at every depth', () => {
  const config = readConfig({})

  assert.throws(() => Object.assign(config, { port: 1 }), TypeError)
  assert.throws(() => Object.assign(config.limits, { stepsMax: 1 }), TypeError)
})

test('an empty or blank value counts as unset', () => {
  const config = readConfig({ PORT: '', HOST: ' ', POLYLOG_AUTH: '', OPENAI_API_KEY: '  ', POLYLOG_JWT_SECRET: ' ' })

  assert.equal(config.port, 3000)
  assert.equal(config.host, '127.0.0.1')
  assert.equal(config.providers.openaiApiKey, null)
  assert.equal(config.auth.jwtSecret, null)
})

test('an openclaw engine needs the address of its gateway, without credentials', () => {
  const [missing] = problemsOf({ POLYLOG_ENGINE: 'openclaw' })
  assert.equal(missing?.variable, 'OPENCLAW_URL')
  const [secret] = problemsOf({ OPENCLAW_URL: 'http://ada:hunter2@claw.example' })
  assert.match(secret?.message ?? '', /must not contain a user name or a password/)
  assert.equal(secret?.message.includes('hunter2'), false)
})

test('all problems are reported together, each with its variable, what was given and what is allowed', () => {
  const problems = problemsOf({
    PORT: '70000',
    POLYLOG_PING_MS: '1e3',
    POLYLOG_ON_DISCONNECT: 'maybe',
    POLYLOG_ENGINE: 'remote',
    POLYLOG_TRUST_PROXY: 'maybe',
    OPENAI_BASE_URL: 'api.example',
    POLYLOG_CORS_ORIGINS: 'https://a.example/path',
    HOST: 'localhost:3000',
    POLYLOG_AUTH: 'open',
  })

  const said = Object.fromEntries(problems.map((problem) => [problem.variable, problem.message]))
  assert.equal(said['PORT'], 'PORT is "70000"; it must be a whole number from 0 to 65535.')
  assert.match(said['POLYLOG_ON_DISCONNECT'] ?? '', /"maybe".*continue, cancel/)
  assert.match(said['POLYLOG_PING_MS'] ?? '', /"1e3".*whole number/)
  assert.equal(said['POLYLOG_ENGINE'], 'POLYLOG_ENGINE is "remote"; it must be one of local, openclaw.')
  assert.match(said['POLYLOG_TRUST_PROXY'] ?? '', /the number of proxies/)
  assert.match(said['OPENAI_BASE_URL'] ?? '', /http:\/\/ or https:\/\//)
  assert.match(said['POLYLOG_CORS_ORIGINS'] ?? '', /"https:\/\/a\.example\/path"/)
  assert.match(said['HOST'] ?? '', /without a port/)
  assert.equal(problems.length, 8)
})

test('a server that others can reach must say whether it is open', () => {
  for (const HOST of ['0.0.0.0', '::', '192.168.1.4', 'polylog.example', '127.1']) {
    assert.deepEqual(
      problemsOf({ HOST }).map((problem) => problem.variable),
      ['POLYLOG_AUTH'],
      HOST,
    )
    assert.equal(readConfig({ HOST, POLYLOG_AUTH: 'open' }).auth.mode, 'open')
  }
})

test('a loopback server is open by default and has no rate limit; any other has one', () => {
  for (const HOST of ['127.0.0.1', '127.8.9.10', '::1', '0:0:0:0:0:0:0:1', 'LOCALHOST', '::ffff:127.0.0.1']) {
    assert.ok(isLoopback(HOST), HOST)
    assert.equal(readConfig({ HOST }).auth.mode, 'open')
    assert.equal(readConfig({ HOST }).rateLimitPerMinute, 0)
  }
  assert.equal(readConfig({ HOST: '0.0.0.0', POLYLOG_AUTH: 'open' }).rateLimitPerMinute, 600)
  assert.equal(readConfig({ HOST: '0.0.0.0', POLYLOG_AUTH: 'open', POLYLOG_RATE_LIMIT: '0' }).rateLimitPerMinute, 0)
})

test('required logins need no secret in the settings: keys may be stored', () => {
  assert.equal(readConfig({ POLYLOG_AUTH: 'required' }).auth.mode, 'required')
  assert.equal(readConfig({ POLYLOG_AUTH: 'required', POLYLOG_JWT_SECRET: 's' }).auth.mode, 'required')
  assert.equal(readConfig({ POLYLOG_AUTH: 'required', POLYLOG_JWKS_URL: 'https://x.example/k' }).auth.mode, 'required')
  assert.equal(readConfig({ POLYLOG_AUTH: 'required', POLYLOG_API_KEYS: `u=${hash}` }).auth.mode, 'required')
})

test('a wrong API key entry is named by its place and never shown', () => {
  const problems = problemsOf({
    POLYLOG_API_KEYS: `ann=${hash},bob=plain-s3cret,s3cret,=${'c'.repeat(64)},eve=${hash}`,
  })

  assert.deepEqual(
    problems.map((problem) => /entry \d/.exec(problem.message)?.[0]),
    ['entry 2', 'entry 3', 'entry 4', 'entry 5'],
  )
  assert.doesNotMatch(JSON.stringify(problems), /s3cret/)
})

test('the bus between servers belongs to a database that they share', () => {
  const POLYLOG_DATABASE_URL = 'postgres://db.example/d'
  assert.equal(readConfig({ POLYLOG_DATABASE_URL }).bus, 'postgres')
  assert.equal(readConfig({ POLYLOG_BUS: 'postgres' }).bus, null)
  assert.deepEqual(readConfig({ POLYLOG_DATABASE_URL, POLYLOG_BUS: 'tls://t@b' }).bus, { natsUrl: 'tls://t@b' })
  for (const [POLYLOG_BUS, sentence] of [
    ['redis://u:s3cret@h', /has a value that is not shown here; it must be postgres, or a URL/],
    ['nats', /must be postgres, or a URL/],
    ['nats://', /must be postgres, or a URL/],
  ] as const) {
    const [problem] = problemsOf({ POLYLOG_DATABASE_URL, POLYLOG_BUS })
    assert.match(problem?.message ?? '', sentence)
  }
  assert.match(problemsOf({ POLYLOG_BUS: 'nats://h' })[0]?.message ?? '', /set POLYLOG_DATABASE_URL too/)
})

test('neither problems nor the start-up description show a secret', () => {
  const problems = problemsOf({ POLYLOG_DATABASE_URL: 'mysql://u:s3cret@h/d', POLYLOG_JWKS_URL: 'ftp://u:s3cret@h' })
  const config = readConfig({
    POLYLOG_DATABASE_URL: 'postgres://u:s3cret@db.example/d?password=s3cret',
    POLYLOG_JWT_SECRET: 's3cret',
    POLYLOG_JWKS_URL: 'https://u:s3cret@h.example/k?x=s3cret',
    POLYLOG_API_KEYS: `ann=${hash}`,
    OPENAI_API_KEY: 's3cret',
    ANTHROPIC_API_KEY: 's3cret',
    FEISHU_APP_ID: 'x',
    FEISHU_APP_SECRET: 's3cret',
    OPENCLAW_TOKEN: 's3cret',
  })
  const described = JSON.stringify(describeConfig(config))

  assert.equal(problems.length, 2)
  assert.doesNotMatch(JSON.stringify(problems), /s3cret/)
  assert.doesNotMatch(described, /s3cret/)
  assert.doesNotMatch(described, new RegExp(hash))
  assert.match(described, /db\.example/)
})

test('a misspelt setting stops the start, and the error suggests the right name', () => {
  for (const [name, meant] of [
    ['POLYLOG_PIGN_MS', 'POLYLOG_PING_MS'],
    ['POLYLOG_AUHT', 'POLYLOG_AUTH'],
    ['POLYLOG_MODELS', 'POLYLOG_MODEL'],
    ['polylog_auth', 'POLYLOG_AUTH'],
    ['POLYLOG_PORT', 'PORT'],
    ['POLYLOG_OPENAI_API_KEY', 'OPENAI_API_KEY'],
  ] as const)
    assert.throws(() => readConfig({ [name]: 'x' }), {
      message: new RegExp(`${name} is not a setting; did you mean ${meant}\\?`),
    })
})

test('a name that is similar to no setting is only a warning: another version may know it', () => {
  const environment = {
    POLYLOG_SOMETHING_ELSE: 'x',
    POLYLOG_HOME: '/srv',
    POLYLOG_TAG: '1',
    POLYLOG_PING_MS: '1',
    HOME: 'x',
  }

  readConfig(environment)
  assert.deepEqual(
    unknownSettings(environment),
    ['POLYLOG_SOMETHING_ELSE', 'POLYLOG_HOME', 'POLYLOG_TAG'].map((name) => ({ name, meant: undefined })),
  )
})

test('the variables that Kubernetes sets for a service named polylog are no settings, and no mistakes', () => {
  const environment = {
    POLYLOG_SERVICE_HOST: '10.0.0.7',
    POLYLOG_SERVICE_PORT: '3000',
    POLYLOG_SERVICE_PORT_HTTP: '3000',
    POLYLOG_PORT: 'tcp://10.0.0.7:3000',
    POLYLOG_PORT_3000_TCP: 'tcp://10.0.0.7:3000',
    POLYLOG_PORT_3000_TCP_PROTO: 'tcp',
    POLYLOG_PORT_3000_TCP_PORT: '3000',
    POLYLOG_PORT_3000_TCP_ADDR: '10.0.0.7',
  }

  assert.equal(readConfig(environment).port, 3000)
  assert.deepEqual(unknownSettings(environment), [])
})

test('POLYLOG_TRUST_PROXY is a number of proxies or their addresses; true means one', () => {
  const read = (value: string) => readConfig({ POLYLOG_TRUST_PROXY: value }).trustProxy

  for (const value of ['', '0', 'false', 'off', 'no']) assert.equal(read(value), false, value)
  for (const value of ['1', 'true', 'YES', 'on']) assert.equal(read(value), 1, value)
  assert.equal(read('2'), 2)
  assert.deepEqual(read('10.0.0.1, 10.0.0.0/8,fd00::/8,Loopback'), ['10.0.0.1', '10.0.0.0/8', 'fd00::/8', 'loopback'])
  for (const value of [
    '11',
    '-1',
    '*',
    'all',
    '10.0.0.0/33',
    '0.0.0.0/0',
    '::/0',
    '10.0.0.1/8/9',
    '10.0.0.1,,x',
    'proxy.example',
  ])
    assert.throws(() => read(value), /POLYLOG_TRUST_PROXY is .*number of proxies/, value)
})

test('POLYLOG_ALLOWED_HOSTS holds names and addresses, without scheme and port', () => {
  const read = (value: string) => readConfig({ POLYLOG_ALLOWED_HOSTS: value }).allowedHosts

  assert.deepEqual(read('App.example.com, *.example.org, [::1], 10.0.0.1, *'), [
    'app.example.com',
    '*.example.org',
    '::1',
    '10.0.0.1',
    '*',
  ])
  for (const value of ['https://app.example.com', 'app.example.com:443', 'a*.example.com', '*.', 'a b'])
    assert.throws(() => read(value), /POLYLOG_ALLOWED_HOSTS is .*without a scheme and a port/, value)
})

test('settings that allow every web page cause a warning in open mode, and only there', () => {
  const wide = { POLYLOG_CORS_ORIGINS: '*', POLYLOG_ALLOWED_HOSTS: '*' }
  const [origins, hosts] = riskySettings(readConfig({ ...wide, POLYLOG_BASH: 'confirm' }))

  assert.match(origins ?? '', /^POLYLOG_CORS_ORIGINS is \*: .*run commands/)
  assert.match(hosts ?? '', /^POLYLOG_ALLOWED_HOSTS is \*/)
  assert.deepEqual(riskySettings(readConfig({})), [])
  assert.deepEqual(riskySettings(readConfig({ ...wide, POLYLOG_AUTH: 'required', POLYLOG_JWT_SECRET: 'x' })), [])
})

test('every setting that is declared is read', () => {
  const read = new Set<string>()
  const environment: Record<string, string | undefined> = new Proxy(
    {},
    {
      get: (_target, name) => {
        read.add(String(name))
        return undefined
      },
    },
  )

  readConfig(environment)
  assert.deepEqual([...read].toSorted(), Object.keys(settingTable).toSorted())
})

test('every setting has a name of its own in the configuration file', () => {
  const names = Object.keys(settingTable).map((variable) => fileNameOf(variable))

  assert.equal(new Set(names).size, names.length)
  assert.equal(fileNameOf('POLYLOG_MAX_STEPS'), 'maxSteps')
  assert.equal(fileNameOf('GOOGLE_GENERATIVE_AI_API_KEY'), 'googleGenerativeAiApiKey')
  assert.equal(fileNameOf('PORT'), 'port')
})

function fileWith(values: Partial<Record<SettingName, string>>): CodeParts {
  const settings = {
    values: new Map(Object.entries(values) as [SettingName, string][]),
    folder: resolve('elsewhere'),
    placeOf: (key: string) => (key === 'port' ? 'polylog.config.ts:7' : null),
    problems: [],
  }
  return { settings, agents: [], mcp: null, models: null, providers: null }
}

test('a setting of the file counts if the environment does not set it, or sets it to nothing', () => {
  const file = fileWith({ PORT: '4000', POLYLOG_MAX_STEPS: '3', POLYLOG_LOG: 'debug' })
  const config = readConfig({ PORT: '5000', POLYLOG_LOG: ' ' }, file)

  assert.deepEqual([config.port, config.limits.stepsMax, config.logLevel], [5000, 3, 'debug'])
})

test('a path of the file starts at the folder of the file, one of the environment at the working directory', () => {
  const file = fileWith({ POLYLOG_DATA: 'd', POLYLOG_WORKSPACE: 'w' })
  const config = readConfig({ POLYLOG_WORKSPACE: 'w' }, file)

  assert.deepEqual([config.dataDir, config.workspaceDir], [join(resolve('elsewhere'), 'd'), resolve('w')])
})

test('a wrong setting of the file is called by its name there, with its place', () => {
  assert.throws(() => readConfig({}, fileWith({ PORT: '70000', POLYLOG_MAX_STEPS: '0' })), {
    message: /\n  port \(polylog\.config\.ts:7\) is "70000"; it must be .*\n  maxSteps is "0"; it must be /,
  })
})

test('agents, MCP servers and models of the file count unless the environment names others', () => {
  const agents = [resolve('mine')]
  const code = { ...fileWith({}), agents, mcp: { mcpServers: {} }, models: [{ name: 'brief' }] }
  const fromFile = readConfig({}, code)
  const others = { POLYLOG_AGENTS_DIR: 'other', POLYLOG_MCP_CONFIG: 'm.json', POLYLOG_MODEL_CONFIGS: 'c.json' }
  const fromEnvironment = readConfig(others, code)

  assert.deepEqual(fromFile.agentsDirs.slice(1), agents)
  assert.deepEqual([fromFile.mcpServers, fromFile.modelSets], [code.mcp, code.models])
  assert.deepEqual(fromEnvironment.agentsDirs.slice(1), [resolve('other')])
  assert.deepEqual([fromEnvironment.mcpServers, fromEnvironment.modelSets], [null, null])
  assert.equal(fromEnvironment.mcpConfigFile, resolve('m.json'))
})

test('a budget is read in dollars and in tokens; 0 means none', () => {
  const { budgets } = readConfig({
    POLYLOG_BUDGET_RUN_USD: '0.5',
    POLYLOG_BUDGET_USER_DAY_TOKENS: '1000',
    POLYLOG_BUDGET_DAY_USD: '0',
  }).limits

  assert.deepEqual(budgets, {
    run: { microUsd: 500_000, tokens: null },
    userDay: { microUsd: null, tokens: 1000 },
    day: { microUsd: null, tokens: null },
  })
})

test('traces are on only with an endpoint, under the standard names of OpenTelemetry', () => {
  assert.equal(readConfig({}).telemetry, null)
  assert.equal(readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318', OTEL_SDK_DISABLED: 'true' }).telemetry, null)
  assert.deepEqual(
    readConfig({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318/',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20s3cret,x-a=1',
      OTEL_RESOURCE_ATTRIBUTES: 'service.name=walks,team=hills',
    }).telemetry,
    {
      tracesUrl: 'http://c:4318/v1/traces',
      headers: { authorization: 'Bearer s3cret', 'x-a': '1' },
      serviceName: 'walks',
      resourceAttributes: { 'service.name': 'walks', team: 'hills' },
    },
  )
  const both = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://t/x' }
  assert.equal(readConfig({ ...both, OTEL_SERVICE_NAME: 'n' }).telemetry?.tracesUrl, 'http://t/x')
  assert.throws(
    () => readConfig({ OTEL_EXPORTER_OTLP_HEADERS: 's3cret' }),
    (error: Error) => {
      assert.match(error.message, /OTEL_EXPORTER_OTLP_HEADERS/)
      assert.doesNotMatch(error.message, /s3cret/)
      return true
    },
  )
})

test('one node executes as many runs as all nodes together, unless it is told a smaller number', () => {
  const { limits } = readConfig({ POLYLOG_CONCURRENCY: '6' })
  assert.deepEqual([limits.concurrency, limits.nodeConcurrency], [6, 6])
  assert.equal(readConfig({ POLYLOG_CONCURRENCY: '6', POLYLOG_NODE_CONCURRENCY: '2' }).limits.nodeConcurrency, 2)
  assert.equal(readConfig({ POLYLOG_CONCURRENCY: '6', POLYLOG_NODE_CONCURRENCY: '9' }).limits.nodeConcurrency, 6)
})
