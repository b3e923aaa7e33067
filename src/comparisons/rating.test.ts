// The ratings, compared with published numbers, with formulas that can be computed by hand,
// and with simulated voters whose preferences are known.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { meanRating, type PairVotes, rate, ratePair, type Rating, wilson } from './rating.ts'

const pair = (first: string, second: string, firstWins: number, secondWins: number, undecided = 0): PairVotes => ({
  first,
  second,
  firstWins,
  secondWins,
  undecided,
})

const close = (actual: number, expected: number, within: number, what?: string) =>
  assert.ok(
    Math.abs(actual - expected) <= within,
    `${what ?? 'value'}: ${actual} is not within ${within} of ${expected}`,
  )

const named = (ratings: Rating[], name: string): Rating => ratings.find((rating) => rating.name === name) as Rating

/** Mulberry32: the same seed, the same voters. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

const points = 400 / Math.LN10

/** Voters who prefer as the model says, and in `ties` of the cases see no difference. */
function vote(
  strengths: Record<string, number>,
  [first, second]: [string, string],
  count: number,
  random: () => number,
  ties = 0,
): PairVotes {
  const chance = 1 / (1 + 10 ** (((strengths[second] as number) - (strengths[first] as number)) / 400))
  let firstWins = 0
  let undecided = 0
  for (let index = 0; index < count; index++) {
    if (random() < ties) undecided += 1
    else if (random() < chance) firstWins += 1
  }
  return pair(first, second, firstWins, count - firstWins - undecided, undecided)
}

describe('one pair', () => {
  it('is the empirical logit of Gart and Zweifel, in points', () => {
    const { value, low, high } = ratePair(pair('x', 'y', 7, 2))

    close(value, 400 * Math.log10(7.5 / 2.5), 1e-9)
    const reach = 1.959963984540054 * Math.sqrt(1 / 7.5 + 1 / 2.5) * points
    close(low, value - reach, 1e-9)
    close(high, value + reach, 1e-9)
  })

  it('stays finite when one side won every vote, and takes nine of nine for a verdict', () => {
    for (const wins of [1, 5, 8])
      assert.equal(ratePair(pair('x', 'y', wins, 0)).verdict, 'too_few_votes', `${wins} wins`)
    assert.equal(ratePair(pair('x', 'y', 9, 0)).verdict, 'better')
    assert.equal(ratePair(pair('x', 'y', 0, 9)).verdict, 'worse')
    assert.ok(Number.isFinite(ratePair(pair('x', 'y', 100_000, 0)).high))
  })

  it('says "too few votes" until two equals have 46, and "no difference" from then on', () => {
    assert.equal(ratePair(pair('x', 'y', 0, 0)).verdict, 'too_few_votes')
    assert.equal(ratePair(pair('x', 'y', 22, 22)).verdict, 'too_few_votes')
    assert.equal(ratePair(pair('x', 'y', 23, 23)).verdict, 'no_difference')
    assert.equal(ratePair(pair('x', 'y', 0, 0, 46)).verdict, 'no_difference', 'ties are evidence of equality')
  })

  it('is mirrored when the names change places', () => {
    const there = ratePair(pair('x', 'y', 12, 5, 3))
    const back = ratePair(pair('y', 'x', 5, 12, 3))

    close(there.value, -back.value, 1e-9)
    close(there.low, -back.high, 1e-9)
  })
})

