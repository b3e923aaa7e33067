// Comparisons on a real store and the real run machinery: many callers at once, an ending
// that was not noticed when it happened, and runs that expired.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { asUser } from '../kit/caller.ts'
import { openRig, type Rig, says, silence } from '../../test/support/run-rig.ts'
import { modelConfigsOf } from '../models/model-configs.ts'
import type { ComparisonRow } from '../stores/comparison-store.ts'
import { ComparisonService } from './comparison-service.ts'

let rig: Rig
/** What the next random number is. */
let random = 0
let service: ComparisonService
before(async () => {
  rig = await openRig({
    answer: (request, signal) =>
      request.spec.configName === 'slow' ? silence(signal) : says(`With ${request.spec.configName}.`),
  })
  rig.dependencies.configs = modelConfigsOf([{ name: 'calm' }, { name: 'wild' }, { name: 'slow' }])
  service = new ComparisonService({ ...rig.dependencies, runs: rig.service, random: () => random })
})
after(() => rig.close())

const start = {
  owner: 'ada',
  family: 'chat-api',
  input: 'Which?',
  earlier: [],
  whenBusy: 'queue' as const,
  idempotency: null,
}

async function compared(): Promise<ComparisonRow> {
  const { comparison, runA, runB } = await service.compare({ start, configA: 'calm', configB: 'wild' })
  for (const run of [runA, runB]) await rig.until(run.id, (row) => row.endedAt !== null)
  return comparison
}

const texts = async (row: ComparisonRow) =>
  (await rig.store.listMessages(row.conversationId, { limit: 10 })).rows.map((message) => message.content)

describe('the sides', () => {
  it('are drawn for each comparison, and the run of the first side is always made first', async () => {
    for (const [drawn, first] of [
      [0, 'calm'],
      [0.49, 'calm'],
      [0.5, 'wild'],
      [0.99, 'wild'],
    ] as const) {
      random = drawn
      const row = await compared()

      assert.equal(row.firstSideIsConfigA, first === 'calm')
      assert.deepEqual([row.configA, row.configB], ['calm', 'wild'], 'as they were asked for')
      assert.ok((row.runA ?? '') < (row.runB ?? ''), 'ids grow, and must not tell')
      assert.deepEqual(await texts(row), ['Which?', `With ${first}.`])
    }
    random = 0
  })
})

describe('votes that come at once', () => {
  it('count once, although each of them saw that there was no vote yet', async () => {
    const row = await compared()
    const preferences = ['b', 'a', 'tie', 'both_bad'] as const

    const votes = await Promise.allSettled(
      preferences.map((preference) => service.vote(asUser('ada'), row.id, preference, false)),
    )

    assert.equal(votes.filter((vote) => vote.status === 'fulfilled').length, 1)
    for (const vote of votes) if (vote.status === 'rejected') assert.equal(vote.reason.code, 'comparison_voted')
    const stored = await service.get(asUser('ada'), row.id)
    const counted = preferences[votes.findIndex((vote) => vote.status === 'fulfilled')]
    assert.deepEqual([stored.preference, stored.revisions], [counted, []])
    assert.deepEqual(await texts(row), ['Which?', counted === 'b' ? 'With wild.' : 'With calm.'])
  })

  it('all count as revisions, each on top of the one before, and the last is the history', async () => {
    const row = await compared()

    await Promise.all(
      (['b', 'a', 'tie', 'both_bad'] as const).map((preference) =>
        service.vote(asUser('ada'), row.id, preference, true),
      ),
    )

    const stored = await service.get(asUser('ada'), row.id)
    const all = [...stored.revisions.map((vote) => vote.preference), stored.preference]
    assert.deepEqual(
      all.toSorted((left, right) => ((left ?? '') < (right ?? '') ? -1 : 1)),
      ['a', 'b', 'both_bad', 'tie'],
    )
    assert.deepEqual(await texts(row), ['Which?', stored.preference === 'b' ? 'With wild.' : 'With calm.'])
  })
})

describe('an ending that was not noticed when it happened', () => {
  it('is settled by the next reader', async () => {
    const row = await compared()
    assert.equal((await rig.store.readComparison(row.id))?.state, 'pending', 'nobody was told')

    assert.equal((await service.get(asUser('ada'), row.id)).state, 'ready')
    assert.equal((await service.pending('ada', row.conversationId))?.id, row.id)
  })

  it('is settled by the next start', async () => {
    const rows = [await compared(), await compared()]

    await service.settleAll()

    for (const { id } of rows) assert.equal((await rig.store.readComparison(id))?.state, 'ready')
    assert.deepEqual(await rig.store.pendingComparisons(10), [])
  })

  it('is a failure where the runs are no longer kept, and what was settled before stays', async () => {
    const settled = await compared()
    await service.get(asUser('ada'), settled.id)
    const missed = await compared()
    await rig.store.expireRuns(Number.MAX_SAFE_INTEGER, 1000)

    assert.equal((await service.get(asUser('ada'), missed.id)).state, 'failed')
    await assert.rejects(service.arms(settled), { code: 'run_not_found' })
    await service.vote(asUser('ada'), settled.id, 'b', false)
    assert.deepEqual(await texts(settled), ['Which?', 'With wild.'])
  })
})

