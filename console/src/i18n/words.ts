// The sentences of the console in English and Chinese. Each page has a `words.ts` beside it, so that a page which is
// loaded later brings its own sentences. The compiler refuses a key that one language lacks.

import { preferences } from '../app/preferences.ts'
import type { Language } from './language.ts'

/** A text, or a function that puts values into one. */
type Sentence = string | ((...values: never[]) => string)

type SameKeys<English> = {
  [Key in keyof English]: English[Key] extends string ? string : English[Key]
}

export type Words<English> = Record<Language, SameKeys<English>>

export function defineWords<English extends Record<string, Sentence>>(
  en: English,
  zh: SameKeys<NoInfer<English>>,
): Words<English> {
  return { en: en as SameKeys<English>, zh }
}

/** The sentences in the language of the person. */
export function useWords<English>(words: Words<English>): SameKeys<English> {
  return words[preferences.use().language]
}

/** The locale for dates and numbers. */
export function useLocale(): string {
  return preferences.use().language === 'zh' ? 'zh-CN' : 'en-GB'
}
