// Reads the settings once at the start into one frozen value: from the environment and, if
// it does not set one, from the configuration file. Every default is in this file, every
// setting is declared in setting-table.ts. All problems are reported together, by name.

import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type AuthSettings, userCharsMax } from '../http/caller.ts'
import type { TrustProxy } from '../http/trust-proxy.ts'
import { isLoopback } from '../kit/loopback.ts'
import { allowedHostProblem } from '../files/allowed-hosts.ts'
import { AppError } from '../errors/app-error.ts'
import type { ModelConfig } from '../models/model.ts'
import { type NamedProvider, parseNamedProvidersText } from '../models/named-providers.ts'
import type { Budget, BudgetLimits } from '../runs/budgets.ts'
import type { McpConfig } from '../tools/mcp-config.ts'
import type { CheckedConfig } from './check-config.ts'
import { configInvalid } from './config-problems.ts'
import type { TelemetrySettings } from './open-telemetry.ts'
import { meantSetting } from './setting-names.ts'
import { type ChoiceOf, settingTable } from './setting-table.ts'
import { SettingReader, urlWithoutSecrets } from './settings.ts'

export type LogLevel = ChoiceOf<'POLYLOG_LOG'>

export type Config = {
  /** What POLYLOG_CONFIG names; null if the file is looked for in the working directory. */
  readonly configFile: string | null
  readonly host: string
  readonly port: number
  readonly dataDir: string
  /** Null: a SQLite file in the data folder. */
  readonly databaseUrl: string | null
  /** A name of this node, for people. */
  readonly nodeName: string
  /** The most connections of this server to PostgreSQL. */
  readonly databaseConnections: number
  /** What carries hints between servers: NOTIFY of the database, or the NATS server at this URL. Null if this server is alone. */
  readonly bus: 'postgres' | { readonly natsUrl: string } | null
  readonly model: string | null
  readonly providers: {
    readonly openaiApiKey: string | null
    readonly openaiBaseUrl: string | null
    readonly anthropicApiKey: string | null
    readonly anthropicBaseUrl: string | null
    readonly googleApiKey: string | null
    readonly googleBaseUrl: string | null
    readonly ollamaBaseUrl: string | null
  }
  /** Compatible endpoints with a name of their own. */
  readonly namedProviders: readonly NamedProvider[]
  readonly openaiApi: 'responses' | 'chat' | null
  readonly openaiClient: 'lean' | 'ai-sdk'
  readonly auth: AuthSettings
  /** The users who may see what concerns all users, if a login is required. */
  readonly admins: readonly string[]
  /** Requests a minute for each caller; 0 is off. */
  readonly rateLimitPerMinute: number
  /** How many proxies in front of the server are trusted, or their addresses. */
  readonly trustProxy: TrustProxy
  /** Besides the address itself, `localhost` and loopback addresses. */
  readonly allowedHosts: readonly string[]
  /** Empty: no CORS headers at all. */
  readonly corsOrigins: readonly string[]
  /** Whether the web console is served at `/`. */
  readonly console: boolean
  readonly engine: 'local' | 'openclaw'
  readonly engineFallback: 'local' | 'none'
  readonly openclawUrl: string | null
  readonly openclawToken: string | null
  readonly pingMs: number
  /** Whether a run continues or is cancelled when the connection that started it closes. */
  readonly onDisconnect: 'continue' | 'cancel'
  /** The time that clients of the chat API are told to wait for an answer. */
  readonly clientTimeoutMs: number
  readonly fcmpHeartbeatMs: number
  readonly sessionHeartbeatMs: number
  readonly workspaceDir: string
  /** The workspace is on a volume that every node mounts. */
  readonly workspaceShared: boolean
  readonly sharedDirs: readonly string[]
  /** The hosts from which files may be fetched that a message names by URL. */
  readonly fetchHosts: readonly string[]
  /** Whether agents may run commands: never, only after a person confirms each one, or always. */
  readonly bash: 'off' | 'confirm' | 'allow'
  readonly sandbox: 'auto' | 'bwrap' | 'unshare' | 'none'
  readonly skillsDir: string
  readonly feishu: { readonly appId: string | null; readonly appSecret: string | null; readonly baseUrl: string | null }
  readonly mcpConfigFile: string | null
  /** The servers of a configuration in code; null if there are none, or if a file names them. */
  readonly mcpServers: McpConfig | null
  readonly modelConfigsFile: string | null
  /** Prices, windows and abilities of models, in addition to the built-in ones. */
  readonly modelTableFile: string | null
  /** The same for model configurations. */
  readonly modelSets: readonly ModelConfig[] | null
  /** The agents of the program, then the operator's own, which may replace them. */
  readonly agentsDirs: readonly string[]
  /** Whether definitions of agents are read again when they change. */
  readonly agentsReload: boolean
  /** How long a client may take to send a request, and how many may be connected. */
  readonly sockets: {
    readonly headersTimeoutMs: number
    readonly requestTimeoutMs: number
    readonly bodyIdleMs: number
    readonly connectionsMax: number
  }
  readonly limits: {
    readonly jsonBodyBytes: number
    readonly uploadBytes: number
    /** The files of one user together. */
    readonly ownerFileBytes: number
    /** How long a file is kept that no message and no run refers to. */
    readonly fileTtlMs: number
    readonly stepsMax: number
    /** The context window of models that the table of models does not have. */
    readonly contextTokens: number
    readonly providerRetries: number
    readonly providerRetryBudgetMs: number
    readonly runMaxMs: number
    readonly stallMs: number
    readonly concurrency: number
    readonly nodeConcurrency: number
    readonly unplaceableMs: number
    /** How long a node owns a run after its last heartbeat. */
    readonly leaseMs: number
    readonly queueMax: number
    readonly confirmationTtlMs: number
    readonly uploadTtlMs: number
    /** Null: ended runs are kept for ever. */
    readonly retentionMs: number | null
    readonly toolTimeoutMs: number
    /** How many tools of one run work at the same time. */
    readonly toolsAtOnce: number
    readonly budgets: BudgetLimits
  }
  /** Null: on only while no provider is configured, or when `model` names it. */
  readonly demo: 'on' | 'off' | null
  /** The process kills itself if its main thread is blocked for this long; 0: never. */
  readonly freezeMaxMs: number
  /** How long a stopping server still takes requests while it is not ready. */
  readonly stopDelayMs: number
  readonly demoPaceMs: number
  readonly logLevel: LogLevel
  /** Null: no traces are recorded. */
  readonly telemetry: TelemetrySettings | null
}

