// The names of settings: how a variable is called in the configuration file, and which
// setting a misspelt name was probably meant to be.

import { nearestName } from '../kit/nearest-name.ts'

/** `POLYLOG_MAX_STEPS` is `maxSteps`, `OPENAI_API_KEY` is `openaiApiKey`. */
export type FileNameOf<Variable extends string> = Variable extends `POLYLOG_${infer Rest}`
  ? CamelCase<Rest>
  : CamelCase<Variable>

type CamelCase<Words extends string> = Words extends `${infer First}_${infer Rest}`
  ? `${Lowercase<First>}${Capitalize<CamelCase<Rest>>}`
  : Lowercase<Words>

export function fileNameOf<Variable extends string>(variable: Variable): FileNameOf<Variable> {
  const words = variable
    .replace(/^POLYLOG_/, '')
    .toLowerCase()
    .split('_')
  return words.map((word, index) => (index === 0 ? word : capitalized(word))).join('') as FileNameOf<Variable>
}

function capitalized(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1)
}

/** The setting that a misspelt variable was probably meant to be. */
export function meantSetting(name: string, known: readonly string[]): string | undefined {
  // Settings without our prefix (PORT, OPENAI_API_KEY) are often written with it.
  const written = known.find((candidate) => name === `POLYLOG_${candidate}`)
  if (written !== undefined) return written
  const rests = known.filter((candidate) => prefix.test(candidate)).map((candidate) => candidate.replace(prefix, ''))
  const nearest = nearestName(name.replace(prefix, ''), rests)
  return nearest === undefined ? undefined : `POLYLOG_${nearest}`
}

const prefix = /^POLYLOG_/i
