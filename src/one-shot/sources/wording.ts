// Words of computed answers, in Chinese and in English. Each sentence states what the
// records say; names and texts of records are quoted, and shortened if they are long.

/** Chooses between the Chinese and the English text. */
export type Say = (zh: string, en: string) => string

/** Chinese for `zh` and its variants, English for every other language. */
export function sayIn(language: string): Say {
  const chinese = /^zh(?:-|$)/i.test(language)
  return (zh, en) => (chinese ? zh : en)
}

/** The mark of a computed answer, as a sentence. */
export function computedNote(say: Say): string {
  return say(
    '本结果由程序根据记录计算得出，并非由语言模型撰写。',
    'This result was computed from the records and was not written by a language model.',
  )
}

/** One line, at most `charsMax` characters, never cut inside a character. */
export function shorten(text: string, charsMax: number): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  if (line.length <= charsMax) return line
  const last = line.charCodeAt(charsMax - 2)
  const insidePair = last >= 0xd800 && last <= 0xdbff
  return `${line.slice(0, insidePair ? charsMax - 2 : charsMax - 1)}…`
}

/** `1 day`, `2 days`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