const mebibyte = 1024 * 1024
const minute = 60_000
const day = 24 * 60 * minute

/** What a configuration in code adds to its settings. The environment wins here too. */
export type CodeParts = Pick<CheckedConfig, 'settings' | 'agents' | 'mcp' | 'models' | 'providers'>

export function readConfig(environment: Record<string, string | undefined>, code?: CodeParts): Config {
  const read = new SettingReader(environment, code?.settings)
  const config = build(read, code)
  for (const { name, meant } of unknownSettings(environment)) {
    if (meant !== undefined) read.problem(name, `${name} is not a setting; did you mean ${meant}?`)
  }
  if (read.problems.length > 0)
    throw configInvalid(
      read.problems.map(({ message }) => message),
      read.problems,
    )
  return deepFreeze(config)
}

function build(read: SettingReader, code?: CodeParts): Config {
  const host = readHost(read)
  const loopback = isLoopback(host)
  const dataDir = read.path('POLYLOG_DATA') ?? resolve('data')
  const databaseUrl = read.url('POLYLOG_DATABASE_URL')
  // High, because a run mostly waits for its provider and uses few resources while it waits.
  const concurrency = read.whole('POLYLOG_CONCURRENCY', 1024)
  const retentionDays = read.decimal('POLYLOG_RETENTION_DAYS', 0)
  const mcpConfigFile = read.path('POLYLOG_MCP_CONFIG')
  const modelConfigsFile = read.path('POLYLOG_MODEL_CONFIGS')
  return {
    configFile: read.path('POLYLOG_CONFIG'),
    host,
    port: read.whole('PORT', 3000),
    dataDir,
    databaseUrl,
    nodeName: read.text('POLYLOG_NODE') ?? hostname(),
    databaseConnections: read.whole('POLYLOG_DATABASE_CONNECTIONS', 16),
    bus: readBus(read, databaseUrl === null),
    model: read.text('POLYLOG_MODEL'),
    providers: {
      openaiApiKey: read.text('OPENAI_API_KEY'),
      openaiBaseUrl: read.url('OPENAI_BASE_URL'),
      anthropicApiKey: read.text('ANTHROPIC_API_KEY'),
      anthropicBaseUrl: read.url('ANTHROPIC_BASE_URL'),
      googleApiKey: read.text('GOOGLE_GENERATIVE_AI_API_KEY'),
      googleBaseUrl: read.url('GOOGLE_GENERATIVE_AI_BASE_URL'),
      ollamaBaseUrl: read.url('OLLAMA_BASE_URL'),
    },
    namedProviders: readNamedProviders(read, code?.providers ?? null),
    openaiApi: read.oneOf('OPENAI_API'),
    openaiClient: read.oneOf('POLYLOG_OPENAI_CLIENT') ?? 'lean',
    auth: readAuth(read, loopback),
    admins: read.list('POLYLOG_ADMINS'),
    rateLimitPerMinute: read.whole('POLYLOG_RATE_LIMIT', loopback ? 0 : 600),
    trustProxy: readTrustProxy(read.mixed('POLYLOG_TRUST_PROXY'), read),
    allowedHosts: readAllowedHosts(read.list('POLYLOG_ALLOWED_HOSTS'), read),
    corsOrigins: readOrigins(read),
    console: read.boolean('POLYLOG_CONSOLE', true),
    ...readEngine(read),
    engineFallback: read.oneOf('POLYLOG_ENGINE_FALLBACK') ?? 'local',
    pingMs: read.whole('POLYLOG_PING_MS', 15_000),
    onDisconnect: read.oneOf('POLYLOG_ON_DISCONNECT') ?? 'continue',
    clientTimeoutMs: read.whole('POLYLOG_CLIENT_TIMEOUT_MS', 10 * minute),
    fcmpHeartbeatMs: read.whole('POLYLOG_FCMP_HEARTBEAT_MS', 5_000),
    sessionHeartbeatMs: read.whole('POLYLOG_SESSION_HEARTBEAT_MS', 2_000),
    sharedDirs: read.list('POLYLOG_SHARED_DIRS'),
    fetchHosts: readFetchHosts(read),
    workspaceDir: read.path('POLYLOG_WORKSPACE') ?? join(dataDir, 'workspace'),
    workspaceShared: read.oneOf('POLYLOG_WORKSPACE_SHARED') === 'on',
    bash: read.oneOf('POLYLOG_BASH') ?? 'off',
    sandbox: read.oneOf('POLYLOG_SANDBOX') ?? 'auto',
    skillsDir: read.path('POLYLOG_SKILLS_DIR') ?? fileURLToPath(new URL('../../skills', import.meta.url)),
    feishu: {
      appId: read.text('FEISHU_APP_ID'),
      appSecret: read.text('FEISHU_APP_SECRET'),
      baseUrl: read.url('FEISHU_BASE_URL'),
    },
    mcpConfigFile,
    mcpServers: mcpConfigFile === null ? (code?.mcp ?? null) : null,
    modelConfigsFile,
    modelTableFile: read.path('POLYLOG_MODEL_TABLE'),
    modelSets: modelConfigsFile === null ? (code?.models ?? null) : null,
    agentsDirs: readAgentsDirs(read, code?.agents ?? []),
    agentsReload: read.boolean('POLYLOG_AGENTS_RELOAD', read.text('NODE_ENV') !== 'production'),
    sockets: readSockets(read),
    limits: {
      jsonBodyBytes: read.whole('POLYLOG_BODY_MAX', 2 * mebibyte),
      uploadBytes: read.whole('POLYLOG_UPLOAD_MAX', 20 * mebibyte),
      ownerFileBytes: read.whole('POLYLOG_FILES_MAX', 1024 * mebibyte),
      fileTtlMs: read.whole('POLYLOG_FILE_TTL_MS', day),
      stepsMax: read.whole('POLYLOG_MAX_STEPS', 25),
      contextTokens: read.whole('POLYLOG_CONTEXT_TOKENS', 32_000),
      providerRetries: read.whole('POLYLOG_PROVIDER_RETRIES', 2),
      providerRetryBudgetMs: read.whole('POLYLOG_PROVIDER_RETRY_BUDGET_MS', 8_000),
      runMaxMs: read.whole('POLYLOG_RUN_MAX_MS', 30 * minute),
      stallMs: read.whole('POLYLOG_STALL_MS', 2 * minute),
      concurrency,
      nodeConcurrency: Math.min(concurrency, read.whole('POLYLOG_NODE_CONCURRENCY', concurrency)),
      unplaceableMs: read.whole('POLYLOG_UNPLACEABLE_MS', minute),
      // Shorter where another node can take over. The only process of a SQLite file finds its runs again at its start.
      leaseMs: read.whole('POLYLOG_LEASE_MS', databaseUrl === null ? 30_000 : 6_000),
      queueMax: read.whole('POLYLOG_QUEUE_MAX', 1024),
      confirmationTtlMs: read.whole('POLYLOG_CONFIRMATION_TTL_MS', day),
      uploadTtlMs: read.whole('POLYLOG_UPLOAD_TTL_MS', day),
      retentionMs: retentionDays === 0 ? null : Math.round(retentionDays * day),
      toolsAtOnce: read.whole('POLYLOG_TOOLS_AT_ONCE', 16),
      toolTimeoutMs: read.whole('POLYLOG_TOOL_TIMEOUT_MS', minute),
      budgets: {
        run: readBudget(read, 'POLYLOG_BUDGET_RUN'),
        userDay: readBudget(read, 'POLYLOG_BUDGET_USER_DAY'),
        day: readBudget(read, 'POLYLOG_BUDGET_DAY'),
      },
    },
    demo: read.oneOf('POLYLOG_DEMO'),
    freezeMaxMs: read.whole('POLYLOG_FREEZE_MAX_MS', minute),
    stopDelayMs: read.whole('POLYLOG_STOP_DELAY_MS', 0),
    demoPaceMs: read.whole('POLYLOG_DEMO_PACE_MS', 15),
    logLevel: read.oneOf('POLYLOG_LOG') ?? read.oneOf('LOG_LEVEL') ?? 'info',
    telemetry: readTelemetry(read),
  }
}

