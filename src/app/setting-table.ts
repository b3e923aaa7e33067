// Every setting of the server, declared once: its variable and which values it accepts.
// The name of a setting in polylog.config.ts and its type there are derived from this table
// (setting-names.ts). Defaults are in config.ts, because some depend on other settings.
// Variable names are a contract with operators: add, never rename.

const mebibyte = 1024 * 1024
const minute = 60_000
const day = 24 * 60 * minute
/** The longest wait that a Node timer can hold, about 24 days. */
const timerMax = 0x7fffffff

const text = { kind: 'text' } as const
/** Not trimmed, because spaces at the ends may belong to the secret. */
const secret = { kind: 'secret' } as const
/** Relative to the working directory; in the configuration file, to the folder of that file. */
const path = { kind: 'path' } as const
const boolean = { kind: 'boolean' } as const
const list = { kind: 'list' } as const
const url = (...schemes: string[]) => ({ kind: 'url', schemes }) as const
const webUrl = url('http', 'https')
const oneOf = <const T extends readonly string[]>(...allowed: T) => ({ kind: 'oneOf', allowed }) as const
const whole = (least: number, most: number) => ({ kind: 'whole', least, most }) as const
const decimal = (least: number, most: number) => ({ kind: 'decimal', least, most }) as const
const logLevel = oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent')
/** 0 means no budget. */
const dollars = decimal(0, 1_000_000_000)
const tokens = whole(0, 1_000_000_000_000)

