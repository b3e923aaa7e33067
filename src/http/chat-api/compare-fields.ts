// Fields of a comparison that nobody reads. A caller that names a model or another
// setting in a field of its own choosing would get two arms of the default
// configuration and believe the vote; so such a request is refused.

import { AppError } from '../../errors/app-error.ts'

/** Words in the name of a field that wants to choose how an arm answers. */
const settingWords =
  /config|model|provider|pipeline|variant|prompt|instruction|temperature|top_?p|max_?tokens|tools|refresh/i

/** Throws `invalid_request` and names every such field of `body` that is not one of `known`. */
export function refuseSettingFields(body: unknown, known: readonly string[]): void {
  if (typeof body !== 'object' || body === null) return
  const refused = Object.entries(body)
    .filter(([name, value]) => !known.includes(name) && settingWords.test(name) && isGiven(value))
    .map(([name]) => name.slice(0, nameCharsMax))
  if (refused.length === 0) return
  const more = refused.length > namesMax ? ` and ${refused.length - namesMax} more` : ''
  throw new AppError(
    'invalid_request',
    `A comparison does not know ${refused.slice(0, namesMax).join(', ')}${more}. Name the two configurations in config_a and config_b; GET /api/get_configs lists them.`,
  )
}

const namesMax = 20
const nameCharsMax = 100

/** The chat's own client sends every field that it knows, with null or false for "nothing". */
function isGiven(value: unknown): boolean {
  return value != null && value !== false && value !== 'false' && value !== ''
}
