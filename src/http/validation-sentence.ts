// Turns schema errors into sentences that name the field and say what it must be. The
// messages of the schema library ("Invalid input: expected string, received undefined") are
// for programmers who know the schema; these are for API clients.

export type ValidationIssue = { path: string; message: string }

/** One entry of Fastify's `error.validation`; zod's issue code is in `keyword`, the rest of its issue in `params`. */
export type RawIssue = {
  keyword?: string | undefined
  instancePath?: string | undefined
  message?: string | undefined
  params?: Record<string, unknown> | undefined
}

/** Which part of the request was checked, as Fastify calls it. */
export type ValidationContext = 'body' | 'querystring' | 'params' | 'headers'

const subjects: Record<ValidationContext, { whole: string; part: string }> = {
  body: { whole: 'The body', part: '' },
  querystring: { whole: 'The query', part: 'The query parameter ' },
  params: { whole: 'The path', part: 'The path parameter ' },
  headers: { whole: 'The headers', part: 'The header ' },
}

/** `value` is the value that was checked; it is needed to tell a missing field from a wrong one. */
export function describeIssues(
  raw: readonly RawIssue[],
  context: ValidationContext,
  value: unknown,
): ValidationIssue[] {
  return raw.map((outer) => {
    const issue = innermost(outer)
    const keys = (issue.instancePath ?? '').split('/').filter((key) => key !== '')
    const path = keys.reduce(
      (sofar, key) => (/^\d+$/.test(key) ? `${sofar}[${key}]` : sofar === '' ? key : `${sofar}.${key}`),
      '',
    )
    const names = subjects[context]
    const subject = path === '' ? names.whole : `${names.part}${JSON.stringify(path)}`
    return { path, message: sentence(subject, issue, valueAt(value, keys)) }
  })
}

/** The issue of an alternative, as zod has it. */
type FormIssue = { code: string; message: string; path: (string | number)[] }

/**
 * If a value may have several forms and is of the kind of only one of them (a list, say, and not a string), the client meant that
 * one: the first issue inside it, instead of the one about the whole value.
 */
function innermost(issue: RawIssue): RawIssue {
  const forms = issue.keyword === 'invalid_union' ? issue.params?.['errors'] : undefined
  if (!Array.isArray(forms)) return issue
  const meant = (forms as FormIssue[][]).filter(
    (issues) => issues.length > 0 && issues.every(({ path }) => path.length > 0),
  )
  const [first] = meant[0] ?? []
  if (meant.length !== 1 || first === undefined) return issue
  const { code, message, path, ...params } = first
  const instancePath = [issue.instancePath ?? '', ...path].join('/')
  return innermost({ keyword: code, message, instancePath, params })
}

/** `total` includes the issues that are not in `issues`. */
export function summarise(issues: readonly ValidationIssue[], total = issues.length): string {
  const first = issues[0]?.message ?? 'The request does not have the expected form.'
  if (total <= 1) return first
  return `${first} (${total - 1} more: see details.issues)`
}

/** How the message of a schema begins if it can be used as a demand. */
const demandBegins = 'must be '

/** What the schema library says of a check that has no message of its own. */
const wordless = 'Invalid input'

function sentence(subject: string, issue: RawIssue, value: unknown): string {
  const demand = demandOf(issue)
  if (demand === null && issue.message === wordless)
    return `${subject} is ${value === undefined ? 'missing' : 'not valid'}.`
  // Unknown kind of issue, such as a refinement: use the schema's own message.
  if (demand === null)
    return endOf(issue.message === undefined ? `${subject} is not valid` : asSentence(subject, issue))
  if (value === undefined) return `${subject} is missing; it must be ${demand}.`
  return `${subject} must be ${demand}.`
}

function asSentence(subject: string, issue: RawIssue): string {
  const message = issue.message ?? ''
  if (issue.keyword === 'custom') return message
  return `${subject}: ${message}`
}

function endOf(text: string): string {
  return /[.!?。！？]$/.test(text) ? text : `${text}.`
}

const typeNames: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
  date: 'a date',
}

/** The text after "must be", or null if only the schema's own message describes the issue. */
function demandOf({ keyword, message, params = {} }: RawIssue): string | null {
  switch (keyword) {
    case 'invalid_type': {
      const expected = String(params['expected'])
      return typeNames[expected] ?? `of type ${expected}`
    }
    case 'invalid_value': {
      const values = Array.isArray(params['values']) ? params['values'].map((value) => JSON.stringify(value)) : []
      return values.length === 1 ? `${values[0]}` : `one of ${values.join(', ')}`
    }
    case 'too_small':
      return bound(params['origin'], params['minimum'], params['inclusive'] === false ? 'more than' : 'at least')
    case 'too_big':
      return bound(params['origin'], params['maximum'], params['inclusive'] === false ? 'less than' : 'at most')
    case 'invalid_format':
      if (params['format'] !== 'regex') return `a valid ${String(params['format'])}`
      // A schema may describe its pattern in words.
      return message?.startsWith(demandBegins) === true
        ? message.slice(demandBegins.length)
        : `text that fits ${String(params['pattern'])}`
    case 'not_multiple_of':
      return `a multiple of ${String(params['divisor'])}`
    case 'unrecognized_keys': {
      const keys = Array.isArray(params['keys']) ? params['keys'].map((key) => JSON.stringify(key)) : []
      return `without the unknown ${keys.length === 1 ? 'field' : 'fields'} ${keys.join(', ')}`
    }
    case 'invalid_union':
      return alternatives(params['errors']) ?? 'of one of the forms that the documentation lists'
    default:
      return null
  }
}

/** "a string or a number". Null if a form is not so simple; `forms` has the issues of the value with each of them. */
function alternatives(forms: unknown): string | null {
  if (!Array.isArray(forms) || forms.length === 0) return null
  const demands = new Set<string>()
  for (const [issue, ...more] of forms as { code: string; message: string; path: unknown[] }[][]) {
    if (issue === undefined || more.length > 0 || issue.path.length > 0) return null
    const demand = demandOf({ keyword: issue.code, message: issue.message, params: issue })
    if (demand === null) return null
    demands.add(demand)
  }
  return [...demands].join(' or ')
}

function bound(origin: unknown, limit: unknown, relation: string): string {
  const one = Number(limit) === 1
  if (origin === 'string') return `${relation} ${String(limit)} ${one ? 'character' : 'characters'} long`
  if (origin === 'array' || origin === 'set')
    return `a list of ${relation} ${String(limit)} ${one ? 'entry' : 'entries'}`
  return `${relation} ${String(limit)}`
}

function valueAt(value: unknown, keys: readonly string[]): unknown {
  let at: unknown = value
  for (const key of keys) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    at = (at as Record<string, unknown>)[key]
  }
  return at
}
