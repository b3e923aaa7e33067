// Items of type `item_reference` name an item of an earlier response instead of repeating it. They are
// replaced by the item, which a fold of its run gives. Some clients send only references for
// everything that the server has said.

import { openAiResponsesDialect } from '../../dialects/openai-responses/openai-responses.ts'
import type { ResponseItem } from '../../dialects/openai-responses/response-object.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Caller } from '../../kit/caller.ts'
import type { Services } from '../routes.ts'
import { foldStoredFrames } from '../stored-frames.ts'
import { inputItem, type InputItem, type ResponseInput } from './response-input.ts'
import { responseFamily } from './stored-response.ts'

/** Each run is folded once, and this bounds how many are. */
const referencedRunsMax = 200

/** Throws `response_not_found` if the caller has no such item. */
export async function withReferencedItems(
  services: Pick<Services, 'runs' | 'journal'>,
  caller: Caller,
  input: ResponseInput,
): Promise<ResponseInput> {
  if (typeof input === 'string' || !input.some(isReference)) return input
  const itemsOfRuns = new Map<string, ReadonlyMap<string, InputItem>>()
  const items: InputItem[] = []
  for (const [index, item] of input.entries()) {
    if (!isReference(item)) {
      items.push(item)
      continue
    }
    const runId = /^[a-z]+_(.+)_\d+$/.exec(item.id ?? '')?.[1] ?? ''
    if (!itemsOfRuns.has(runId)) {
      if (itemsOfRuns.size >= referencedRunsMax) {
        throw new AppError(
          'messages_invalid',
          `input: items of more than ${referencedRunsMax} responses are referenced; use previous_response_id.`,
        )
      }
      itemsOfRuns.set(runId, await itemsOf(services, caller, runId))
    }
    const found = itemsOfRuns.get(runId)?.get(item.id ?? '')
    if (found === undefined) {
      throw new AppError('response_not_found', `input[${index}]: there is no item ${JSON.stringify(item.id ?? '')}.`, {
        details: { param: `input[${index}]` },
      })
    }
    items.push(found)
  }
  return items
}

function isReference({ type }: InputItem): boolean {
  return type === 'item_reference'
}

async function itemsOf(
  { runs, journal }: Pick<Services, 'runs' | 'journal'>,
  caller: Caller,
  runId: string,
): Promise<ReadonlyMap<string, InputItem>> {
  const items = new Map<string, InputItem>()
  const run = await runs.find(caller, runId)
  if (run === undefined || run.family !== responseFamily) return items
  await foldStoredFrames(journal, run.id, openAiResponsesDialect, {
    frame: ({ frame: { name, data } }) => {
      if (name !== 'response.output_item.done') return
      const { item } = data as { item: ResponseItem }
      items.set(item.id, inputItem.parse(item))
    },
  })
  return items
}
