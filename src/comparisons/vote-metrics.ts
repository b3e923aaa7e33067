// Computes metrics of the configurations from vote counts. Pure.
//
// "Both bad" has its own count and is rated like a tie, because neither answer was
// preferred. A comparison of a configuration with itself only measures position bias, so it
// counts there and not in the ratings.

import type { Preference, VoteCount } from '../stores/comparison-store.ts'
import {
  type Interval,
  meanRating,
  type PairVotes,
  rate,
  ratePair,
  tellingPoints,
  type RatingVerdict,
  wilson,
} from './rating.ts'

export type Tally = { votes: number; wins: number; losses: number; ties: number; bothBad: number }

export type ConfigMetrics = Tally & {
  config: string
  rating: Interval
  group: number
  verdict: RatingVerdict
  sentence: string
}

export type PairMetrics = {
  configs: [Tally & { config: string; rating: Interval }, Tally & { config: string; rating: Interval }]
  votes: number
  /** How far the first configuration is ahead, in rating points. */
  difference: Interval
  verdict: RatingVerdict
  sentence: string
  position: PositionMetrics
}

export type PositionMetrics = {
  firstSideWins: number
  secondSideWins: number
  /** The share of the first side among the votes for either side; null if there are none. */
  share: Interval | null
  verdict: 'first_side' | 'second_side' | 'no_difference' | 'too_few_votes'
  sentence: string
}

export type VoteMetrics = { votes: number; configs: ConfigMetrics[]; pairs: PairMetrics[]; position: PositionMetrics }

/** A lead of `tellingPoints`, expressed as a share above one half. */
const tellingShare = 1 / (1 + 10 ** (-tellingPoints / 400)) - 0.5

/** The result for a configuration compared with itself: its votes cannot rank it. */
const unknowable: ReturnType<typeof ratePair> = {
  value: 0,
  low: Number.NEGATIVE_INFINITY,
  high: Number.POSITIVE_INFINITY,
  verdict: 'too_few_votes',
}

export function voteMetrics(counts: readonly VoteCount[]): VoteMetrics {
  const pairs = new Map<string, VoteCount[]>()
  for (const count of counts) {
    const key = JSON.stringify([count.configA, count.configB].toSorted())
    pairs.set(key, [...(pairs.get(key) ?? []), count])
  }
  const sorted = [...pairs].toSorted(([left], [right]) => (left < right ? -1 : 1))
  const metrics = sorted.map(([key, own]) => pairMetrics(JSON.parse(key) as [string, string], own))
  return {
    votes: counts.reduce((sum, { count }) => sum + count, 0),
    configs: configMetrics(metrics),
    pairs: metrics,
    position: positionMetrics(counts),
  }
}

function pairMetrics([first, second]: [string, string], counts: readonly VoteCount[]): PairMetrics {
  const of = (preference: Preference) => sum(counts.filter((count) => count.preference === preference))
  // If a configuration is compared with itself, "first" is the one that the request named first.
  const firstWins = sum(counts.filter((count) => winnerOf(count) === (count.configA === first ? 'a' : 'b')))
  const secondWins = sum(counts.filter((count) => winnerOf(count) === (count.configA === first ? 'b' : 'a')))
  const ties = of('tie')
  const bothBad = of('both_bad')
  const votes = firstWins + secondWins + ties + bothBad
  const { verdict, ...difference } =
    first === second ? unknowable : ratePair({ first, second, firstWins, secondWins, undecided: ties + bothBad })
  const half = (sign: 1 | -1): Interval => {
    const bounds = [difference.low, difference.high]
      .map((bound) => meanRating + (sign * bound) / 2)
      .toSorted((x, y) => x - y)
    return { value: meanRating + (sign * difference.value) / 2, low: bounds[0] as number, high: bounds[1] as number }
  }
  return {
    configs: [
      { config: first, votes, wins: firstWins, losses: secondWins, ties, bothBad, rating: half(1) },
      { config: second, votes, wins: secondWins, losses: firstWins, ties, bothBad, rating: half(-1) },
    ],
    votes,
    difference,
    verdict,
    sentence: pairSentence(first, second, verdict, votes),
    position: positionMetrics(counts),
  }
}

