// The answer of GET /api/ab/metrics, as far as the console shows it.

export type Verdict = 'better' | 'worse' | 'no_difference' | 'too_few_votes'

export type Tally = { votes: number; wins: number; losses: number; ties: number; both_bad: number }

export type VoteMetrics = {
  votes: number
  configs: (Tally & {
    config: string
    rating: number
    rating_low: number | null
    rating_high: number | null
    group: number
    verdict: Verdict
  })[]
  pairs: (Tally & {
    config_a: string
    config_b: string
    difference: number
    difference_low: number | null
    difference_high: number | null
    verdict: Verdict
  })[]
  position_bias: {
    first_side_wins: number
    second_side_wins: number
    first_side_share: number | null
    share_low: number | null
    share_high: number | null
    verdict: 'first_side' | 'second_side' | 'no_difference' | 'too_few_votes'
  }
}