/** The environment wins over a configuration in code. */
function readNamedProviders(read: SettingReader, inCode: readonly NamedProvider[] | null): readonly NamedProvider[] {
  const text = read.text('POLYLOG_PROVIDERS')
  if (text === null) return inCode ?? []
  try {
    return parseNamedProvidersText(text, 'POLYLOG_PROVIDERS')
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    read.problem('POLYLOG_PROVIDERS', error.message)
    return []
  }
}

/** The standard variables of OpenTelemetry. */
function readTelemetry(read: SettingReader): TelemetrySettings | null {
  const endpoint = read.url('OTEL_EXPORTER_OTLP_ENDPOINT')
  const traces = read.url('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')
  const headers = pairsOf(read, 'OTEL_EXPORTER_OTLP_HEADERS')
  const resourceAttributes = pairsOf(read, 'OTEL_RESOURCE_ATTRIBUTES')
  const serviceName = read.text('OTEL_SERVICE_NAME') ?? resourceAttributes['service.name'] ?? 'polylog'
  const isOff = read.boolean('OTEL_SDK_DISABLED', false)
  const tracesUrl = traces ?? (endpoint === null ? null : `${endpoint.replace(/\/+$/, '')}/v1/traces`)
  if (tracesUrl === null || isOff) return null
  return { tracesUrl, headers, serviceName, resourceAttributes: { ...resourceAttributes, 'service.name': serviceName } }
}

