// What the pictures of the console show: the assistant of a shop, on the real server with its tools in code, in front of the
// fake model provider, which answers at the pace of a real one.

import { type Action, startFakeProvider } from '../test/support/fake-provider.ts'
import { configFolder } from '../test/support/config-folder.ts'
import { newDataFolder, type Polylog } from '../test/support/polylog.ts'
import { startPolylogProcess } from '../test/support/polylog-process.ts'
import { callServer, calls } from '../test/support/test-server.ts'
import { openStream } from '../test/support/sse.ts'

export const user = 'ada'
export const refundQuestion = 'My lamp of order 1042 arrived broken. Can I get a refund?'
export const blindQuestion = 'How do I return a lamp that I ordered last week?'

export type Story = {
  polylog: Polylog
  /** One more question with its answer, in a conversation of its own. */
  tell(question: string, answer: string): Promise<void>
  newestRun(): Promise<string>
  close(): Promise<void>
}

const config = `
import { defineConfig, defineTool, z } from 'polylog'

const after = (ms, value) => new Promise((resolve) => setTimeout(() => resolve(value), ms))
const order = { orderId: z.string() }

export default defineConfig({
  tools: [
    defineTool({
      name: 'look_up_order',
      description: 'Reads an order.',
      input: z.object(order),
      effect: 'read',
      execute: ({ orderId }) =>
        after(420, { orderId, state: 'delivered', items: [
          { name: 'Desk lamp, brass', quantity: 1, price: 48 }, { name: 'Light bulb, E27', quantity: 2, price: 6.5 },
        ] }),
    }),
    defineTool({
      name: 'read_policy',
      description: 'Reads a page of the rules of the shop.',
      input: z.object({ page: z.string() }),
      effect: 'read',
      execute: () => after(260, 'Items that arrive broken are refunded in full, without return, within 30 days.'),
    }),
    defineTool({
      name: 'refund_item',
      description: 'Pays the price of an item back.',
      input: z.object({ ...order, item: z.string(), amount: z.number() }),
      effect: 'unsafe',
      describe: ({ orderId, item, amount }) =>
        'Pay €' + amount.toFixed(2) + ' back for “' + item + '” of order ' + orderId,
      execute: ({ amount }) => after(640, { refundId: 'rf_58231', amount, arrivesInDays: 3 }),
    }),
  ],
})
`

const configs = [
  { name: 'default', description: 'The assistant of the shop' },
  { name: 'brief', description: 'Two sentences at most', systemPrompt: 'Answer in two sentences at most.' },
  { name: 'step by step', description: 'Numbered steps', systemPrompt: 'Answer with numbered steps.' },
]

const refund = { orderId: '1042', item: 'Desk lamp, brass', amount: 48 }

const found = `I am sorry about the lamp. This is order **1042**, delivered on Thursday:

| Item | Quantity | Price |
|---|---:|---:|
| Desk lamp, brass | 1 | €48.00 |
| Light bulb, E27 | 2 | €13.00 |

Items that arrive broken are refunded in full. Shall I pay back the **€48.00** of the lamp?`

const briefly = `Open *Orders*, choose the lamp and print the label; any parcel shop takes it within 30 days. The money is back
three days after the parcel arrives.`

const inSteps = `1. Open **Orders** and choose the order with the lamp.
2. Select *Return* and a reason. You get a label by mail.
3. Pack the lamp in any box and put the label on it.
4. Hand it in at a parcel shop within **30 days**.

You see the refund under *Payments* about three days after we have the parcel.`

export async function startStory(): Promise<Story> {
  const provider = await startFakeProvider()
  const folder = configFolder()
  folder.write('polylog.config.ts', config)
  const settings = {
    OPENAI_API_KEY: 'none',
    OPENAI_BASE_URL: provider.baseUrl,
    POLYLOG_MODEL: 'openai/shop-model',
    POLYLOG_MODEL_CONFIGS: folder.write('configs.json', JSON.stringify(configs)),
  }
  const polylog = await startPolylogProcess(settings, newDataFolder(), folder.command())
  await provider.script(
    [
      thinks(500, calls(['look_up_order', { orderId: '1042' }], ['read_policy', { page: 'broken items' }])),
      thinks(700, [...spoken(found), ...calls(['refund_item', refund])]),
      thinks(450, [
        ...spoken(
          'Done: **€48.00** are on their way to you and arrive within three days. The reference is `rf_58231`.',
        ),
        { finish: 'stop' },
      ]),
    ],
    refundQuestion,
  )
  // Which configuration answers first is not known, and both use one model: the order does not matter to the picture.
  await provider.script(
    [
      [...spoken(inSteps), { finish: 'stop' }],
      [...spoken(briefly), { finish: 'stop' }],
    ],
    blindQuestion,
  )
  return {
    polylog,
    async newestRun() {
      const { body } = await callServer(polylog.baseUrl, 'GET', '/v1/agent/runs?limit=1', { user })
      return (body as unknown as { runId: string }[])[0]?.runId ?? ''
    },
    async tell(question, answer) {
      await provider.script([[...spoken(answer), { finish: 'stop' }]], question)
      const stream = await openStream(`${polylog.baseUrl}/v1/agent/chat`, {
        method: 'POST',
        body: { userId: user, input: question },
      })
      await stream.ended()
    },
    async close() {
      await polylog.dispose()
      await provider.stop()
      folder.remove()
    },
  }
}

/** A model needs a moment before its first token. */
function thinks(delayMs: number, actions: Action[]): Action[] {
  return [{ delayMs }, ...actions]
}

/** The text in words, a few every 40 ms. */
function spoken(text: string): Action[] {
  const words = text.match(/\S+\s*/g) ?? []
  const actions: Action[] = []
  for (let at = 0; at < words.length; at += 4) actions.push({ text: words.slice(at, at + 4) }, { delayMs: 40 })
  return actions
}