describe('another user', () => {
  it('finds nothing', async () => {
    const row = await compared()

    await assert.rejects(service.get(asUser('eve'), row.id), { code: 'comparison_not_found' })
    await assert.rejects(service.vote(asUser('eve'), row.id, 'a', false), { code: 'comparison_not_found' })
    await assert.rejects(service.pending('eve', row.conversationId), { code: 'conversation_not_found' })
    assert.equal((await service.metrics('eve')).votes, 0)
  })
})

describe('a comparison of answers that are there already', () => {
  const answersOf = async (row: ComparisonRow) => await service.get(asUser('ada'), row.id)

  it('needs two different ones, of the conversation and of the right kind', async () => {
    const row = await answersOf(await compared())
    const other = await answersOf(await compared())
    const request = {
      conversationId: row.conversationId,
      userMessageId: row.userMessageId,
      messageA: row.messageA ?? '',
      messageB: row.messageB ?? '',
      configA: 'calm',
      configB: 'wild',
      firstSideIsConfigA: true,
    }

    assert.equal((await service.create('ada', request)).id, row.id, 'there is one on these two')
    for (const [changes, code] of [
      [{ messageB: request.messageA }, 'invalid_request'],
      [{ messageB: other.messageB ?? '' }, 'message_not_found'],
      [{ messageB: request.userMessageId }, 'invalid_request'],
      [{ userMessageId: request.messageA }, 'invalid_request'],
      [{ conversationId: 'nobody' }, 'conversation_not_found'],
    ] as const) {
      await assert.rejects(service.create('ada', { ...request, ...changes }), { code })
    }
    await assert.rejects(service.create('eve', request), { code: 'conversation_not_found' })
  })
})

describe('undecided runs', () => {
  const undecided = async (row: ComparisonRow) => [...(await service.undecidedRuns('ada', row.conversationId))]

  it('are both arms until the vote, and none after it', async () => {
    const row = await compared()

    assert.deepEqual(await undecided(row), [row.runA, row.runB])
    assert.deepEqual(
      [await service.isUndecided(row.runA ?? ''), await service.isUndecided(row.runB ?? '')],
      [true, true],
    )
    assert.equal(await service.isUndecided('no-such-run'), false)
    assert.deepEqual([...(await service.undecidedRuns('eve', row.conversationId))], [])

    await service.vote(asUser('ada'), row.id, 'b', false)

    assert.deepEqual(await undecided(row), [])
    assert.equal(await service.isUndecided(row.runA ?? ''), false)
  })

  it('are both arms while one answers, and none as soon as one was cancelled', async () => {
    const { comparison, runA, runB } = await service.compare({ start, configA: 'calm', configB: 'slow' })
    const [quick, slow] = comparison.firstSideIsConfigA ? [runA, runB] : [runB, runA]
    await rig.until(quick.id, (row) => row.endedAt !== null)
    assert.equal((await service.get(asUser('ada'), comparison.id)).state, 'pending')
    assert.equal(await service.pending('ada', comparison.conversationId), null)
    assert.equal((await undecided(comparison)).length, 2)

    await rig.service.cancel('ada', slow.id, null)

    assert.deepEqual(await undecided(comparison), [])
    assert.equal(await service.isUndecided(quick.id), false)
    assert.deepEqual(await texts(comparison), ['Which?', 'With calm.'])
  })
})

describe('answers that a client brought along', () => {
  it('are compared without runs: there is nothing to follow, and the vote decides the history', async () => {
    const { run } = await rig.start({
      ...start,
      earlier: [
        { role: 'user', content: 'Which?' },
        { role: 'assistant', content: 'This.' },
        { role: 'assistant', content: 'That.' },
      ],
      input: 'And now?',
    })
    await rig.until(run.id, (row) => row.endedAt !== null)
    const conversationId = run.conversationId ?? ''
    const rows = await rig.store.allMessages(conversationId, { limit: 10 })
    const idOf = (content: string) => rows.find((row) => row.content === content)?.id ?? ''
    const row = await service.create('ada', {
      conversationId,
      userMessageId: idOf('Which?'),
      messageA: idOf('This.'),
      messageB: idOf('That.'),
      configA: 'calm',
      configB: 'wild',
      firstSideIsConfigA: true,
    })

    assert.deepEqual([row.state, row.runA, row.runB], ['ready', null, null])
    await assert.rejects(service.arms(row), { code: 'run_not_found' })
    assert.equal((await texts(row))[1], 'This.')
    await service.vote(asUser('ada'), row.id, 'b', false)
    assert.deepEqual((await texts(row)).slice(0, 3), ['Which?', 'That.', 'And now?'])
  })
})