/** `key=value` pairs, comma-separated; the values are percent-encoded. */
function pairsOf(
  read: SettingReader,
  name: 'OTEL_EXPORTER_OTLP_HEADERS' | 'OTEL_RESOURCE_ATTRIBUTES',
): Record<string, string> {
  const pairs: Record<string, string> = {}
  for (const entry of read.list(name)) {
    const equals = entry.indexOf('=')
    try {
      if (equals < 1) throw new URIError('no pair')
      pairs[entry.slice(0, equals).trim()] = decodeURIComponent(entry.slice(equals + 1).trim())
    } catch {
      // Not shown: a header may be a secret.
      read.refuse(name, null, 'a comma-separated list of key=value pairs with percent-encoded values')
    }
  }
  return pairs
}

function readAgentsDirs(read: SettingReader, inCode: readonly string[]): string[] {
  const builtIn = fileURLToPath(new URL('../../agents', import.meta.url))
  const own = read.path('POLYLOG_AGENTS_DIR')
  return [...new Set([builtIn, ...(own === null ? inCode : [own])])]
}

function readBudget(
  read: SettingReader,
  name: 'POLYLOG_BUDGET_RUN' | 'POLYLOG_BUDGET_USER_DAY' | 'POLYLOG_BUDGET_DAY',
): Budget {
  const usd = read.decimal(`${name}_USD`, 0)
  const tokens = read.whole(`${name}_TOKENS`, 0)
  return { microUsd: usd === 0 ? null : Math.ceil(usd * 1_000_000), tokens: tokens === 0 ? null : tokens }
}

