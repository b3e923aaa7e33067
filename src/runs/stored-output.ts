// The output of a tool call as `tool.done` holds it. An output that is too long for an event is
// cut there and stored in full as a blob.

import type { EventData, JsonValue } from '../journal/event.ts'
import { beginningOf } from '../kit/cut-text.ts'
import { defined } from '../kit/defined.ts'
import type { Ids } from '../kit/ids.ts'
import { outputText } from '../journal/tool-outcome.ts'

export type StoredOutput = Pick<EventData<'tool.done'>, 'output' | 'fullLength' | 'truncated' | 'outputRef'>

/** A journal event holds at most 1 MiB, so larger outputs are stored as blobs. */
export const inlineOutputCharsMax = 256 * 1024

export async function storeOutput(
  output: JsonValue | undefined,
  charsMax: number,
  { ids, putBlob }: { ids: Ids; putBlob(id: string, body: string): Promise<void> },
): Promise<StoredOutput> {
  const text = outputText(output)
  if (text.length <= charsMax) return { ...defined({ output }), fullLength: text.length, truncated: false }
  const cut = { output: beginningOf(text, charsMax), fullLength: text.length, truncated: true }
  const outputRef = ids()
  try {
    await putBlob(outputRef, text)
  } catch {
    // The call has happened, so a failure to store its long output must not turn it into a failed one.
    return cut
  }
  return { ...cut, outputRef }
}
