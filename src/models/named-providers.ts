// Compatible endpoints that an operator names: any number of them, each with its own address, key
// and headers, and used as `name/model`. No key is part of this configuration: it names the
// environment variable that holds it.

import { z } from 'zod'
import { AppError } from '../errors/app-error.ts'
import { isLoopback } from '../kit/loopback.ts'
import { modelFacts } from './model-table.ts'
import type { ModelFacts } from './model.ts'
import { modelNameProblem } from './model-name.ts'
import { isRecord } from '../kit/is-record.ts'

const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/, 'must be the name of an environment variable')

/** Names of providers that the server has itself, and of what is listed beside them. */
const reserved = ['openai', 'anthropic', 'google', 'ollama', 'demo', 'agent', 'polylog']

/** Headers that describe the request or the connection. */
const ownHeaders = /^(?:accept|accept-encoding|connection|content-length|content-type|host|transfer-encoding|upgrade)$/i

const namedProvider = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,31}$/, 'must be 1 to 32 lower-case letters, digits and "-", and begin with a letter')
    .refine((name) => !reserved.includes(name), 'is the name of a provider of the server; choose another one'),
  baseURL: z
    .url({ protocol: /^https?$/ })
    .max(2000)
    .refine((url) => !/^https?:\/\/[^/?#]*@/i.test(url), 'must not contain a user name or password; use apiKeyEnv'),
  /** `chat`: chat completions. */
  api: z.enum(['chat', 'responses']).default('chat'),
  /** The environment variable that holds the key; absent if the endpoint needs none. */
  apiKeyEnv: variable.optional(),
  headers: z
    .record(
      z
        .string()
        .regex(/^[A-Za-z0-9-]{1,100}$/)
        .refine((name) => !ownHeaders.test(name), 'is a header that the server sets itself'),
      z.union([z.string().max(4000), z.strictObject({ env: variable })]),
    )
    .optional(),
  /** `drop`: reasoning is not sent back in a tool loop, for servers that refuse the field. */
  reasoning: z.enum(['return', 'drop']).default('return'),
  /** The models that are listed, with what is known about them. Other names can be used, too. */
  models: z
    .union([z.array(z.string()), z.record(z.string(), modelFacts.optional())])
    .transform((models): Record<string, ModelFacts | undefined> =>
      Array.isArray(models) ? Object.fromEntries(models.map((name) => [name, undefined])) : models,
    )
    .refine((models) => Object.keys(models).length <= 500, 'must not have more than 500 models')
    .refine(
      (models) => Object.keys(models).every((name) => modelNameProblem(name, 'paths') === null),
      'has a name that no model can have',
    )
    .optional(),
})

export type NamedProvider = z.infer<typeof namedProvider>

/** As an operator writes one. */
export type NamedProviderConfig = Omit<z.input<typeof namedProvider>, 'name'>

const providersMax = 50

/** A list, or an object by name. Throws `config_invalid`; `source` begins the sentence. */
export function parseNamedProviders(value: unknown, source: string): NamedProvider[] {
  const refuse = (what: string) => new AppError('config_invalid', `${source} ${what}`)
  const entries = Array.isArray(value)
    ? (value as unknown[])
    : isRecord(value)
      ? Object.entries(value).map(([name, entry]) => (isRecord(entry) ? { ...entry, name } : entry))
      : undefined
  if (entries === undefined) throw refuse('must be a list of providers, or an object of providers by name.')
  if (entries.length > providersMax) throw refuse(`must not have more than ${providersMax} providers.`)
  const names = new Set<string>()
  return entries.map((entry, index) => {
    const parsed = namedProvider.safeParse(entry)
    if (!parsed.success) {
      const issue = parsed.error.issues[0]
      const name = isRecord(entry) && typeof entry['name'] === 'string' ? JSON.stringify(entry['name']) : `${index + 1}`
      throw refuse(`has a provider ${name} that does not fit: ${issue?.path.join('.') ?? ''} ${reasonOf(issue)}.`)
    }
    if (names.has(parsed.data.name)) throw refuse(`has two providers called ${JSON.stringify(parsed.data.name)}.`)
    names.add(parsed.data.name)
    return parsed.data
  })
}

/** The same from the text of an environment variable, which is never shown: headers may hold secrets. */
export function parseNamedProvidersText(text: string, source: string): NamedProvider[] {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new AppError('config_invalid', `${source} is not valid JSON.`)
  }
  return parseNamedProviders(value, source)
}

/** The reason of a key that does not fit is inside its issue. */
function reasonOf(issue: z.core.$ZodIssue | undefined): string {
  if (issue?.code === 'invalid_key') return issue.issues[0]?.message ?? issue.message
  return issue?.message ?? ''
}

export type Credentials = {
  apiKey: string | undefined
  headers: Record<string, string>
  /** Texts that must not be shown. */
  secrets: string[]
  /** Null if the endpoint can be used, else which variables to set. */
  missing: string | null
}

export function credentialsOf(
  { apiKeyEnv, headers, baseURL }: NamedProvider,
  environment: Record<string, string | undefined>,
): Credentials {
  const read = (name: string): string | undefined => {
    const text = environment[name]?.trim()
    return text === '' ? undefined : text
  }
  const apiKey = apiKeyEnv === undefined ? undefined : read(apiKeyEnv)
  const unset = apiKeyEnv !== undefined && apiKey === undefined ? [apiKeyEnv] : []
  const sent: Record<string, string> = {}
  const secrets = apiKey === undefined ? [] : [apiKey]
  for (const [name, value] of Object.entries(headers ?? {})) {
    const text = typeof value === 'string' ? value : read(value.env)
    if (text === undefined) unset.push((value as { env: string }).env)
    else {
      sent[name] = text
      // Short values such as `1` are no secrets, and redacting them would garble every message.
      if (text.length >= 8) secrets.push(text)
    }
  }
  const missing = unset.length === 0 ? null : `set ${unset.join(' and ')}, which ${hostOf(baseURL)} needs.`
  return { apiKey, headers: sent, secrets, missing }
}

function hostOf(url: string): string {
  const { hostname, host } = new URL(url)
  return isLoopback(hostname) ? 'the local server' : host
}
