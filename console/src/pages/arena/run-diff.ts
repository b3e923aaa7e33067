// Two runs side by side: their messages and tool calls are matched in order, so that what belongs together is in one row.
// Pure.

// Not by the name of the package, because tests import this file too.
import type { Block, JsonValue, ToolBlock } from '../../../../client/src/index.ts'
import { type DiffPart, diffTexts, similarity } from '../../ui/text-diff.ts'

type TextRow = {
  kind: 'text' | 'reasoning'
  left: string | null
  right: string | null
  parts: DiffPart[]
}

type ToolRow = {
  kind: 'tool'
  left: ToolBlock | null
  right: ToolBlock | null
  sameInput: boolean
  sameOutput: boolean
}

export type DiffRow = (TextRow | ToolRow) & { isSame: boolean }

export type RunDiff = {
  rows: DiffRow[]
  /** How much of the texts of the two answers is the same, from 0 to 1. */
  similarity: number
  tools: { matched: number; sameInput: number; onlyLeft: number; onlyRight: number }
  /** More blocks than can be matched; the rest is left out. */
  isCut: boolean
}

type Comparable = Extract<Block, { type: 'text' | 'tool' | 'reasoning' }>

/** Matching takes time that grows with the product of both numbers. */
const blocksMax = 300

export function runDiff(left: readonly Block[], right: readonly Block[]): RunDiff {
  const [a, b] = [comparable(left), comparable(right)]
  const rows = matched(a.slice(0, blocksMax), b.slice(0, blocksMax)).map(([from, to]) => rowOf(from, to))
  const toolRows = rows.flatMap((row) => (row.kind === 'tool' ? [row] : []))
  const pairs = toolRows.filter((row) => row.left !== null && row.right !== null)
  const texts = rows.flatMap((row) => (row.kind === 'text' ? row.parts : []))
  return {
    rows,
    similarity: similarity(texts),
    tools: {
      matched: pairs.length,
      sameInput: pairs.filter(({ sameInput }) => sameInput).length,
      onlyLeft: toolRows.filter((row) => row.right === null).length,
      onlyRight: toolRows.filter((row) => row.left === null).length,
    },
    isCut: a.length > blocksMax || b.length > blocksMax,
  }
}

function comparable(blocks: readonly Block[]): Comparable[] {
  return blocks.filter((block): block is Comparable => {
    if (block.type === 'text') return block.text !== '' && block.state !== 'superseded' && block.role === 'assistant'
    return block.type === 'tool' || (block.type === 'reasoning' && block.text !== '')
  })
}

/** How well two blocks belong together; 0: not at all. */
function score(a: Comparable, b: Comparable): number {
  if (a.type === 'tool' && b.type === 'tool') return a.name !== b.name ? 0 : isEqual(a.input, b.input) ? 4 : 3
  return a.type === b.type ? 2 : 0
}

/** The best alignment that keeps both orders (Needleman and Wunsch 1970, without a cost of gaps). */
function matched(
  a: readonly Comparable[],
  b: readonly Comparable[],
): [left: Comparable | null, right: Comparable | null][] {
  const width = b.length + 1
  const best = new Int32Array((a.length + 1) * width)
  const value = (x: number, y: number) => best[x * width + y] ?? 0
  const pair = (x: number, y: number) => score(a[x] as Comparable, b[y] as Comparable)
  for (let x = a.length - 1; x >= 0; x--) {
    for (let y = b.length - 1; y >= 0; y--) {
      const fit = pair(x, y)
      const both = fit === 0 ? 0 : fit + value(x + 1, y + 1)
      best[x * width + y] = Math.max(both, value(x + 1, y), value(x, y + 1))
    }
  }
  const result: [Comparable | null, Comparable | null][] = []
  let [x, y] = [0, 0]
  while (x < a.length || y < b.length) {
    const fit = x < a.length && y < b.length ? pair(x, y) : 0
    if (fit > 0 && value(x, y) === fit + value(x + 1, y + 1)) result.push([a[x++] ?? null, b[y++] ?? null])
    else if (y >= b.length || (x < a.length && value(x + 1, y) >= value(x, y + 1))) result.push([a[x++] ?? null, null])
    else result.push([null, b[y++] ?? null])
  }
  return result
}

function rowOf(left: Comparable | null, right: Comparable | null): DiffRow {
  const given = left ?? right
  if (given?.type === 'tool') {
    const [a, b] = [left as ToolBlock | null, right as ToolBlock | null]
    const sameInput = a !== null && b !== null && isEqual(a.input, b.input)
    const sameOutput = a !== null && b !== null && isEqual(a.output, b.output)
    const isSame = sameInput && sameOutput && a.status === b.status
    return { kind: 'tool', left: a, right: b, sameInput, sameOutput, isSame }
  }
  const [a, b] = [textOf(left), textOf(right)]
  const kind = given?.type === 'reasoning' ? 'reasoning' : 'text'
  return { kind, left: a, right: b, parts: diffTexts(a ?? '', b ?? ''), isSame: a === b }
}

function textOf(block: Comparable | null): string | null {
  return block === null || block.type === 'tool' ? null : block.text
}

/** JSON values, whatever the order of keys. */
function isEqual(a: JsonValue | undefined | object, b: JsonValue | undefined | object): boolean {
  return sorted(a) === sorted(b)
}

function sorted(value: unknown): string {
  return (
    JSON.stringify(value, (_, entry: unknown) =>
      typeof entry === 'object' && entry !== null && !Array.isArray(entry)
        ? Object.fromEntries(Object.entries(entry).toSorted(([left], [right]) => (left < right ? -1 : 1)))
        : entry,
    ) ?? ''
  )
}
