// A crash after every commit of a run whose client executes two of its tools. A client that comes
// back sends its results again, as it cannot know which of them arrived.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crashImages } from '../../test/support/crash-images.ts'
import { ended, eventsOf, isWaiting, quiet, reached } from '../../test/support/run-helpers.ts'
import { calls, openRig, type Rig, type RigOptions, says, toolOf } from '../../test/support/run-rig.ts'
import { asUser } from '../kit/caller.ts'
import { ClientToolService } from './client-tool-service.ts'

const clientTools = [{ name: 'locate', inputSchema: { type: 'object' } }]
const results = [
  { toolCallId: 'k1', output: 'Oslo' },
  { toolCallId: 'k2', error: 'No permission.' },
]
const ada = asUser('ada')

const answer: RigOptions['answer'] = ({ messages }) => {
  const given = messages.flatMap((message) => (message.role === 'tool' ? [message.content] : []))
  if (given.length > 0) return says(given.join(' | '))
  const locate = { name: 'locate', text: 'Let me see. ' }
  return calls({ callId: 'k1', ...locate }, { callId: 'k2', ...locate }, { callId: 'c', name: 'clock' })
}
const clock = toolOf({ name: 'clock', run: async () => ({ ok: true, output: 'noon', summary: 'noon' }) })
const options: RigOptions = { answer, tools: [clock] }

/** Sends all results as soon as the run waits, again if it waits again, until it ends. */
async function seeThrough(rig: Rig, runId: string): Promise<void> {
  const clients = new ClientToolService(rig.dependencies, rig.scheduler)
  for (;;) {
    await rig.until(runId, (row) => ended(row) || isWaiting(row))
    if ((await rig.store.readRun(runId))?.endedAt != null) return
    await clients.resolve(ada, runId, results)
    await rig.until(runId, (row) => ended(row) || !isWaiting(row))
  }
}

test('killed after any commit: each result counts once, and the run ends with all of them', async (context) => {
  const images = crashImages(context, ['append', 'decide'])
  const first = await openRig({ ...options, ...images.options })
  context.after(() => first.close())
  const { run } = await first.start({ clientTools })
  await first.until(run.id, isWaiting)
  const clients = new ClientToolService(first.dependencies, first.scheduler)
  for (const [index, result] of results.entries()) {
    await clients.resolve(ada, run.id, [result])
    await reached(async () => eventsOf(await first.events(run.id), 'input.resolved').length === index + 1)
    await quiet()
  }
  await first.until(run.id, ended)
  assert.ok(images.paths.length > 8, `${images.paths.length} images`)

  const openCounts = new Set<number>()
  for (const [index, path] of images.paths.entries()) {
    const rig = await images.reopen(path, { ...options, clock: first.clock })
    const rows = await rig.store.interactionsOf(run.id)
    openCounts.add(rows.filter(({ status }) => status === 'pending').length)

    rig.scheduler.start()
    await seeThrough(rig, run.id)

    const events = await rig.events(run.id)
    const at = `image ${index}`
    const end = events.at(-1)
    const output = end?.type === 'run.ended' ? end.data.output : undefined
    assert.equal(output, 'Oslo | The tool failed: No permission. | noon', at)
    assert.deepEqual(
      eventsOf(events, 'input.resolved')
        .map(({ data }) => data.resolution)
        .toSorted(),
      ['rejected', 'replied'],
      at,
    )
    assert.equal(eventsOf(events, 'input.required').length, 2, at)
    assert.equal(eventsOf(events, 'tool.done').length, 3, at)
    await rig.close()
  }
  assert.deepEqual(openCounts, new Set([0, 2, 1]), 'there is an image with each number of open calls')
})
