import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventData, RunEvent } from '../journal/event.ts'
import { findEarlierResult } from './earlier-result.ts'

type Saved = { path: string; body?: string | undefined }

/** A store with one earlier job that ended so and saved these files. */
function storeWith(ended: EventData<'run.ended'> | undefined, saved: Saved[] = [], known = true) {
  const events: RunEvent[] = []
  const add = (type: string, data: object) =>
    events.push({ seq: events.length + 1, at: 1, attempt: 1, type, data } as unknown as RunEvent)
  for (const [index, { path, body }] of saved.entries()) {
    const callId = `c${index}`
    add('tool.called', { callId, name: 'save_artifact', step: 1, index, input: {}, note: '', effect: 'idempotent' })
    const output = { path: `artifacts/${path}`, bytes: body?.length ?? 0 }
    add('tool.done', { callId, outcome: 'succeeded', output, summary: '' })
  }
  if (ended !== undefined) add('run.ended', ended)
  return {
    findCached: (owner: string, key: string) =>
      Promise.resolve(known && owner === 'ada' && key === 'k' ? 'earlier' : undefined),
    readEvents: (_: string, after: number) =>
      Promise.resolve({ events: events.slice(after), skipped: 0, nextAfter: events.length, atHead: true }),
    readBlob: (id: string) => {
      const body = saved.find(({ path }) => id === `earlier:artifact:${path}`)?.body
      return Promise.resolve(body === undefined ? undefined : { runId: 'earlier', body })
    },
  }
}

const find = (store: ReturnType<typeof storeWith>) => findEarlierResult(store, 'ada', 'k', 'new')
const succeeded = (output: string): EventData<'run.ended'> => ({ status: 'succeeded', output })

test('the result of an earlier job comes with copies of its files under the new job', async () => {
  const found = await find(storeWith(succeeded('Done.'), [{ path: 'a/b.md', body: 'text' }]))

  assert.deepEqual(found, {
    reused: { runId: 'earlier', output: 'Done.', artifacts: [{ path: 'artifacts/a/b.md', size: 4 }] },
    blobs: [{ id: 'new:artifact:a/b.md', body: 'text' }],
  })
})

test('a result that is missing, incomplete or too large to copy is computed again', async () => {
  const [mebibyte, quarter] = [1024 * 1024, 256 * 1024]
  assert.equal(await find(storeWith(succeeded('Done.'), [], false)), undefined)
  assert.equal(await find(storeWith(undefined)), undefined)
  assert.equal(await find(storeWith({ status: 'failed', output: 'Done.' })), undefined)
  assert.equal(await find(storeWith({ status: 'succeeded' })), undefined)
  assert.equal(await find(storeWith(succeeded('Done.'), [{ path: 'gone.md' }])), undefined)
  assert.notEqual(await find(storeWith(succeeded('x'.repeat(quarter)))), undefined)
  assert.equal(await find(storeWith(succeeded('x'.repeat(quarter + 1)))), undefined)
  const files = (last: number) => [
    { path: 'a', body: 'x'.repeat(3 * mebibyte) },
    { path: 'b', body: 'x'.repeat(last) },
  ]
  assert.notEqual(await find(storeWith(succeeded('Done.'), files(mebibyte))), undefined)
  assert.equal(await find(storeWith(succeeded('Done.'), files(mebibyte + 1))), undefined)
})