describe('ratings of many', () => {
  it('agree with the published fit of the citations between four journals (Stigler 1994)', () => {
    // As printed in the documentation of the R package BradleyTerry2: estimates against Biometrika.
    const citations = [
      pair('Biometrika', 'Comm Statist', 730, 33),
      pair('Biometrika', 'JASA', 498, 320),
      pair('Biometrika', 'JRSS-B', 221, 284),
      pair('Comm Statist', 'JASA', 68, 813),
      pair('Comm Statist', 'JRSS-B', 17, 276),
      pair('JASA', 'JRSS-B', 142, 325),
    ]
    // Without the half votes, which those who printed it did not add.
    const ratings = rate(citations, 0)
    const against = (name: string) =>
      (named(ratings, name).rating.value - named(ratings, 'Biometrika').rating.value) / points

    close(against('Comm Statist'), -2.94907, 5e-6)
    close(against('JASA'), -0.47957, 5e-6)
    close(against('JRSS-B'), 0.26895, 5e-6)
  })

  it('of two are half the difference of the pair on either side of the mean, with half its interval', () => {
    const votes = pair('x', 'y', 30, 12, 4)
    const alone = ratePair(votes)
    const [x, y] = rate([votes]) as [Rating, Rating]

    close(x.rating.value - meanRating, alone.value / 2, 1e-6)
    close(meanRating - y.rating.value, alone.value / 2, 1e-6)
    close(x.rating.high - x.rating.low, (alone.high - alone.low) / 2, 1e-6)
    assert.equal(x.verdict, alone.verdict)
    assert.equal(x.group, y.group)
  })

  it('do not depend on the order of the votes, on which name comes first, or on how they are split up', () => {
    const votes = [pair('x', 'y', 5, 3, 1), pair('y', 'z', 8, 2), pair('z', 'x', 1, 6, 2)]
    const other = [pair('x', 'z', 4, 0, 2), pair('z', 'y', 2, 8), pair('x', 'z', 2, 1), pair('y', 'x', 3, 5, 1)]

    const sorted = (ratings: Rating[]) =>
      ratings.toSorted((left, right) => (left.name < right.name ? -1 : 1)).map(({ name, rating }) => ({ name, rating }))
    assert.deepEqual(sorted(rate(votes)), sorted(rate(other)))
  })

  it('are equal if all configurations won as often as they lost', () => {
    for (const { rating, verdict } of rate([pair('x', 'y', 50, 50), pair('y', 'z', 50, 50), pair('z', 'x', 50, 50)])) {
      close(rating.value, meanRating, 1e-9)
      assert.equal(verdict, 'no_difference')
    }
  })

  it('stay finite in a chain where each beat the next every time', () => {
    const ratings = rate([pair('x', 'y', 40, 0), pair('y', 'z', 40, 0)])

    assert.deepEqual(
      ratings.map(({ name }) => name),
      ['x', 'y', 'z'],
    )
    for (const { rating } of ratings) assert.ok([rating.value, rating.low, rating.high].every(Number.isFinite))
    assert.ok(named(ratings, 'x').rating.value > named(ratings, 'y').rating.value)
    assert.ok(named(ratings, 'y').rating.value > named(ratings, 'z').rating.value)
  })

  it('are found among any number of votes, also where a few stand beside millions', () => {
    for (const votes of [
      [pair('x', 'y', 5_000_000, 0)],
      [pair('x', 'y', 3_000_001, 2_999_999, 9_000_000), pair('y', 'z', 1, 0)],
      [pair('x', 'y', 1_000_000, 1), pair('y', 'z', 1_000_000, 1), pair('z', 'x', 1_000_000, 1)],
    ]) {
      const ratings = rate(votes)

      // At the maximum every configuration has the number of points that its rating predicts.
      for (const { name } of ratings) {
        let surprise = 0
        let points = 0
        for (const { first, second, firstWins, secondWins, undecided } of votes) {
          if (name !== first && name !== second) continue
          const [own, other] = name === first ? [firstWins, second] : [secondWins, first]
          const lead = named(ratings, name).rating.value - named(ratings, other).rating.value
          const total = firstWins + secondWins + undecided + 1
          surprise += own + undecided / 2 + 0.5 - total / (1 + 10 ** (-lead / 400))
          points += total
        }
        assert.ok(Math.abs(surprise) < 1e-7 * points, `${name}: ${surprise} of ${points}`)
      }
    }
  })

  it('stay finite when the first Newton step would overshoot to where no vote has weight', () => {
    const ratings = rate([
      pair('c2', 'c0', 0, 8067),
      pair('c3', 'c1', 0, 800137, 36),
      pair('c4', 'c3', 39524, 0, 45),
      pair('c5', 'c2', 0, 2533),
      pair('c1', 'c3', 34366, 118, 1),
      pair('c0', 'c3', 7, 13, 1),
      pair('c1', 'c5', 1301, 6, 1),
      pair('c3', 'c0', 3, 1, 1),
      pair('c0', 'c2', 4, 11, 1),
    ])

    for (const { name, rating } of ratings)
      assert.ok([rating.value, rating.low, rating.high].every(Number.isFinite), `${name}: ${JSON.stringify(rating)}`)
  })

  it('compare nothing that no vote connects: each group has its own mean', () => {
    const ratings = rate([pair('p', 'q', 60, 20), pair('x', 'y', 2, 1), pair('lonely', 'lonely', 3, 4)])

    const groups = Object.fromEntries(ratings.map(({ name, group }) => [name, group]))
    assert.deepEqual(groups, { p: 1, q: 1, x: 2, y: 2, lonely: 3 })
    for (const group of [1, 2, 3]) {
      const own = ratings.filter((rating) => rating.group === group)
      close(own.reduce((sum, { rating }) => sum + rating.value, 0) / own.length, meanRating, 1e-9)
    }
    // The votes on x and y make p and q neither surer nor less sure.
    const alone = rate([pair('p', 'q', 60, 20)])
    close(named(ratings, 'p').rating.low, named(alone, 'p').rating.low, 1e-9)
    assert.equal(named(ratings, 'p').verdict, 'better')
    assert.equal(named(ratings, 'x').verdict, 'too_few_votes')
    assert.equal(named(ratings, 'lonely').verdict, 'too_few_votes')
    assert.equal(named(ratings, 'lonely').rating.high, Number.POSITIVE_INFINITY)
  })

  it('take a pair without votes for no connection', () => {
    const ratings = rate([pair('x', 'y', 0, 0)])

    assert.deepEqual(
      ratings.map(({ group }) => group),
      [1, 2],
    )
  })
})

