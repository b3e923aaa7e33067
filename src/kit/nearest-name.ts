// Suggests the name that a misspelt one was probably meant to be.

/** The largest edit distance at which two names still count as the same; half of it for short names, of which many are similar. */
const slipsMax = 2
const shortChars = 4

/** The known name that is closest, whatever the case of its letters; undefined if none is close enough. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  let best: { name: string; slips: number } | undefined
  for (const candidate of known) {
    const slips = slipsBetween(name.toUpperCase(), candidate.toUpperCase())
    const allowed = Math.min(name.length, candidate.length) <= shortChars ? slipsMax / 2 : slipsMax
    if (slips <= allowed && (best === undefined || slips < best.slips)) best = { name: candidate, slips }
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
