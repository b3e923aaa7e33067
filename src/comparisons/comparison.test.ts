// The rules of a comparison, one by one.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ComparisonRow } from '../stores/comparison-store.ts'
import type { MessageRow } from '../stores/message-store.ts'
import {
  type ArmStatus,
  configOf,
  messageStates,
  parsePreference,
  sideAfterVote,
  sideWithoutVote,
  standsInHistory,
  stateOf,
  voteCounts,
  votesOn,
  waitsForVote,
} from './comparison.ts'

const row = (changes: Partial<ComparisonRow> = {}): ComparisonRow => ({
  id: 'x',
  conversationId: 'c',
  owner: 'ann',
  userMessageId: 'q',
  runA: 'ra',
  runB: 'rb',
  messageA: 'ma',
  messageB: 'mb',
  configA: 'calm',
  configB: 'wild',
  firstSideIsConfigA: true,
  offered: true,
  state: 'ready',
  preference: null,
  preferenceAt: null,
  revisions: [],
  createdAt: 1,
  ...changes,
})

const message = (id: string, changes: Partial<MessageRow> = {}): MessageRow => ({
  id,
  conversationId: 'c',
  runId: 'r',
  parentId: 'q',
  role: 'assistant',
  content: id,
  state: 'active',
  toolCallId: null,
  metadata: {},
  createdAt: 1,
  ...changes,
})

describe('a comparison', () => {
  it('waits while an answer may still come, and is ready only when both came', () => {
    const cases: [ArmStatus, ArmStatus, ComparisonRow['state']][] = [
      ['queued', 'succeeded', 'pending'],
      ['failed', 'running', 'pending'],
      ['succeeded', 'waiting_user', 'pending'],
      ['succeeded', 'succeeded', 'ready'],
      ['failed', 'succeeded', 'failed'],
      ['succeeded', 'canceled', 'failed'],
      ['gone', 'succeeded', 'failed'],
    ]
    for (const [a, b, state] of cases) assert.equal(stateOf(a, b), state, `${a}, ${b}`)
  })

  it('goes on with the first answer without a vote, unless only the second came', () => {
    assert.equal(sideWithoutVote('succeeded', 'succeeded'), 'a')
    assert.equal(sideWithoutVote('succeeded', 'failed'), 'a')
    assert.equal(sideWithoutVote('failed', 'failed'), 'a')
    assert.equal(sideWithoutVote('canceled', 'succeeded'), 'b')
  })

  it('goes on with the second answer only when that was preferred', () => {
    assert.deepEqual((['a', 'b', 'tie', 'both_bad'] as const).map(sideAfterVote), ['a', 'b', 'a', 'a'])
  })

  it('knows the configuration behind a side', () => {
    assert.deepEqual([configOf(row(), 'a'), configOf(row(), 'b')], ['calm', 'wild'])
    const turned = row({ firstSideIsConfigA: false })
    assert.deepEqual([configOf(turned, 'a'), configOf(turned, 'b')], ['wild', 'calm'])
  })
})

describe('a preference', () => {
  it('is read in any case', () => {
    assert.deepEqual(['A', 'b ', 'TIE', 'Both_Bad', 'both bad', 'both-bad'].map(parsePreference), [
      'a',
      'b',
      'tie',
      'both_bad',
      'both_bad',
      'both_bad',
    ])
  })

  it('is nothing else', () => {
    for (const text of ['', 'c', 'ab', 'none', 'both']) assert.equal(parsePreference(text), undefined)
  })
})

describe('a vote', () => {
  it('counts once, and a second time only as a revision that says something else', () => {
    assert.equal(voteCounts(row(), 'a', false), true)
    assert.equal(voteCounts(row(), 'a', true), true)
    const voted = row({ preference: 'a', preferenceAt: 2 })
    assert.throws(() => voteCounts(voted, 'b', false), { code: 'comparison_voted' })
    assert.throws(() => voteCounts(voted, 'a', false), { code: 'comparison_voted' })
    assert.equal(voteCounts(voted, 'b', true), true)
    assert.equal(voteCounts(voted, 'a', true), false)
  })

  it('is refused before both answers are there, and where one failed', () => {
    assert.throws(() => voteCounts(row({ state: 'pending' }), 'a', false), { code: 'comparison_not_ready' })
    assert.throws(() => voteCounts(row({ state: 'failed' }), 'a', true), { code: 'comparison_failed' })
  })

  it('is counted together with those it replaced', () => {
    assert.equal(votesOn(row()), 0)
    assert.equal(votesOn(row({ preference: 'a', revisions: [{ preference: 'b', at: 1 }] })), 2)
  })
})

describe('the history', () => {
  const shown = (arms: Parameters<typeof messageStates>[0], side: 'a' | 'b') =>
    Object.fromEntries(messageStates(arms, side).map(({ id, state }) => [id, state]))

  it('is the chosen answer with its tools; the question that both share stays', () => {
    const arms = {
      a: [message('q', { role: 'user', parentId: null }), message('a1'), message('a2', { role: 'tool' })],
      b: [message('b1', { state: 'superseded' }), message('b2', { role: 'tool', state: 'superseded' })],
    }

    assert.deepEqual(shown(arms, 'b'), { a1: 'superseded', a2: 'superseded', b1: 'active', b2: 'active' })
    assert.deepEqual(shown(arms, 'a'), {}, 'nothing is to be changed')
  })

  it('takes the question along where each answer had its own', () => {
    const arms = {
      a: [message('qa', { role: 'user', parentId: null }), message('a1', { parentId: 'qa' })],
      b: [message('qb', { role: 'user', parentId: null }), message('b1', { parentId: 'qb' })],
    }

    assert.deepEqual(shown(arms, 'a'), { qb: 'superseded', b1: 'superseded' })
  })

  it('keeps the question where the arm that brought it failed before its first word', () => {
    const arms = { a: [message('q', { role: 'user', parentId: null })], b: [message('b1', { state: 'superseded' })] }

    assert.deepEqual(shown(arms, 'b'), { b1: 'active' })
  })

  it('never brings back an abandoned message', () => {
    const arms = {
      a: [message('a1')],
      b: [message('half', { state: 'abandoned' }), message('b1', { state: 'superseded' })],
    }

    assert.deepEqual(shown(arms, 'b'), { a1: 'superseded', b1: 'active' })
  })

  it('is out of reach where a later answer took the place of both', () => {
    assert.equal(
      standsInHistory({ a: [message('a1', { state: 'superseded' })], b: [message('b1', { state: 'superseded' })] }),
      false,
    )
    assert.equal(standsInHistory({ a: [message('a1')], b: [message('b1', { state: 'superseded' })] }), true)
  })
})

describe('waiting for a vote', () => {
  for (const [what, changes, waits] of [
    ['both answers are there', {}, true],
    ['an answer is under way', { state: 'pending' }, true],
    ['there will be no vote', { state: 'failed' }, false],
    ['a vote came', { preference: 'tie' }, false],
    ['nobody was asked to vote', { offered: false }, false],
    ['nobody was asked to vote on answers under way', { offered: false, state: 'pending' }, false],
  ] as const) {
    it(`is ${waits} if ${what}`, () => {
      assert.equal(waitsForVote(row(changes)), waits)
    })
  }
})