describe('voters with known strengths', () => {
  const strengths = { strong: 1120, middle: 1010, weak: 870 }
  const pairs: [string, string][] = [
    ['strong', 'middle'],
    ['middle', 'weak'],
    ['weak', 'strong'],
  ]

  it('are recovered: the truth lies in the 95 % interval in about 95 of 100 experiments', () => {
    const random = seeded(20_261_115)
    let held = 0
    let asked = 0
    for (let experiment = 0; experiment < 300; experiment++) {
      for (const { name, rating } of rate(pairs.map((names) => vote(strengths, names, 60, random)))) {
        asked += 1
        const truth = strengths[name as keyof typeof strengths]
        if (rating.low <= truth && truth <= rating.high) held += 1
      }
    }

    const share = held / asked
    assert.ok(share > 0.93 && share < 0.98, `${share} of the intervals hold the truth`)
  })

  it('who see no difference in a third of the cases never make the result look too certain', () => {
    const random = seeded(7)
    const equals = { x: 1000, y: 1000 }
    let wrong = 0
    for (let experiment = 0; experiment < 1000; experiment++) {
      const { verdict } = ratePair(vote(equals, ['x', 'y'], 100, random, 1 / 3))
      if (verdict === 'better' || verdict === 'worse') wrong += 1
    }

    assert.ok(wrong <= 50, `${wrong} of 1000 experiments with equals found a winner`)
  })

  it('who are many are recovered closely, and in the right order', () => {
    const random = seeded(3)
    const ratings = rate(pairs.map((names) => vote(strengths, names, 20_000, random)))

    for (const { name, rating, verdict } of ratings) {
      close(rating.value, strengths[name as keyof typeof strengths], 5, name)
      assert.equal(verdict, name === 'weak' ? 'worse' : 'better')
    }
  })
})

describe('the share of the first side', () => {
  it('has the interval of Wilson, as Newcombe (1998) prints it', () => {
    const printed: [hits: number, of: number, low: number, high: number][] = [
      [81, 263, 0.2553, 0.3662],
      [15, 148, 0.0624, 0.1605],
      [0, 20, 0, 0.1611],
      [1, 29, 0.0061, 0.1718],
    ]
    for (const [hits, of, low, high] of printed) {
      const found = wilson(hits, of)
      close(found?.value as number, hits / of, 1e-12)
      close(found?.low as number, low, 5.1e-5, `${hits} of ${of}, low`)
      close(found?.high as number, high, 5.1e-5, `${hits} of ${of}, high`)
    }
  })

  it('is nothing where nothing was counted', () => {
    assert.equal(wilson(0, 0), null)
  })
})
