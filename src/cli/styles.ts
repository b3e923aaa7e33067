// Colours of the terminal, and none if it has none or if NO_COLOR is set.

import type { CliContext } from './context.ts'

export type Styles = {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly red: (text: string) => string
  readonly green: (text: string) => string
  readonly yellow: (text: string) => string
  readonly cyan: (text: string) => string
}

export const plainStyles: Styles = { bold: same, dim: same, red: same, green: same, yellow: same, cyan: same }

const colours: Styles = {
  bold: (text) => `\u001b[1m${text}\u001b[22m`,
  dim: (text) => `\u001b[2m${text}\u001b[22m`,
  red: (text) => `\u001b[31m${text}\u001b[39m`,
  green: (text) => `\u001b[32m${text}\u001b[39m`,
  yellow: (text) => `\u001b[33m${text}\u001b[39m`,
  cyan: (text) => `\u001b[36m${text}\u001b[39m`,
}

export function stylesOf({ output, environment }: CliContext): Styles {
  const hasColours = output.isTerminal && (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb'
  return hasColours ? colours : plainStyles
}

function same(text: string): string {
  return text
}
