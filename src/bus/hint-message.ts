// Messages of hints, as JSON. A message fits into a notification of PostgreSQL, whatever bus
// carries it. What cannot be understood is ignored: it may come from a later version.

import { isRecord } from '../kit/is-record.ts'

/** Hints that wait to be sent, or that one message brought. */
export type Hints = {
  /** The newest seq of each run. */
  announced: Map<string, number>
  /** Null: some run may have become claimable. */
  signalled: Set<string | null>
  /** Users whose feed has changed. */
  changed: Set<string>
}

export type HintMessage = Hints & {
  /** The node that sent it. */
  from: string
  /** When the oldest of these hints was given, by the sender's clock. */
  at: number
}

/** PostgreSQL refuses 8000 bytes or more. */
const messageBytesMax = 7_900
/** Ids of nodes and runs are ULIDs; a longer one is not ours. */
const idLengthMax = 200

export const countHints = ({ announced, signalled, changed }: Hints) => announced.size + signalled.size + changed.size

/** As few messages as possible. */
export function encodeHints(from: string, at: number, hints: Hints): string[] {
  const messages: string[] = []
  const head = `{"from":${JSON.stringify(from)},"at":${at}`
  let announced: string[] = []
  let signalled: string[] = []
  let changed: string[] = []
  let bytes = 0
  const end = () => {
    if (announced.length + signalled.length + changed.length > 0)
      messages.push(
        `${head},"announced":{${announced.join()}},"signalled":[${signalled.join()}],"changed":[${changed.join()}]}`,
      )
    announced = []
    signalled = []
    changed = []
    bytes = head.length + 60
  }
  end()
  const add = (list: keyof Hints, text: string) => {
    const size = Buffer.byteLength(text) + 1
    if (bytes + size > messageBytesMax) end()
    bytes += size
    if (list === 'announced') announced.push(text)
    else if (list === 'signalled') signalled.push(text)
    else changed.push(text)
  }
  for (const runId of hints.signalled) if (isId(runId ?? '-')) add('signalled', JSON.stringify(runId))
  for (const [runId, seq] of hints.announced) if (isId(runId)) add('announced', `${JSON.stringify(runId)}:${seq}`)
  for (const owner of hints.changed) if (isId(owner)) add('changed', JSON.stringify(owner))
  end()
  return messages
}

/** Undefined if it is not a message of hints. */
export function decodeHints(text: string): HintMessage | undefined {
  if (text.length > messageBytesMax) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isRecord(value)) return undefined
  const { from, at, announced, signalled, changed = [] } = value
  if (!isId(from) || typeof at !== 'number' || !isRecord(announced)) return undefined
  if (!Array.isArray(signalled) || !Array.isArray(changed)) return undefined
  const message: HintMessage = { from, at, announced: new Map(), signalled: new Set(), changed: new Set() }
  for (const [runId, seq] of Object.entries(announced))
    if (isId(runId) && Number.isSafeInteger(seq)) message.announced.set(runId, seq as number)
  for (const runId of signalled as unknown[]) if (runId === null || isId(runId)) message.signalled.add(runId)
  for (const owner of changed as unknown[]) if (isId(owner)) message.changed.add(owner)
  return message
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= idLengthMax
}
