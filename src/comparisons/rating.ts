// Computes ratings from votes. Pure arithmetic, without rows and clock.
//
// The model is Bradley and Terry's (1952): i is preferred to j with probability
// 1 / (1 + exp(βj − βi)). As in Elo, a tie counts as half a win for each side: a rating
// then predicts the share of the points, and many ties are evidence of equality. Each side
// of a compared pair gets half a vote more (Haldane and Anscombe), so that the rating of a
// side that won every vote stays finite. For a single pair this gives log((w+½)/(l+½)) with
// the variance 1/(w+½) + 1/(l+½) of Gart and Zweifel (1967). The maximum is found by
// Newton's method; intervals come from the observed information. With ties the intervals
// are a little too wide, never too narrow, because a tie varies less than the model assumes.

export type PairVotes = {
  readonly first: string
  readonly second: string
  readonly firstWins: number
  readonly secondWins: number
  /** Votes for neither: ties, and "both bad". */
  readonly undecided: number
}

export type Interval = { readonly value: number; readonly low: number; readonly high: number }

export type RatingVerdict = 'better' | 'worse' | 'no_difference' | 'too_few_votes'

export type Rating = {
  readonly name: string
  /** Around `meanRating`, the mean of the group. */
  readonly rating: Interval
  /** Ratings compare only within a group: names that votes connect, directly or over others. Counted from 1. */
  readonly group: number
  /** Against the mean of its group. */
  readonly verdict: RatingVerdict
}

/** The mean of every group. */
export const meanRating = 1000

/** Rating points for one unit of log odds, as in Elo: 400 points are odds of ten to one. */
const pointsPerLogOdds = 400 / Math.LN10

/** Two-sided, 95 %. */
const normal95 = 1.959963984540054

/** Newton's method needs up to about twenty iterations, also for millions of votes; the limit only guarantees termination. */
const roundsMax = 200

/** In log odds: below this step size Newton's method has nearly converged. */
const nearEnough = 1e-4

/** In log odds. A longer step could reach a point at which the information matrix is singular in floating point. */
const stepMax = 4

/** Half a vote for either side of a pair that was compared. */
const priorVotes = 0.5

/**
 * If an interval contains "equal" and is wider than this on either side, there are too few votes: a lead of 100 points
 * (64 of 100 votes) could exist and would not show. Two equal configurations need about 46 votes to get below it.
 */
export const tellingPoints = 100

/** How far `first` is ahead of `second`, in rating points, from the votes on this pair alone. */
export function ratePair(votes: PairVotes): Interval & { readonly verdict: RatingVerdict } {
  const won = votes.firstWins + votes.undecided / 2 + priorVotes
  const lost = votes.secondWins + votes.undecided / 2 + priorVotes
  const interval = intervalOf(Math.log(won / lost), 1 / won + 1 / lost)
  return { ...interval, verdict: verdictOf(interval, 0, tellingPoints) }
}

/** Ratings in the order of first appearance. A name that was only compared with itself gets an infinite interval. */
export function rate(pairs: readonly PairVotes[], prior = priorVotes): Rating[] {
  const names = [...new Set(pairs.flatMap((pair) => [pair.first, pair.second]))]
  const scores = new Map<string, Score>()
  for (const pair of pairs) {
    // Votes on a configuration against itself say nothing about its strength.
    if (pair.first === pair.second || votesOf(pair) === 0) continue
    addScore(scores, pair, prior)
  }
  const groupOf = groupsOf(names, [...scores.values()])
  const ratings = new Map<string, Rating>()
  for (const group of new Set(groupOf.values())) {
    const members = names.filter((name) => groupOf.get(name) === group)
    const own = [...scores.values()].filter((score) => groupOf.get(score.first) === group)
    for (const rating of rateGroup(members, own, group)) ratings.set(rating.name, rating)
  }
  return names.map((name) => ratings.get(name) as Rating)
}

/** A share with its Wilson interval (Wilson 1927); null if there are no votes. */
export function wilson(hits: number, of: number): Interval | null {
  if (of === 0) return null
  const share = hits / of
  const z2 = normal95 * normal95
  const centre = (hits + z2 / 2) / (of + z2)
  const reach = (normal95 / (of + z2)) * Math.sqrt((hits * (of - hits)) / of + z2 / 4)
  return { value: share, low: Math.max(0, centre - reach), high: Math.min(1, centre + reach) }
}

/** The points of both sides of a pair: wins, half of the ties, and the prior. */
type Score = { first: string; second: string; firstPoints: number; secondPoints: number }

function votesOf(pair: PairVotes): number {
  return pair.firstWins + pair.secondWins + pair.undecided
}

function addScore(scores: Map<string, Score>, pair: PairVotes, prior: number): void {
  const turned = pair.first > pair.second
  const [first, second] = turned ? [pair.second, pair.first] : [pair.first, pair.second]
  const key = JSON.stringify([first, second])
  const score = scores.get(key) ?? { first, second, firstPoints: prior, secondPoints: prior }
  score.firstPoints += (turned ? pair.secondWins : pair.firstWins) + pair.undecided / 2
  score.secondPoints += (turned ? pair.firstWins : pair.secondWins) + pair.undecided / 2
  scores.set(key, score)
}

function groupsOf(names: readonly string[], scores: readonly Score[]): Map<string, number> {
  const groups = new Map<string, number>()
  let count = 0
  for (const name of names) {
    if (groups.has(name)) continue
    count += 1
    const open = [name]
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (groups.has(next)) continue
      groups.set(next, count)
      for (const { first, second } of scores) {
        if (first === next) open.push(second)
        if (second === next) open.push(first)
      }
    }
  }
  return groups
}

