// The ranges of run ids that partitions hold. A ULID begins with its time in ten characters, so
// a range of ids is a range of times. The name of a partition has both bounds, because a table
// that has just been detached does not know them any more.

/** `from` inclusive, `until` exclusive, in milliseconds since 1970. */
export type PartitionRange = { from: number; until: number }

/** The digits of a ULID, in the order of their codes. */
const digits = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const timeDigits = 10

/** One more than the latest time of a ULID. Its bound is `8000000000`. */
export const timeEnd = 2 ** 48

export function boundOf(time: number): string {
  let bound = ''
  for (let rest = time, place = 0; place < timeDigits; place += 1) {
    bound = (digits[rest % 32] as string) + bound
    rest = Math.floor(rest / 32)
  }
  return bound
}

/**
 * The latest time whose bound is not after the id, for any text. Undefined if the id is before or after all ULIDs, so that one
 * of the two fixed partitions holds it.
 */
export function timeOfId(id: string): number | undefined {
  if (id >= '8') return undefined
  let time = 0
  for (let place = 0; place < timeDigits; place += 1) {
    const character = id[place] ?? ''
    let digit = digits.length - 1
    while (digit >= 0 && (digits[digit] as string) > character) digit -= 1
    const unit = 32 ** (timeDigits - 1 - place)
    // No bound that begins like the id fits any more: the one before them is the latest.
    if (digit < 0) return time === 0 ? undefined : time - 1
    time += digit * unit
    if (digits[digit] !== character) {
      time += unit - 1
      break
    }
  }
  return time
}

export function partitionName({ from, until }: PartitionRange): string {
  return `journal_${boundOf(from)}_${boundOf(until)}`.toLowerCase()
}

/** Undefined if the table is not a partition with a range of times. */
export function rangeOfName(name: string): PartitionRange | undefined {
  const match = /^journal_([0-7][0-9a-z]{9})_([0-8][0-9a-z]{9})$/.exec(name)
  const [from, until] = [match?.[1], match?.[2]].map((bound) => bound?.toUpperCase())
  if (from === undefined || until === undefined) return undefined
  return { from: timeOfId(from) as number, until: timeOfId(until) ?? timeEnd }
}

/** The range for a time that no partition holds: a whole period, as far as the partitions beside it leave room. */
export function freeRange(taken: readonly PartitionRange[], time: number, periodMs: number): PartitionRange {
  let from = time - (time % periodMs)
  let until = Math.min(from + periodMs, timeEnd)
  for (const range of taken) {
    if (range.until <= time) from = Math.max(from, range.until)
    if (range.from > time) until = Math.min(until, range.from)
  }
  return { from, until }
}
