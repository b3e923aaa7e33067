// One run whose answer has 18 MB, in a process with a small heap (its parent sets that).
// Prints the outcome as one line of JSON.

import { Follower } from '../../src/bus/follower.ts'
import { foldRun } from '../../src/journal/run-state.ts'
import { systemClock } from '../../src/kit/clock.ts'
import type { ModelPart } from '../../src/models/model.ts'
import { openRig } from './run-rig.ts'

const pieces = 1152
const piece = 'All work and no play makes "Jack" a dull boy.\n'.repeat(350).slice(0, 16_384)

async function* longAnswer(): AsyncGenerator<ModelPart[]> {
  for (let count = 0; count < pieces; count += 1) yield [{ type: 'text', text: piece }]
  yield [{ type: 'finish', reason: 'stop' }]
}

const rig = await openRig({ answer: longAnswer })
const { run } = await rig.start({ conversationId: 'c' })
const follower = new Follower(run.id, 0, rig.store, rig.bus, systemClock)
let shown = 0
let output: number | null = 0
let message = 0
for (let batch = await follower.next(); batch !== null; batch = await follower.next()) {
  for (const event of batch.events) {
    if (event.type === 'text.delta') shown += event.data.text.length
    if (event.type === 'message.done') message = event.data.text.length
    if (event.type === 'run.ended') output = event.data.output?.length ?? null
  }
}
follower.close()
const folded = foldRun(await rig.events(run.id)).ended?.output?.length
const row = await rig.store.readRun(run.id)
const stored = (await rig.store.allMessages(run.conversationId ?? '', { limit: 10 })).find(
  ({ role }) => role === 'assistant',
)
await rig.close()
console.log(
  JSON.stringify({
    status: row?.status,
    asked: pieces * piece.length,
    shown,
    message,
    output,
    folded,
    stored: stored?.content.length,
    complaints: rig.complaints,
  }),
)