function readSockets(read: SettingReader): Config['sockets'] {
  const headersTimeoutMs = read.whole('POLYLOG_HEADERS_TIMEOUT_MS', 30_000)
  // An upload of 20 MiB within 10 minutes needs 35 KB/s; slower clients need a longer timeout.
  const requestTimeoutMs = read.whole('POLYLOG_REQUEST_TIMEOUT_MS', 10 * minute)
  if (requestTimeoutMs < headersTimeoutMs) {
    read.problem(
      'POLYLOG_REQUEST_TIMEOUT_MS',
      'POLYLOG_REQUEST_TIMEOUT_MS is smaller than POLYLOG_HEADERS_TIMEOUT_MS; the time for a whole request must not be shorter than that for its headers.',
    )
  }
  return {
    headersTimeoutMs,
    requestTimeoutMs,
    bodyIdleMs: read.whole('POLYLOG_BODY_IDLE_MS', 30_000),
    connectionsMax: read.whole('POLYLOG_MAX_CONNECTIONS', 20_000),
  }
}

function readHost(read: SettingReader): string {
  const given = read.text('HOST')
  if (given === null) return '127.0.0.1'
  const host = given.replace(/^\[(.*)\]$/, '$1')
  if (isIP(host) === 0 && !/^[a-z0-9_]([a-z0-9_.-]*[a-z0-9])?$/i.test(host)) {
    read.refuse('HOST', given, 'an IP address or a host name, without a port')
  }
  return host
}

function readEngine(read: SettingReader): Pick<Config, 'engine' | 'openclawUrl' | 'openclawToken'> {
  const engine = read.oneOf('POLYLOG_ENGINE') ?? 'local'
  const openclawToken = read.text('OPENCLAW_TOKEN')
  const problemsBefore = read.problems.length
  const openclawUrl = read.url('OPENCLAW_URL')
  if (read.problems.length > problemsBefore) return { engine, openclawUrl, openclawToken }
  if (openclawUrl === null && engine === 'openclaw') {
    read.problem('OPENCLAW_URL', 'POLYLOG_ENGINE is openclaw, so OPENCLAW_URL must be the address of its gateway.')
  }
  const { username, password } = new URL(openclawUrl ?? 'http://none')
  if (username !== '' || password !== '') {
    read.problem('OPENCLAW_URL', 'OPENCLAW_URL must not contain a user name or a password. Use OPENCLAW_TOKEN.')
  }
  return { engine, openclawUrl, openclawToken }
}

function readAuth(read: SettingReader, loopback: boolean): AuthSettings {
  const problemsBefore = read.problems.length
  const chosen = read.oneOf('POLYLOG_AUTH')
  const choiceIsReadable = read.problems.length === problemsBefore
  const auth: AuthSettings = {
    mode: chosen ?? 'open',
    jwtSecret: read.secret('POLYLOG_JWT_SECRET'),
    jwksUrl: read.url('POLYLOG_JWKS_URL'),
    jwtIssuer: read.text('POLYLOG_JWT_ISSUER'),
    jwtAudience: read.text('POLYLOG_JWT_AUDIENCE'),
    allowTokensWithoutExp: read.boolean('POLYLOG_JWT_WITHOUT_EXP', false),
    apiKeys: readApiKeys(read),
  }
  if (chosen === null && choiceIsReadable && !loopback) {
    read.problem(
      'POLYLOG_AUTH',
      'POLYLOG_AUTH is not set and HOST is not a loopback address, so others may reach this server; set POLYLOG_AUTH ' +
        'to required (logins by API keys or tokens), or to open if everybody may use it.',
    )
  }
  return auth
}

