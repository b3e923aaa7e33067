// Mustache templates of agents. The result is plain text for a model, so HTML is not escaped.
// Partials are refused, because a definition uses only the files that it names.

import Mustache from 'mustache'

/** What every template of a one-shot run can use, besides the defaults of its agent. */
const templateNames = ['input', 'data', 'language', 'operation', 'outputSchema'] as const

/** Does not escape HTML, because the result is plain text for a model. */
export function renderTemplate(template: string, values: Record<string, unknown>): string {
  return Mustache.render(template, values, {}, { escape: String }).trim()
}

/** The reason why a template cannot be used, or null. `defaults` are names that it may use besides `templateNames`. */
export function templateProblem(template: string, defaults: readonly string[]): string | null {
  let tokens: unknown[]
  try {
    tokens = Mustache.parse(template)
  } catch (error) {
    return `it is not a valid Mustache template: ${error instanceof Error ? error.message : String(error)}`
  }
  return tokensProblem(tokens as Token[], new Set<string>([...templateNames, ...defaults]))
}

/** Type, name, start, end, and for a section the tokens inside it. */
type Token = [type: string, name: string, start: number, end: number, inner?: unknown]

/**
 * Names inside a section are not checked: they may belong to the value of the section. Outside of one, an unknown name
 * would silently render as nothing, and is most likely a spelling mistake.
 */
function tokensProblem(tokens: Token[], known: ReadonlySet<string>, insideSection = false): string | null {
  for (const [type, name, , , inner] of tokens) {
    if (type === '>') return `{{> ${name}}} includes another template, which is not supported; write its text here`
    if (type === 'text' || type === '!' || type === '=') continue
    const first = name.split('.')[0] ?? ''
    if (!insideSection && name !== '.' && !known.has(first)) {
      return `{{${name}}} is not known; templates can use ${[...known].join(', ')}`
    }
    if (Array.isArray(inner)) {
      const problem = tokensProblem(inner as Token[], known, insideSection || type === '#')
      if (problem !== null) return problem
    }
  }
  return null
}
