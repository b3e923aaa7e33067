// The first frames of a subscription stay below the size that clients accept, however long the task is.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { A2aFrame, A2aTask } from '../../dialects/a2a/task.ts'
import { TaskFold } from '../../dialects/a2a/task.ts'
import { encodeOpening, withHistory } from './task-reader.ts'

/** The limit of the client for one event. */
const eventBytesMax = 4 * 1024 * 1024

function taskWith(texts: string[], historyTexts: string[] = []): A2aTask {
  return {
    id: 'task',
    contextId: 'context',
    status: { state: 'TASK_STATE_WORKING', timestamp: '2026-01-02T03:04:05.000Z' },
    artifacts: texts.map((text, index) => ({ artifactId: `artifact-${index}`, parts: [{ text }] })),
    history: historyTexts.map((text, index) => ({
      messageId: `message-${index}`,
      contextId: 'context',
      taskId: 'task',
      role: 'ROLE_AGENT',
      parts: [{ text }],
    })),
  }
}

function openingOf(task: A2aTask): { events: string[]; read: A2aTask | undefined } {
  const events = encodeOpening(task, { requestId: 1 }).split('\n\n').slice(0, -1)
  const fold = new TaskFold()
  for (const event of events) {
    const { result } = JSON.parse(event.slice('data: '.length)) as { result: Record<string, unknown> }
    const [[name, data] = []] = Object.entries(result)
    fold.add({ name, data } as A2aFrame)
  }
  return { events, read: fold.task() }
}

const textsOf = (task: A2aTask | undefined) => task?.artifacts?.map(({ parts }) => parts)

test('a short task is one event', () => {
  const task = taskWith(['Hello.'])
  const { events, read } = openingOf(task)

  assert.equal(events.length, 1)
  assert.deepEqual(textsOf(read), [[{ text: 'Hello.' }]])
})

test('the text of a long task comes in events that a client accepts, and adds up to the same', () => {
  // Control characters take six bytes each, and the emoji must not be torn.
  const task = taskWith(['a', '\u0001'.repeat(3_000_000), '🙂'.repeat(700_000)])
  const { events, read } = openingOf(task)

  assert.ok(events.length > 5)
  for (const event of events) assert.ok(Buffer.byteLength(event) < eventBytesMax)
  assert.deepEqual(textsOf(read), textsOf(task))
  assert.ok(encodeOpening(task, {}).isWellFormed())
})

test('of a long history only the newest messages are there', () => {
  const { events, read } = openingOf(taskWith([], ['x'.repeat(600_000), 'old', 'new']))

  assert.ok(events.every((event) => event.length < eventBytesMax))
  assert.deepEqual(
    read?.history?.map(({ messageId }) => messageId),
    ['message-1', 'message-2'],
  )
})

test('a client chooses how many messages it gets', () => {
  const task = taskWith([], ['a', 'b', 'c'])
  const ids = (length: number | undefined) => withHistory(task, length).history?.map(({ messageId }) => messageId)

  assert.deepEqual([ids(0), ids(1), ids(9)?.length, ids(undefined)?.length], [[], ['message-2'], 3, 3])
})
