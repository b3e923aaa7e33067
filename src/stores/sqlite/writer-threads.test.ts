import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Worker } from 'node:worker_threads'
import type { WriterMessage } from './commands.ts'
import { giveBackWriter, startWriter } from './writer-threads.ts'

const folder = mkdtempSync(join(tmpdir(), 'polylog-threads-'))
after(() => rmSync(folder, { recursive: true, force: true }))

async function heard(worker: Worker): Promise<WriterMessage['type']> {
  const [message] = (await once(worker, 'message')) as [WriterMessage]
  return message.type
}

async function openedAndClosed(name: string): Promise<Worker> {
  const worker = startWriter(join(folder, name))
  assert.equal(await heard(worker), 'ready')
  worker.postMessage('close')
  assert.equal(await heard(worker), 'closed')
  return worker
}

test('a thread that closed its file opens the next one, without the listeners of its last user', async () => {
  const first = await openedAndClosed('one.db')
  first.on('message', () => assert.fail('told to the last user'))
  await giveBackWriter(first, true)
  const second = await openedAndClosed('two.db')
  assert.equal(second, first)
  await giveBackWriter(second, false)
})

test('a thread that failed is ended, and another is started', async () => {
  const first = await openedAndClosed('one.db')
  await giveBackWriter(first, false)
  const second = await openedAndClosed('one.db')
  assert.notEqual(second, first)
  await giveBackWriter(second, false)
})

test('a thread that ends while it waits for a file is not used again', async () => {
  const first = await openedAndClosed('one.db')
  await giveBackWriter(first, true)
  await first.terminate()
  const second = await openedAndClosed('one.db')
  assert.notEqual(second, first)
  await giveBackWriter(second, false)
})

test('two threads are kept, and more are ended', async () => {
  const workers = await Promise.all(['one.db', 'two.db', 'three.db'].map(openedAndClosed))
  for (const worker of workers) await giveBackWriter(worker, true)
  const kept = await Promise.all(['one.db', 'two.db', 'three.db'].map(openedAndClosed))
  assert.equal(kept.filter((worker) => workers.includes(worker)).length, 2)
  for (const worker of kept) await giveBackWriter(worker, false)
})

test('a file that cannot be opened is refused', async () => {
  const worker = startWriter(join(folder, 'missing', 'one.db'))
  assert.equal(await heard(worker), 'refused')
  await giveBackWriter(worker, false)
})
