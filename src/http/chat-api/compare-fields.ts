// Refuses unknown fields of a comparison that look like a model setting. If the server
// ignored them, both arms would run the default configuration, and the caller would take
// the vote for a real comparison.

import { AppError } from '../../errors/app-error.ts'

/** A field whose name has one of these words is probably meant to change how an arm answers. */
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

/** The chat client sends every field that it knows, with null, false or blank text for "not given". */
function isGiven(value: unknown): boolean {
  return value != null && value !== false && value !== 'false' && value !== ''
}
