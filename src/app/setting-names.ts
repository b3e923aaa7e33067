// The names of settings: how a variable is called in the configuration file, and which
// setting a misspelt name was probably meant to be.

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

/** The largest edit distance at which two names still count as the same. */
const slipsMax = 2

/** The known name that is closest; undefined if none is close enough. */
export function meantSetting(name: string, known: Iterable<string>): string | undefined {
  let best: { name: string; slips: number } | undefined
  for (const candidate of known) {
    // Settings without our prefix (PORT, OPENAI_API_KEY) are often written with it.
    const slips = name === `POLYLOG_${candidate}` ? 0 : slipsBetween(name.toUpperCase(), candidate)
    if (slips <= slipsMax && (best === undefined || slips < best.slips)) best = { name: candidate, slips }
  }
  return best?.name
}

/** Edit distance in which swapping two neighbours counts as one edit (optimal string alignment). */
function slipsBetween(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > slipsMax) return Infinity
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let slips = Math.min(
        (last[j] as number) + 1,
        (row[j - 1] as number) + 1,
        (last[j - 1] as number) + (same ? 0 : 1),
      )
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        slips = Math.min(slips, (beforeLast[j - 2] as number) + 1)
      row.push(slips)
    }
    beforeLast = last
    last = row
  }
  return last[b.length] as number
}
