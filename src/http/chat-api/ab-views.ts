// Comparisons and their metrics → the JSON of the chat API. Before the vote, no field may
// reveal which configuration is on which side.

import { z } from 'zod'
import { configOf, waitsForVote } from '../../comparisons/comparison.ts'
import type { Interval } from '../../comparisons/rating.ts'
import type { PositionMetrics, Tally, VoteMetrics } from '../../comparisons/vote-metrics.ts'
import { isoTime } from '../../kit/clock.ts'
import { shownConversationId } from '../../kit/conversation-id.ts'
import type { ComparisonRow } from '../../stores/comparison-store.ts'

const preference = z.enum(['a', 'b', 'tie', 'both_bad'])

export const comparisonView = z
  .object({
    comparison_id: z.string(),
    conversation_id: z.string(),
    user_prompt_mid: z.string(),
    response_a_mid: z.string().nullable().describe('The answer on side a; null until both arms have ended.'),
    response_b_mid: z.string().nullable(),
    trace_a: z.string().nullable(),
    trace_b: z.string().nullable(),
    state: z
      .enum(['pending', 'ready', 'failed'])
      .describe('pending: an answer is not complete yet. ready: you can vote. failed: there is nothing to vote on.'),
    preference: preference.nullable(),
    preference_ts: z.string().nullable(),
    revisions: z
      .array(z.object({ preference, preference_ts: z.string() }))
      .describe('Votes that were replaced, oldest first.'),
    created_at: z.string(),
    config_a_id: z.string().nullable().describe('The configuration that the request named as a; null before the vote.'),
    config_b_id: z.string().nullable(),
    is_config_a_first: z.boolean().nullable().describe('Whether config_a_id answered on side a; null before the vote.'),
    side_a_config: z.string().nullable(),
    side_b_config: z.string().nullable(),
  })
  .meta({ id: 'Comparison' })

export const listedComparisonView = comparisonView
  .extend({ question: z.string().describe('The beginning of the question, at most 300 characters.') })
  .meta({ id: 'ListedComparison' })

export function toComparison(row: ComparisonRow): z.infer<typeof comparisonView> {
  const revealed = !waitsForVote(row)
  return {
    comparison_id: row.id,
    conversation_id: shownConversationId(row.conversationId),
    user_prompt_mid: row.userMessageId,
    response_a_mid: row.messageA,
    response_b_mid: row.messageB,
    trace_a: row.runA,
    trace_b: row.runB,
    state: row.state,
    preference: row.preference,
    preference_ts: row.preferenceAt === null ? null : isoTime(row.preferenceAt),
    revisions: row.revisions.map((vote) => ({ preference: vote.preference, preference_ts: isoTime(vote.at) })),
    created_at: isoTime(row.createdAt),
    config_a_id: revealed ? row.configA : null,
    config_b_id: revealed ? row.configB : null,
    is_config_a_first: revealed ? row.firstSideIsConfigA : null,
    side_a_config: revealed ? configOf(row, 'a') : null,
    side_b_config: revealed ? configOf(row, 'b') : null,
  }
}

const bound = z.number().nullable()
const tallyFields = { votes: z.number(), wins: z.number(), losses: z.number(), ties: z.number(), both_bad: z.number() }
const ratingFields = {
  rating: z
    .number()
    .describe('A Bradley–Terry rating on the Elo scale: the mean is 1000, and 400 points are odds of ten to one.'),
  rating_low: bound.describe('The lower end of the 95 % interval; null means unbounded.'),
  rating_high: bound,
}
const verdict = z.enum(['better', 'worse', 'no_difference', 'too_few_votes'])

const positionView = z.object({
  first_side_wins: z.number(),
  second_side_wins: z.number(),
  first_side_share: bound.describe(
    'The share of the votes for a side that went to the first side; null if there are none.',
  ),
  share_low: bound.describe('The lower end of the 95 % Wilson interval.'),
  share_high: bound,
  verdict: z.enum(['first_side', 'second_side', 'no_difference', 'too_few_votes']),
  sentence: z.string(),
})

export const metricsView = z
  .object({
    success: z.literal(true),
    scope: z.enum(['mine', 'all']),
    votes: z.number(),
    configs: z.array(
      z.object({
        config: z.string(),
        ...tallyFields,
        ...ratingFields,
        group: z
          .number()
          .describe(
            'Ratings can be compared only within a group. A group holds the configurations that votes connect.',
          ),
        verdict: verdict.describe('Compared with the mean of its group.'),
        sentence: z.string(),
      }),
    ),
    pairs: z.array(
      z.object({
        config_a: z.string(),
        config_b: z.string(),
        ...tallyFields,
        difference: z.number().describe('How far config_a is ahead of config_b, in rating points.'),
        difference_low: bound,
        difference_high: bound,
        configs: z
          .array(z.object({ config: z.string(), ...tallyFields, ...ratingFields }))
          .describe('Rated by the votes of this pair only.'),
        verdict: verdict.describe('config_a compared with config_b.'),
        sentence: z.string(),
        position_bias: positionView,
      }),
    ),
    position_bias: positionView,
  })
  .meta({ id: 'VoteMetrics' })

export function toMetrics(metrics: VoteMetrics, scope: 'mine' | 'all'): z.infer<typeof metricsView> {
  return {
    success: true,
    scope,
    votes: metrics.votes,
    configs: metrics.configs.map((entry) => ({
      config: entry.config,
      ...tally(entry),
      ...rating(entry.rating),
      group: entry.group,
      verdict: entry.verdict,
      sentence: entry.sentence,
    })),
    pairs: metrics.pairs.map(({ configs: [first, second], difference, ...pair }) => ({
      config_a: first.config,
      config_b: second.config,
      ...tally(first),
      difference: rounded(difference.value) ?? 0,
      difference_low: rounded(difference.low),
      difference_high: rounded(difference.high),
      configs: [first, second].map((entry) => ({ config: entry.config, ...tally(entry), ...rating(entry.rating) })),
      verdict: pair.verdict,
      sentence: pair.sentence,
      position_bias: position(pair.position),
    })),
    position_bias: position(metrics.position),
  }
}

function tally({ votes, wins, losses, ties, bothBad }: Tally): {
  votes: number
  wins: number
  losses: number
  ties: number
  both_bad: number
} {
  return { votes, wins, losses, ties, both_bad: bothBad }
}

function rating({ value, low, high }: Interval): {
  rating: number
  rating_low: number | null
  rating_high: number | null
} {
  return { rating: rounded(value) ?? 0, rating_low: rounded(low), rating_high: rounded(high) }
}

function position({ firstSideWins, secondSideWins, share, ...rest }: PositionMetrics): z.infer<typeof positionView> {
  return {
    first_side_wins: firstSideWins,
    second_side_wins: secondSideWins,
    first_side_share: share === null ? null : share.value,
    share_low: share === null ? null : share.low,
    share_high: share === null ? null : share.high,
    ...rest,
  }
}

/** Rating points, to a tenth: the intervals are many points wide. Null for an infinite bound, which JSON cannot express. */
function rounded(points: number): number | null {
  return Number.isFinite(points) ? Math.round(points * 10) / 10 : null
}
