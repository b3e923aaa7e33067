// Selects whole items that fit a token budget. Nothing is cut in the middle: an item is
// given to the model as it is, or left out.

import { sortedJson } from '../../kit/sorted-json.ts'
import { estimateTokens } from '../../kit/token-estimate.ts'

/** Takes items in the given order, the most important first. An item that does not fit is skipped, and later ones are still tried. */
export function takeThatFit<Item>(
  items: readonly Item[],
  tokens: number,
  jsonOf: (item: Item) => unknown = (item) => item,
): { taken: Item[]; omitted: number } {
  let room = tokens
  const taken = items.filter((item) => {
    // One more for the comma between two items.
    const cost = estimateTokens(sortedJson(jsonOf(item))) + 1
    if (cost > room) return false
    room -= cost
    return true
  })
  return { taken, omitted: items.length - taken.length }
}
