// Fields of a request that look like settings but have no effect. A setting that is ignored is
// worse than one that is refused: the caller believes that it works. Other unknown fields stay
// ignored, because clients send fields of their own.

import { AppError } from '../errors/app-error.ts'
import { nearestName } from '../kit/nearest-name.ts'

const toProvider = 'Send it in providerOptions, under the name of the provider.'
const asMessage = 'Send a message with the role "system".'

/** Settings of other model APIs, written without `_` and in lower case, and what to do instead. */
const foreign: Readonly<Record<string, string>> = {
  topp: toProvider,
  topk: toProvider,
  minp: toProvider,
  seed: toProvider,
  stop: toProvider,
  stopsequences: toProvider,
  presencepenalty: toProvider,
  frequencypenalty: toProvider,
  repetitionpenalty: toProvider,
  logitbias: toProvider,
  logprobs: toProvider,
  toplogprobs: toProvider,
  paralleltoolcalls: toProvider,
  servicetier: toProvider,
  verbosity: toProvider,
  effort: toProvider,
  generationconfig: toProvider,
  thinkingconfig: toProvider,
  thinkingbudget: toProvider,
  budgettokens: toProvider,
  reasoning: 'Send it in providerOptions, for example {"openai": {"reasoningEffort": "low"}}.',
  reasoningeffort: 'Send it in providerOptions, for example {"openai": {"reasoningEffort": "low"}}.',
  thinking: 'Send it in providerOptions, for example {"anthropic": {"thinking": {…}}}.',
  maxcompletiontokens: 'Send maxTokens.',
  maxoutputtokens: 'Send maxTokens.',
  responseformat: 'Send output with a schema.',
  outputschema: 'Send output with a schema.',
  jsonschema: 'Send output with a schema.',
  system: asMessage,
  systemprompt: asMessage,
  systeminstruction: asMessage,
  instructions: asMessage,
  tools:
    'Send clientTools to POST /v1/agent/chat for tools that you execute; context.composer.enabledTools chooses tools of the server.',
  toolchoice: 'The model decides which tools it calls; context.composer.enabledTools limits them.',
  n: 'A request gets one answer.',
  bestof: 'A request gets one answer.',
  maxsteps: 'The server decides it (POLYLOG_MAX_STEPS).',
}

/** Values that ask for what happens anyway, such as those that client libraries always send. */
function isDefault(name: string, value: unknown): boolean {
  switch (name) {
    case 'n':
    case 'bestof':
      return value === 1
    case 'logprobs':
      return value === false
    case 'toolchoice':
      return value === 'auto'
    case 'paralleltoolcalls':
      return value === true
    case 'tools':
      return typeof value === 'object' && Object.keys(value ?? {}).length === 0
    default:
      return value === ''
  }
}

/** Shorter names are too close to words that clients use for other things, such as `mode`. */
const misspeltCharsMin = 5

const plain = (name: string) => name.replaceAll(/[_-]/g, '').toLowerCase()

/** Throws `unsupported_parameter`. `known` are the fields of the request, `settings` those of them that are settings. */
export function refuseStraySettings(
  body: Readonly<Record<string, unknown>>,
  known: readonly string[],
  settings: readonly string[],
): void {
  for (const [name, value] of Object.entries(body)) {
    if (known.includes(name) || value === null || value === undefined) continue
    const advice = Object.hasOwn(foreign, plain(name)) ? foreign[plain(name)] : undefined
    if (advice !== undefined && !isDefault(plain(name), value)) throw stray(name, advice)
    if (name.length < misspeltCharsMin) continue
    const meant = settings.find((setting) => plain(setting) === plain(name)) ?? nearestName(name, settings)
    if (meant !== undefined) throw stray(name, `Did you mean ${meant}?`)
  }
}

/** Throws `unsupported_parameter` if the request has one of `settings`, which it cannot have. */
export function refuseSettings(
  body: Readonly<Record<string, unknown>>,
  settings: readonly string[],
  advice: string,
): void {
  const found = settings.find((name) => body[name] !== null && body[name] !== undefined)
  if (found !== undefined) throw stray(found, advice)
}

function stray(name: string, advice: string): AppError {
  const shown = JSON.stringify(name.slice(0, 60))
  return new AppError('unsupported_parameter', `This request has no field ${shown}. ${advice}`, {
    details: { param: name.slice(0, 60) },
  })
}
