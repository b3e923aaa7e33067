// One error for all problems of a configuration, so that an operator can correct them at once.

import { isAbsolute, relative } from 'node:path'
import { AppError } from '../errors/app-error.ts'

export function configInvalid(sentences: readonly string[], problems: readonly object[] = []): AppError {
  const count = sentences.length === 1 ? 'a problem' : `${sentences.length} problems`
  return new AppError('config_invalid', `The configuration has ${count}:\n  ${sentences.join('\n  ')}`, {
    details: { problems: [...problems] },
  })
}

/** A path as a person would type it here: relative if it lies in the working directory. */
export function shownPath(path: string): string {
  const near = relative(process.cwd(), path)
  return near === '' || near.startsWith('..') || isAbsolute(near) ? path : near
}
