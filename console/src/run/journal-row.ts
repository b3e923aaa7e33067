// One event of the journal of a run, with the bytes that wires send for it.

import type { EventBodies, EventType, RunFrame } from '@polylog/client'

export type JournalRow = {
  [Type in EventType]: {
    seq: number
    atMs: number
    attempt: number
    type: Type
    data: EventBodies[Type]
    /** By the name of the format; a format that sends nothing is absent. */
    wires: Record<string, string[] | undefined>
    /** The formats whose streams end here. */
    ends: string[]
  }
}[EventType]

/** The format that the fold of the client reads. */
export const nativeFormat = 'sse'

export function framesOf(row: JournalRow): RunFrame[] {
  return (row.wires[nativeFormat] ?? []).map(nativeFrame)
}

/** The native wire always has an id, and its data in one line. */
function nativeFrame(text: string): RunFrame {
  const id = /^id: (\S+)/.exec(text)?.[1] ?? '0'
  const json = text.slice(text.indexOf('\ndata: ') + 7)
  return { ...(JSON.parse(json) as Omit<RunFrame, 'id'>), id } as RunFrame
}