function rateGroup(members: readonly string[], scores: readonly Score[], group: number): Rating[] {
  if (members.length === 1) {
    const endless = { value: meanRating, low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY }
    return members.map((name) => ({ name, rating: endless, group, verdict: 'too_few_votes' }))
  }
  // Sorted, so that the result is bit-for-bit the same for any order of the votes.
  const sorted = [...members].toSorted()
  const { strengths, covariance } = fit(sorted, scores)
  const mean = average(strengths)
  // Converts the bound on the difference of two equals into a bound on one of them against the group's mean.
  const bound = tellingPoints * Math.sqrt((members.length - 1) / (2 * members.length))
  return sorted.map((name, index) => {
    const centred = intervalOf((strengths[index] as number) - mean, centredVariance(covariance, index))
    const verdict = verdictOf(centred, 0, bound)
    const { value, low, high } = centred
    return {
      name,
      rating: { value: meanRating + value, low: meanRating + low, high: meanRating + high },
      group,
      verdict,
    }
  })
}

function intervalOf(logOdds: number, variance: number): Interval {
  const value = logOdds * pointsPerLogOdds
  const reach = normal95 * Math.sqrt(variance) * pointsPerLogOdds
  return { value, low: value - reach, high: value + reach }
}

function verdictOf({ low, high }: Interval, equal: number, bound: number): RatingVerdict {
  if (low > equal) return 'better'
  if (high < equal) return 'worse'
  return (high - low) / 2 > bound ? 'too_few_votes' : 'no_difference'
}

/**
 * The strengths that maximize the likelihood (the first is fixed at 0) and their covariance. The likelihood is concave
 * and its maximum finite, because each pair has points on both sides and the pairs connect all names. A Newton step
 * that overshoots is halved.
 */
function fit(names: readonly string[], scores: readonly Score[]): { strengths: number[]; covariance: number[][] } {
  const place = new Map(names.map((name, index) => [name, index]))
  const games = [...scores]
    .toSorted((left, right) =>
      JSON.stringify([left.first, left.second]) < JSON.stringify([right.first, right.second]) ? -1 : 1,
    )
    .map((score) => ({ ...score, i: place.get(score.first) as number, j: place.get(score.second) as number }))
  const likelihood = (at: readonly number[]) =>
    games.reduce((sum, { i, j, firstPoints, secondPoints }) => {
      const lead = (at[i] as number) - (at[j] as number)
      return sum - firstPoints * Math.log1p(Math.exp(-lead)) - secondPoints * Math.log1p(Math.exp(lead))
    }, 0)

  let strengths = names.map(() => 0)
  let covariance: number[][] = []
  for (let round = 0; round < roundsMax; round++) {
    const gradient = names.map(() => 0)
    const information = names.map(() => names.map(() => 0))
    for (const { i, j, firstPoints, secondPoints } of games) {
      const expected = 1 / (1 + Math.exp((strengths[j] as number) - (strengths[i] as number)))
      const votes = firstPoints + secondPoints
      const surprise = firstPoints - votes * expected
      const weight = votes * expected * (1 - expected)
      add(gradient, i, surprise)
      add(gradient, j, -surprise)
      add(information[i] as number[], i, weight)
      add(information[j] as number[], j, weight)
      add(information[i] as number[], j, -weight)
      add(information[j] as number[], i, -weight)
    }
    covariance = inverseWithoutFirst(information)
    const step = covariance.map((row) =>
      row.reduce((sum, value, index) => sum + value * (gradient[index] as number), 0),
    )
    const size = Math.max(...step.map(Math.abs))
    if (size < nearEnough) {
      // Close to the maximum Newton's method converges quadratically, so the step is taken without comparing likelihoods:
      // their difference shrinks with the square of the step and is soon lost in the rounding of the sum.
      strengths = moved(strengths, step, 1)
      if (size < nearEnough ** 2) break
      continue
    }
    const best = likelihood(strengths)
    let scale = Math.min(1, stepMax / size)
    while (scale > 1e-6 && likelihood(moved(strengths, step, scale)) < best) scale /= 2
    strengths = moved(strengths, step, scale)
  }
  return { strengths, covariance }
}

function moved(from: readonly number[], step: readonly number[], scale: number): number[] {
  return from.map((value, index) => value + scale * (step[index] as number))
}

function add(row: number[], index: number, amount: number): void {
  row[index] = (row[index] as number) + amount
}

/** Inverts a matrix without its first row and column (Gauss and Jordan), and gives those back as zeros. */
function inverseWithoutFirst(matrix: readonly (readonly number[])[]): number[][] {
  const size = matrix.length - 1
  const rows = matrix
    .slice(1)
    .map((row, index) => [...row.slice(1), ...Array.from({ length: size }, (_, at) => (at === index ? 1 : 0))])
  for (let column = 0; column < size; column++) {
    // Positive definite, so no pivoting is needed.
    const pivotRow = rows[column] as number[]
    const pivot = pivotRow[column] as number
    for (let at = 0; at < 2 * size; at++) pivotRow[at] = (pivotRow[at] as number) / pivot
    for (const [index, row] of rows.entries()) {
      const factor = row[column] as number
      if (index === column || factor === 0) continue
      for (let at = 0; at < 2 * size; at++) row[at] = (row[at] as number) - factor * (pivotRow[at] as number)
    }
  }
  const zeros = Array.from({ length: size + 1 }, () => 0)
  return [zeros, ...rows.map((row) => [0, ...row.slice(size)])]
}

/** The variance of one strength minus the mean of all. */
function centredVariance(covariance: readonly (readonly number[])[], index: number): number {
  const row = average(covariance[index] as number[])
  const all = average(covariance.map((values) => average(values)))
  return Math.max(0, (covariance[index]?.[index] as number) - 2 * row + all)
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
