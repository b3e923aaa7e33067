// Parses a large JSON object in several turns of the event loop, so that other requests do not
// wait for it. The entries of the lists in it are parsed a few at a time; everything else is
// parsed at once and is limited to what an instant can hold.

import { AppError } from '../errors/app-error.ts'
import { nextTurn } from '../kit/turns.ts'
import { type JsonLimits, jsonLimits, type ListObserver, scanJson, tooComplex } from './json-limits.ts'

/** Read or parsed in a few milliseconds. */
const partChars = 256 * 1024
/** In one entry of a list. The largest event, with 1 MiB, has fewer. */
const entryValuesMax = 600_000

type FoundList = { start: number; end: number; cuts: number[] }

/** Finds the lists of the object, and cuts each at commas between its entries. */
class ListFinder implements ListObserver {
  readonly lists: FoundList[] = []
  private lastCut = 0
  private entryValues = 0

  open(at: number, values: number): void {
    this.lists.push({ start: at + 1, end: at + 1, cuts: [] })
    this.lastCut = at
    this.entryValues = values
  }

  comma(at: number, values: number): void {
    this.endEntry(values)
    if (at - this.lastCut < partChars) return
    this.lists.at(-1)?.cuts.push(at)
    this.lastCut = at
  }

  close(at: number, values: number): void {
    this.endEntry(values)
    const list = this.lists.at(-1)
    if (list !== undefined) list.end = at
  }

  private endEntry(values: number): void {
    if (values - this.entryValues > entryValuesMax) throw tooComplex(`an entry with more than ${entryValuesMax} values`)
    this.entryValues = values
  }
}

/**
 * The value of the text, as `JSON.parse` gives it. `pause` waits for the next turn. Throws `invalid_json`, and
 * `body_too_complex` if the text exceeds the limits or has too many values that no list holds.
 */
export async function parseInTurns(
  text: string,
  limits: JsonLimits,
  pause: () => Promise<void> = nextTurn,
): Promise<unknown> {
  const finder = new ListFinder()
  for (const _part of scanJson(text, limits, partChars, finder)) await pause()
  const { lists } = finder
  // Before it is parsed: the text without the entries of the lists, each of which has its number instead.
  const frame = frameOf(text, lists)
  for (const _part of scanJson(frame, { ...limits, values: jsonLimits.values }, partChars)) await pause()
  const value = parsed(frame)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  for (const [name, inner] of Object.entries(value)) {
    const list = Array.isArray(inner) ? lists[inner[0] as number] : undefined
    if (list !== undefined) (value as Record<string, unknown>)[name] = await entriesOf(text, list, pause)
  }
  return value
}

async function entriesOf(text: string, list: FoundList, pause: () => Promise<void>): Promise<unknown[]> {
  const entries: unknown[] = []
  let { start } = list
  for (const end of [...list.cuts, list.end]) {
    const part = parsed(`[${text.slice(start, end)}]`) as unknown[]
    // A comma without an entry beside it.
    if (part.length === 0 && list.cuts.length > 0) throw notJson()
    for (const entry of part) entries.push(entry)
    start = end + 1
    if (end !== list.end) await pause()
  }
  return entries
}

function frameOf(text: string, lists: readonly FoundList[]): string {
  let frame = ''
  let start = 0
  for (const [number, list] of lists.entries()) {
    frame += text.slice(start, list.start) + String(number)
    start = list.end
  }
  return frame + text.slice(start)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw notJson(cause)
  }
}

function notJson(cause?: unknown): AppError {
  return new AppError('invalid_json', 'The body is not JSON.', { cause })
}