function readApiKeys(read: SettingReader): Map<string, string> {
  const keys = new Map<string, string>()
  for (const [index, entry] of read.list('POLYLOG_API_KEYS').entries()) {
    const equals = entry.lastIndexOf('=')
    const user = entry.slice(0, Math.max(equals, 0)).trim()
    const hash = entry
      .slice(equals + 1)
      .trim()
      .toLowerCase()
    // Name the entry by its position and never show it: it may be the key itself, pasted instead of its hash.
    const place = `entry ${index + 1} of POLYLOG_API_KEYS`
    if (user === '' || user.length > userCharsMax || !/^[0-9a-f]{64}$/.test(hash)) {
      const allowed = `user=hash: a user name of at most ${userCharsMax} characters and the key's SHA-256 as 64 hexadecimal digits`
      read.problem('POLYLOG_API_KEYS', `The ${place} does not fit; it must be ${allowed}.`)
    } else if (keys.has(hash)) {
      read.problem(
        'POLYLOG_API_KEYS',
        `The ${place} repeats the key of an earlier entry; each key must belong to one user.`,
      )
    } else keys.set(hash, user)
  }
  return keys
}

const proxyHopsMax = 10
const namedNetworks = ['loopback', 'linklocal', 'uniquelocal']

/** `true` means one proxy, which is the usual number. (In old versions it meant every proxy.) */
function readTrustProxy(given: string | null, read: SettingReader): TrustProxy {
  const value = given?.toLowerCase() ?? 'false'
  if (['false', 'no', 'off', '0'].includes(value)) return false
  if (['true', 'yes', 'on'].includes(value)) return 1
  if (/^\d+$/.test(value) && Number(value) <= proxyHopsMax) return Number(value)
  const entries = value.split(',').map((entry) => entry.trim())
  if (entries.every((entry) => namedNetworks.includes(entry) || isAddressOrNetwork(entry))) return entries
  read.refuse(
    'POLYLOG_TRUST_PROXY',
    given,
    `the number of proxies before this server (1 to ${proxyHopsMax}), a comma-separated list of their addresses or networks such as 10.0.0.0/8, or false`,
  )
  return false
}

function isAddressOrNetwork(entry: string): boolean {
  const [address = '', bits, ...rest] = entry.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  return (
    bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) > 0 && Number(bits) <= (version === 4 ? 32 : 128))
  )
}

function readAllowedHosts(entries: string[], read: SettingReader): string[] {
  const hosts = entries.map((entry) => entry.toLowerCase().replace(/^\[(.*)\]$/, '$1'))
  for (const [index, host] of hosts.entries()) {
    const isName = /^(\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9])?$/.test(host)
    if (host !== '*' && isIP(host) === 0 && !isName) {
      read.refuse(
        'POLYLOG_ALLOWED_HOSTS',
        entries[index] ?? null,
        'a comma-separated list of host names or addresses without a scheme and a port, such as app.example.com or *.example.com',
      )
    }
  }
  return hosts
}

function readFetchHosts(read: SettingReader): string[] {
  const hosts = read.list('POLYLOG_FETCH_URLS')
  for (const host of hosts) {
    const problem = allowedHostProblem(host)
    if (problem !== null) read.problem('POLYLOG_FETCH_URLS', `POLYLOG_FETCH_URLS: ${JSON.stringify(host)} ${problem}.`)
  }
  return hosts
}

function readOrigins(read: SettingReader): string[] {
  const origins = read.list('POLYLOG_CORS_ORIGINS')
  for (const origin of origins) {
    if (origin !== '*' && !/^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]+$/i.test(origin)) {
      read.refuse(
        'POLYLOG_CORS_ORIGINS',
        origin,
        'a comma-separated list of origins such as https://app.example.com, or *',
      )
    }
  }
  return origins
}

