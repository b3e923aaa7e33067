// Which requests are a second answer to a question that is being answered, under a
// clock that the test moves.

import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { openRig, type Rig } from '../../test/support/run-rig.ts'
import type { StartRequest } from './start-request.ts'

let rig: Rig
let questions = 0
before(async () => {
  rig = await openRig()
})
after(() => rig.close())

/** A question and a time that no other test uses. */
function newQuestion(): Partial<StartRequest> & { input: string; sentAt: number } {
  questions += 1
  return { family: 'chat-api', input: `Question ${questions}?`, sentAt: questions }
}

async function ended(request: Partial<StartRequest>): Promise<{ id: string; conversationId: string }> {
  const { run } = await rig.start(request)
  await rig.until(run.id, (row) => row.endedAt !== null)
  return { id: run.id, conversationId: run.conversationId as string }
}

async function isSecondTo(first: string, second: string): Promise<boolean> {
  const [accepted] = await rig.events(second)
  return accepted?.type === 'run.accepted' && accepted.data.spec.secondOf === first
}

it('the same question with the same time is a second answer, with or without the name of the conversation', async () => {
  for (const named of [true, false]) {
    const question = newQuestion()
    const first = await ended(question)
    const place = named ? { conversationId: first.conversationId } : {}

    const second = await ended({ ...question, ...place })

    assert.equal(second.conversationId, first.conversationId)
    assert.equal(await isSecondTo(first.id, second.id), true)
    const { rows: messages } = await rig.store.listMessages(first.conversationId, { limit: 9 })
    assert.deepEqual(
      messages.map(({ role }) => role),
      ['user', 'assistant'],
    )
  }
})

it('a client that sends one time with every request may repeat its question a minute later', async () => {
  const question = newQuestion()
  const first = await ended(question)
  await rig.clock.advance(60_001)

  const again = await ended({ ...question, conversationId: first.conversationId })
  const elsewhere = await ended(question)

  assert.equal(await isSecondTo(first.id, again.id), false)
  assert.equal((await rig.store.listMessages(first.conversationId, { limit: 9 })).rows.length, 4)
  assert.notEqual(elsewhere.conversationId, first.conversationId)
})

it('another user, family, text, time or place is a question of its own, and so is a third', async () => {
  const question = newQuestion()
  const first = await ended(question)
  const { conversationId } = first
  const others: Partial<StartRequest>[] = [
    { ...question, owner: 'bob' },
    { ...question, family: 'agent' },
    { ...question, input: 'Something else?' },
    { ...question, sentAt: question.sentAt + 0.5 },
    { ...question, conversationId: `elsewhere-${conversationId}` },
  ]
  for (const other of others) {
    const run = await ended(other)
    assert.equal(await isSecondTo(first.id, run.id), false, JSON.stringify(other))
    assert.notEqual(run.conversationId, conversationId)
  }

  const second = await ended({ ...question, conversationId })
  const third = await ended({ ...question, conversationId })
  assert.equal(await isSecondTo(first.id, second.id), true)
  assert.deepEqual([await isSecondTo(first.id, third.id), await isSecondTo(second.id, third.id)], [false, false])
})

it('a question that was followed by another is not answered a second time', async () => {
  const question = newQuestion()
  const first = await ended(question)
  await ended({ ...newQuestion(), conversationId: first.conversationId })

  const late = await ended({ ...question, conversationId: first.conversationId })
  const nameless = await ended(question)

  assert.equal(await isSecondTo(first.id, late.id), false)
  assert.notEqual(nameless.conversationId, first.conversationId)
})