function configMetrics(pairs: readonly PairMetrics[]): ConfigMetrics[] {
  const ratings = rate(
    pairs.map(({ configs: [first, second] }): PairVotes => ({
      first: first.config,
      second: second.config,
      firstWins: first.wins,
      secondWins: second.wins,
      undecided: first.ties + first.bothBad,
    })),
  )
  return ratings
    .map(({ name, rating, group, verdict }) => {
      const own = pairs.flatMap(({ configs: [first, second] }) => {
        // Compared with itself, a configuration both won and lost every decided vote, but each vote counts once.
        if (first.config === second.config)
          return first.config === name
            ? [{ ...first, wins: first.wins + first.losses, losses: first.wins + first.losses }]
            : []
        return [first, second].filter(({ config }) => config === name)
      })
      const total = (pick: (tally: Tally) => number) => own.reduce((all, tally) => all + pick(tally), 0)
      return {
        config: name,
        votes: total((tally) => tally.votes),
        wins: total((tally) => tally.wins),
        losses: total((tally) => tally.losses),
        ties: total((tally) => tally.ties),
        bothBad: total((tally) => tally.bothBad),
        rating,
        group,
        verdict,
        sentence: configSentence(name, verdict),
      }
    })
    .toSorted((left, right) => left.group - right.group || right.rating.value - left.rating.value)
}

function positionMetrics(counts: readonly VoteCount[]): PositionMetrics {
  const firstSideWins = sum(counts.filter(({ preference }) => preference === 'a'))
  const secondSideWins = sum(counts.filter(({ preference }) => preference === 'b'))
  const share = wilson(firstSideWins, firstSideWins + secondSideWins)
  const verdict = positionVerdict(share)
  return { firstSideWins, secondSideWins, share, verdict, sentence: positionSentences[verdict] }
}

function positionVerdict(share: Interval | null): PositionMetrics['verdict'] {
  if (share === null) return 'too_few_votes'
  if (share.low > 0.5) return 'first_side'
  if (share.high < 0.5) return 'second_side'
  return (share.high - share.low) / 2 > tellingShare ? 'too_few_votes' : 'no_difference'
}

const positionSentences: Record<PositionMetrics['verdict'], string> = {
  first_side: 'The first side wins more often than chance allows.',
  second_side: 'The second side wins more often than chance allows.',
  no_difference: 'No sign that the position decides.',
  too_few_votes: 'Too few votes to tell whether the position decides.',
}

/** Which configuration of the request won; null if neither did. */
function winnerOf({ preference, firstSideIsConfigA }: VoteCount): 'a' | 'b' | null {
  if (preference !== 'a' && preference !== 'b') return null
  return (preference === 'a') === firstSideIsConfigA ? 'a' : 'b'
}

function pairSentence(first: string, second: string, verdict: RatingVerdict, votes: number): string {
  if (first === second) return 'A configuration against itself: only the position can be told from this.'
  switch (verdict) {
    case 'better':
      return `${first} is preferred to ${second}.`
    case 'worse':
      return `${second} is preferred to ${first}.`
    case 'no_difference':
      return `No difference between ${first} and ${second} is to be seen in ${votes} votes.`
    case 'too_few_votes':
      return `Too few votes to tell ${first} and ${second} apart.`
  }
}

function configSentence(name: string, verdict: RatingVerdict): string {
  switch (verdict) {
    case 'better':
      return `${name} is better than the average of those it was compared with.`
    case 'worse':
      return `${name} is worse than the average of those it was compared with.`
    case 'no_difference':
      return `${name} is as good as the average of those it was compared with.`
    case 'too_few_votes':
      return `Too few votes to say how good ${name} is.`
  }
}

function sum(counts: readonly VoteCount[]): number {
  return counts.reduce((total, { count }) => total + count, 0)
}