function deepFreeze<T extends object>(value: T): T {
  for (const inner of Object.values(value)) {
    if (typeof inner === 'object' && inner !== null) deepFreeze(inner as object)
  }
  return Object.freeze(value)
}

function readBus(read: SettingReader, isAlone: boolean): Config['bus'] {
  const value = read.mixed('POLYLOG_BUS')
  if (value === null || value.toLowerCase() === 'postgres') return isAlone ? null : 'postgres'
  const isUrl = URL.canParse(value) && ['nats:', 'tls:'].includes(new URL(value).protocol)
  if (!isUrl || new URL(value).hostname === '') {
    // Not shown: a URL may contain a password.
    read.refuse('POLYLOG_BUS', null, 'postgres, or a URL that begins with nats:// or tls://')
    return null
  }
  if (isAlone) {
    read.problem('POLYLOG_BUS', 'POLYLOG_BUS is for servers that share a database; set POLYLOG_DATABASE_URL too.')
  }
  return { natsUrl: value }
}

/** What the client commands of the command line read. */
const clientVariables = ['POLYLOG_URL', 'POLYLOG_TOKEN']

/** Variables that start with POLYLOG_ and are not settings, each with the setting that was probably meant. */
export function unknownSettings(
  environment: Record<string, string | undefined>,
): { name: string; meant: string | undefined }[] {
  const known = Object.keys(settingTable)
  return Object.entries(environment)
    .filter(([name]) => name.toUpperCase().startsWith('POLYLOG_') && !known.includes(name))
    .filter(([name, value = '']) => !clientVariables.includes(name) && !isOfService(name, value))
    .map(([name]) => ({ name, meant: meantSetting(name, known) }))
}

/** Kubernetes sets such variables in every container if the namespace has a service whose name begins with polylog. */
function isOfService(name: string, value: string): boolean {
  return (
    /_SERVICE_(?:HOST|PORT(?:_\w+)?)$|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/.test(name) ||
    (name.endsWith('_PORT') && /^(?:tcp|udp|sctp):\/\//.test(value))
  )
}

/** The settings for the start-up log, without secrets. */
export function describeConfig(config: Config): Record<string, unknown> {
  const { auth, providers } = config
  return {
    address: `${config.host}:${config.port}`,
    dataDir: config.dataDir,
    node: config.nodeName,
    database: config.databaseUrl === null ? 'sqlite' : urlWithoutSecrets(config.databaseUrl),
    bus: config.bus === null || config.bus === 'postgres' ? config.bus : urlWithoutSecrets(config.bus.natsUrl),
    model: config.model ?? '(first provider that has a key, else demo/demo)',
    providers: [
      ...(providers.openaiApiKey !== null || providers.openaiBaseUrl !== null ? ['openai'] : []),
      ...(providers.anthropicApiKey !== null ? ['anthropic'] : []),
      ...(providers.googleApiKey !== null ? ['google'] : []),
      ...(providers.ollamaBaseUrl !== null ? ['ollama'] : []),
      ...config.namedProviders.map(({ name }) => name),
    ],
    auth: auth.mode,
    logins: [
      ...(auth.jwtSecret !== null ? ['jwt'] : []),
      ...(auth.jwksUrl !== null ? [`jwks ${urlWithoutSecrets(auth.jwksUrl)}`] : []),
      ...(auth.apiKeys.size > 0 ? [`${auth.apiKeys.size} API keys`] : []),
    ],
    rateLimitPerMinute: config.rateLimitPerMinute,
    trustProxy: config.trustProxy,
    allowedHosts: config.allowedHosts,
    corsOrigins: config.corsOrigins,
    engine: config.engine,
    feishu: config.feishu.appId !== null && config.feishu.appSecret !== null,
    workspaceDir: config.workspaceDir,
    bash: config.bash,
    mcpConfigFile: config.mcpConfigFile,
    modelConfigsFile: config.modelConfigsFile,
    sockets: config.sockets,
    limits: config.limits,
    logLevel: config.logLevel,
    traces: urlWithoutSecrets(config.telemetry?.tracesUrl ?? null),
  }
}