export const settingTable = {
  POLYLOG_CONFIG: path,
  HOST: text,
  PORT: whole(0, 65_535),
  POLYLOG_DATA: path,
  POLYLOG_DATABASE_URL: url('postgres', 'postgresql'),
  POLYLOG_DATABASE_CONNECTIONS: whole(2, 10_000),
  /** `postgres`, or the URL of a NATS server. */
  POLYLOG_BUS: { kind: 'mixed' },
  POLYLOG_AGENTS_DIR: path,
  POLYLOG_AGENTS_RELOAD: boolean,
  NODE_ENV: text,
  POLYLOG_SKILLS_DIR: path,
  POLYLOG_RETENTION_DAYS: decimal(0, 36_500),

  POLYLOG_MODEL: text,
  OPENAI_API_KEY: text,
  OPENAI_BASE_URL: webUrl,
  OPENAI_API: oneOf('responses', 'chat'),
  ANTHROPIC_API_KEY: text,
  ANTHROPIC_BASE_URL: webUrl,
  GOOGLE_GENERATIVE_AI_API_KEY: text,
  GOOGLE_GENERATIVE_AI_BASE_URL: webUrl,
  OLLAMA_BASE_URL: webUrl,
  /** JSON. In the configuration file, `providers` is an object instead. */
  POLYLOG_PROVIDERS: text,
  POLYLOG_OPENAI_CLIENT: oneOf('lean', 'ai-sdk'),
  POLYLOG_PROVIDER_RETRIES: whole(0, 10),
  POLYLOG_PROVIDER_RETRY_BUDGET_MS: whole(0, 10 * minute),
  POLYLOG_STALL_MS: whole(1, timerMax),
  POLYLOG_MODEL_CONFIGS: path,
  POLYLOG_MODEL_TABLE: path,
  POLYLOG_CONTEXT_TOKENS: whole(1000, 100_000_000),
  POLYLOG_DEMO: oneOf('on', 'off'),
  POLYLOG_DEMO_PACE_MS: whole(0, 10_000),

  POLYLOG_AUTH: oneOf('open', 'required'),
  POLYLOG_JWT_SECRET: secret,
  POLYLOG_JWKS_URL: webUrl,
  POLYLOG_JWT_ISSUER: text,
  POLYLOG_JWT_AUDIENCE: text,
  POLYLOG_JWT_WITHOUT_EXP: boolean,
  POLYLOG_API_KEYS: list,
  POLYLOG_ADMINS: list,
  POLYLOG_RATE_LIMIT: whole(0, 1_000_000),
  /** A number of proxies, their addresses, or `true` for one. */
  POLYLOG_TRUST_PROXY: { kind: 'mixed' },
  POLYLOG_ALLOWED_HOSTS: list,
  POLYLOG_CORS_ORIGINS: list,
  POLYLOG_CONSOLE: boolean,

  POLYLOG_NODE: text,
  POLYLOG_LEASE_MS: whole(500, 10 * minute),
  POLYLOG_CONCURRENCY: whole(1, 1_000_000),
  POLYLOG_NODE_CONCURRENCY: whole(1, 1_000_000),
  POLYLOG_UNPLACEABLE_MS: whole(1, timerMax),
  POLYLOG_QUEUE_MAX: whole(0, 1_000_000),
  POLYLOG_MAX_STEPS: whole(1, 10_000),
  POLYLOG_RUN_MAX_MS: whole(1, timerMax),
  POLYLOG_BUDGET_RUN_USD: dollars,
  POLYLOG_BUDGET_RUN_TOKENS: tokens,
  POLYLOG_BUDGET_USER_DAY_USD: dollars,
  POLYLOG_BUDGET_USER_DAY_TOKENS: tokens,
  POLYLOG_BUDGET_DAY_USD: dollars,
  POLYLOG_BUDGET_DAY_TOKENS: tokens,
  // Stored in the database instead of a timer, so the upper bound of timers does not apply.
  POLYLOG_CONFIRMATION_TTL_MS: whole(1, 36_500 * day),
  POLYLOG_UPLOAD_TTL_MS: whole(1, 36_500 * day),
  POLYLOG_BODY_MAX: whole(1024, 1024 * mebibyte),
  POLYLOG_UPLOAD_MAX: whole(1024, 1024 * mebibyte),
  POLYLOG_FILES_MAX: whole(1024, 1024 * 1024 * mebibyte),
  POLYLOG_FILE_TTL_MS: whole(1, 36_500 * day),
  POLYLOG_FETCH_URLS: list,
  POLYLOG_HEADERS_TIMEOUT_MS: whole(1, timerMax),
  POLYLOG_REQUEST_TIMEOUT_MS: whole(1, timerMax),
  POLYLOG_BODY_IDLE_MS: whole(1, timerMax),
  POLYLOG_MAX_CONNECTIONS: whole(1, 1_000_000),
  POLYLOG_ON_DISCONNECT: oneOf('continue', 'cancel'),
  POLYLOG_PING_MS: whole(1, timerMax),
  POLYLOG_FCMP_HEARTBEAT_MS: whole(1, timerMax),
  POLYLOG_SESSION_HEARTBEAT_MS: whole(1, timerMax),
  POLYLOG_CLIENT_TIMEOUT_MS: whole(1000, timerMax),
  POLYLOG_LOG: logLevel,
  /** What other servers call it; POLYLOG_LOG is stronger. */
  LOG_LEVEL: logLevel,

  OTEL_EXPORTER_OTLP_ENDPOINT: webUrl,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: webUrl,
  OTEL_EXPORTER_OTLP_HEADERS: list,
  OTEL_SERVICE_NAME: text,
  OTEL_RESOURCE_ATTRIBUTES: list,
  OTEL_SDK_DISABLED: boolean,

  POLYLOG_FREEZE_MAX_MS: whole(0, timerMax),
  POLYLOG_STOP_DELAY_MS: whole(0, 10 * minute),
  POLYLOG_TOOLS_AT_ONCE: whole(1, 1000),
  POLYLOG_TOOL_TIMEOUT_MS: whole(1, timerMax),
  POLYLOG_WORKSPACE: path,
  POLYLOG_SHARED_DIRS: list,
  POLYLOG_WORKSPACE_SHARED: oneOf('on', 'off'),
  POLYLOG_BASH: oneOf('off', 'confirm', 'allow'),
  POLYLOG_SANDBOX: oneOf('auto', 'bwrap', 'unshare', 'none'),
  POLYLOG_MCP_CONFIG: path,
  FEISHU_APP_ID: text,
  FEISHU_APP_SECRET: text,
  FEISHU_BASE_URL: webUrl,

  POLYLOG_ENGINE: oneOf('local', 'openclaw'),
  POLYLOG_ENGINE_FALLBACK: oneOf('local', 'none'),
  OPENCLAW_URL: url('http', 'https', 'ws', 'wss'),
  OPENCLAW_TOKEN: text,
} as const

export type SettingName = keyof typeof settingTable
/**
 * These cannot stand in the configuration file: one names that file, one belongs to the whole process, one is an object there,
 * and one is a second name.
 */
export const environmentOnly = [
  'POLYLOG_CONFIG',
  'NODE_ENV',
  'POLYLOG_PROVIDERS',
  'LOG_LEVEL',
] as const satisfies readonly SettingName[]
export type EnvironmentOnly = (typeof environmentOnly)[number]

export type SettingKind = (typeof settingTable)[SettingName]['kind']

/** The settings of one kind. */
export type NamesOf<Kind extends SettingKind> = {
  [Name in SettingName]: (typeof settingTable)[Name]['kind'] extends Kind ? Name : never
}[SettingName]

/** The values that a `oneOf` setting accepts. */
export type ChoiceOf<Name extends NamesOf<'oneOf'>> = (typeof settingTable)[Name]['allowed'][number]
