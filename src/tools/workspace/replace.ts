// Replaces a piece of a text. Refuses if the piece is missing, or if it occurs more than
// once and the caller did not ask for all occurrences.

import { fileBytesMax } from './file-operations.ts'
import { refused } from './refusal.ts'
import type { Change } from './session-files.ts'

export function replaceText(text: string, find: string, replacement: string, all: boolean, shown: string): Change {
  const count = occurrences(text, find)
  if (count === 0) throw refused(`The text to replace was not found in ${shown}.`)
  if (count > 1 && !all) {
    throw refused(
      `The text to replace is in ${shown} ${count} times. Give more of what is around it, or replace all of them.`,
    )
  }
  if (text.length + (all ? count : 1) * (replacement.length - find.length) > fileBytesMax) {
    throw refused(`${shown} would become larger than ${fileBytesMax / 1024 / 1024} MiB.`)
  }
  // Passed as a function, because `$&` and the like have a special meaning in a replacement string.
  const content = all ? text.replaceAll(find, () => replacement) : text.replace(find, () => replacement)
  return { content, replacements: count }
}

function occurrences(text: string, find: string): number {
  let count = 0
  for (let at = text.indexOf(find); at >= 0; at = text.indexOf(find, at + find.length)) count += 1
  return count
}
