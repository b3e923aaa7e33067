// A server with two tools in code. In this folder:
//
//   npx polylog
//
// Then, in another terminal: npx node ../chat.ts 'use the tool refund_order with {"orderId": "A-17"}'

import { defineConfig, defineTool, ToolError, z } from 'polylog'

// A real shop has a database or an API.
const orders = new Map([
  ['A-17', { item: 'a desk lamp', cents: 4900, refunded: false }],
  ['A-18', { item: 'a chair', cents: 12_900, refunded: false }],
])

const order = z.object({ orderId: z.string().describe('The number on the receipt, such as A-17.') })

function find(orderId: string) {
  const found = orders.get(orderId)
  if (found === undefined) throw new ToolError(`There is no order ${orderId}.`)
  return found
}

const lookUpOrder = defineTool({
  name: 'look_up_order',
  description: 'Tells what was bought with an order, for how much, and whether it was refunded.',
  input: order,
  effect: 'read',
  execute: ({ orderId }) => find(orderId),
})

const refundOrder = defineTool({
  name: 'refund_order',
  description: 'Refunds an order in full.',
  input: order,
  effect: 'unsafe',
  confirm: 'always',
  describe: ({ orderId }) => `Refund order ${orderId}`,
  execute({ orderId }, { userId, progress }) {
    const found = find(orderId)
    if (found.refunded) throw new ToolError(`Order ${orderId} was refunded before.`)
    progress(`Refunding ${found.item}`)
    found.refunded = true
    return { orderId, cents: found.cents, refundedBy: userId }
  },
})

export default defineConfig({
  // Everything that an environment variable sets can stand here; a variable wins.
  maxSteps: 10,
  tools: [lookUpOrder, refundOrder],
  models: { default: {}, brief: { systemPrompt: 'Answer in one sentence.' } },
  hooks: {
    onRunEnded(run) {
      console.log(`${run.userId}'s run ${run.id} has ${run.status}`)
    },
  },
})
