// Votes become counts, ratings and sentences about them.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Preference, VoteCount } from '../stores/comparison-store.ts'
import { voteMetrics } from './vote-metrics.ts'

const votes = (
  configA: string,
  configB: string,
  firstSideIsConfigA: boolean,
  preference: Preference,
  count: number,
): VoteCount => ({
  configA,
  configB,
  firstSideIsConfigA,
  preference,
  count,
})

describe('the metrics', () => {
  it('count for the configuration that won, on whichever side it was shown and in whichever order the two were named', () => {
    const metrics = voteMetrics([
      votes('calm', 'wild', true, 'a', 5), // calm won
      votes('calm', 'wild', false, 'a', 2), // wild won
      votes('wild', 'calm', true, 'b', 3), // calm won
      votes('wild', 'calm', false, 'b', 1), // wild won
      votes('calm', 'wild', true, 'tie', 4),
      votes('wild', 'calm', true, 'both_bad', 6),
    ])

    assert.equal(metrics.votes, 21)
    assert.equal(metrics.pairs.length, 1)
    const [calm, wild] = metrics.pairs[0]?.configs ?? []
    const numbers = ({ config, votes: count, wins, losses, ties, bothBad }: NonNullable<typeof calm>) => [
      config,
      count,
      wins,
      losses,
      ties,
      bothBad,
    ]
    assert.deepEqual(numbers(calm as NonNullable<typeof calm>), ['calm', 21, 8, 3, 4, 6])
    assert.deepEqual(numbers(wild as NonNullable<typeof wild>), ['wild', 21, 3, 8, 4, 6])
    assert.deepEqual(
      metrics.configs.map(({ config, wins, losses, ties, bothBad }) => [config, wins, losses, ties, bothBad]),
      [
        ['calm', 8, 3, 4, 6],
        ['wild', 3, 8, 4, 6],
      ],
    )
    assert.deepEqual([metrics.position.firstSideWins, metrics.position.secondSideWins], [7, 4])
  })

  it('say plainly when there are too few votes', () => {
    const { pairs, configs, position } = voteMetrics([votes('calm', 'wild', true, 'a', 3)])

    assert.equal(pairs[0]?.verdict, 'too_few_votes')
    assert.match(pairs[0]?.sentence ?? '', /^Too few votes/)
    for (const { verdict, sentence } of configs) {
      assert.equal(verdict, 'too_few_votes')
      assert.match(sentence, /^Too few votes/)
    }
    assert.match(position.sentence, /^Too few votes/)
  })

  it('name the winner when the interval allows it', () => {
    const { pairs, configs } = voteMetrics([
      votes('wild', 'calm', true, 'b', 40),
      votes('wild', 'calm', false, 'b', 10),
    ])

    assert.equal(pairs[0]?.sentence, 'calm is preferred to wild.')
    assert.deepEqual(
      configs.map(({ config, verdict }) => [config, verdict]),
      [
        ['calm', 'better'],
        ['wild', 'worse'],
      ],
    )
  })

  it('distinguish a preference for a side from a preference for a configuration', () => {
    const { pairs, position } = voteMetrics([
      votes('calm', 'wild', true, 'a', 60),
      votes('calm', 'wild', false, 'a', 60),
    ])

    assert.equal(pairs[0]?.verdict, 'no_difference')
    assert.equal(position.verdict, 'first_side')
    assert.equal(position.share?.value, 1)
  })

  it('learn about the position, and nothing else, from a configuration against itself', () => {
    const { pairs, configs, position } = voteMetrics([
      votes('default', 'default', true, 'a', 30),
      votes('default', 'default', false, 'b', 30),
    ])

    assert.equal(pairs[0]?.verdict, 'too_few_votes')
    assert.deepEqual(
      pairs[0]?.configs.map(({ wins, losses }) => [wins, losses]),
      [
        [60, 0],
        [0, 60],
      ],
    )
    assert.deepEqual(
      configs.map(({ votes: count, wins, losses, rating }) => [count, wins, losses, rating.value]),
      [[60, 60, 60, 1000]],
    )
    assert.equal(position.verdict, 'no_difference')
    assert.equal(position.share?.value, 0.5)
  })

  it('are empty without votes', () => {
    const metrics = voteMetrics([])

    assert.deepEqual([metrics.votes, metrics.configs, metrics.pairs], [0, [], []])
    assert.equal(metrics.position.verdict, 'too_few_votes')
    assert.equal(metrics.position.share, null)
  })
})
