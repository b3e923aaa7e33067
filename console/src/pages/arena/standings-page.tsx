// What the votes say: ratings with their 95 % intervals and sample sizes, pair by pair, and whether the side decides.

import { useSearchParams } from 'wouter'
import { useCurl } from '../../api/curl.ts'
import { userQuery } from '../../api/named-user.ts'
import { useLoaded } from '../../api/use-loaded.ts'
import { useFeed } from '../../feed/feed.ts'
import { useLocale, useWords } from '../../i18n/words.ts'
import { Badge, type Tone } from '../../ui/badge.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { IntervalPlot, type IntervalRow } from '../../ui/interval-plot.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { ArenaTabs } from './arena-tabs.tsx'
import type { Tally, Verdict, VoteMetrics } from './vote-metrics.ts'
import { arenaWords } from './words.ts'
import './standings-page.css'

const meanRating = 1000

const tones = {
  better: 'good',
  worse: 'bad',
  no_difference: 'info',
  too_few_votes: 'neutral',
} as const satisfies Record<Verdict, Tone>

export function StandingsPage() {
  const words = useWords(arenaWords)
  const [search] = useSearchParams()
  const scope = search.get('scope') === 'all' ? 'all' : 'mine'
  const { data, error, reload } = useLoaded(`metrics ${scope}`, ({ json }, signal) =>
    json<VoteMetrics>('/api/ab/metrics', { query: { ...userQuery(), scope }, signal }),
  )
  useFeed((frame) => {
    if (frame.type === 'comparison.voted') reload()
  })
  const scopes = [
    { href: '/arena/standings', label: words.myVotes },
    { href: '/arena/standings?scope=all', label: words.allVotes },
  ]
  return (
    <Page
      title={words.arena}
      actions={
        <Tabs
          tabs={scopes}
          current={scope === 'all' ? '/arena/standings?scope=all' : '/arena/standings'}
          label={words.whoseVotes}
        />
      }
      bar={<ArenaTabs current="/arena/standings" />}
    >
      {error === undefined ? null : <Problem error={error} onRetry={reload} />}
      {data === undefined && error === undefined ? <Spinner center /> : null}
      {data === undefined ? null : data.votes === 0 ? <NoVotes /> : <Standings metrics={data} />}
    </Page>
  )
}

function NoVotes() {
  const words = useWords(arenaWords)
  const call = useCurl('/api/ab/metrics')
  return (
    <EmptyState icon="arena" title={words.noVotes} call={call}>
      {words.noVotesHelp}
    </EmptyState>
  )
}

function Standings({ metrics }: { metrics: VoteMetrics }) {
  const words = useWords(arenaWords)
  const locale = useLocale()
  const groups = Map.groupBy(metrics.configs, ({ group }) => group)
  const { position_bias: bias } = metrics
  /** Wins, ties, losses. "Both bad" counts as a tie and is named in the tooltip. */
  const record = ({ wins, ties, losses, both_bad }: Tally) => {
    return { text: `${wins}–${ties + both_bad}–${losses}`, help: words.recordHelp(wins, ties, both_bad, losses) }
  }
  const percent = (share: number) => `${Math.round(share * 100)} %`
  return (
    <div className="standings">
      {[...groups.values()].map((configs, index) => (
        <Card
          key={configs[0]?.config ?? index}
          title={
            <span className="row row-wrap">
              {groups.size === 1 ? words.ratings : words.ratingsGroup(index + 1)}
              <span className="faint standings-note">{words.ratingsHelp}</span>
            </span>
          }
        >
          <IntervalPlot
            caption={words.ratings}
            labelTitle={words.config}
            plotTitle={words.ratingInterval}
            columns={[words.rating, words.interval, words.votesColumn, words.record]}
            reference={meanRating}
            format={(value) => value.toLocaleString(locale)}
            rows={configs.map((entry): IntervalRow => ({
              key: entry.config,
              label: (
                <span className="standings-config">
                  <b className="cut">{entry.config}</b>
                  <Badge tone={tones[entry.verdict]}>{words[`config_${entry.verdict}`]}</Badge>
                </span>
              ),
              value: entry.rating,
              low: entry.rating_low,
              high: entry.rating_high,
              tone: tones[entry.verdict],
              cells: [
                { text: Math.round(entry.rating).toLocaleString(locale), isStrong: true },
                { text: intervalText(entry.rating_low, entry.rating_high, locale) },
                { text: entry.votes.toLocaleString(locale), isStrong: true },
                record(entry),
              ],
            }))}
          />
        </Card>
      ))}
      <Card title={words.pairs}>
        <IntervalPlot
          caption={words.pairs}
          labelTitle={words.pair}
          plotTitle={words.differenceInterval}
          columns={[words.lead, words.interval, words.votesColumn, words.record]}
          reference={0}
          format={signed}
          rows={metrics.pairs.map((pair): IntervalRow => ({
            key: `${pair.config_a} ${pair.config_b}`,
            label: (
              <span className="standings-config">
                <b className="cut">{words.pairName(pair.config_a, pair.config_b)}</b>
                <Badge tone={tones[pair.verdict]}>
                  {pair.config_a === pair.config_b
                    ? words.pair_itself
                    : pair.verdict === 'better'
                      ? words.pairBetter(pair.config_a)
                      : pair.verdict === 'worse'
                        ? words.pairBetter(pair.config_b)
                        : words[`config_${pair.verdict}`]}
                </Badge>
              </span>
            ),
            value: pair.difference,
            low: pair.difference_low,
            high: pair.difference_high,
            tone: tones[pair.verdict],
            cells: [
              { text: signed(Math.round(pair.difference)), isStrong: true },
              { text: intervalText(pair.difference_low, pair.difference_high, locale) },
              { text: pair.votes.toLocaleString(locale), isStrong: true },
              record(pair),
            ],
          }))}
        />
      </Card>
      <Card title={words.bias}>
        <p className="soft standings-note">{words[`bias_${bias.verdict}`]}</p>
        {bias.first_side_share === null ? null : (
          <p className="standings-note numbers">
            {words.biasNumbers(
              percent(bias.first_side_share),
              percent(bias.share_low ?? 0),
              percent(bias.share_high ?? 1),
              bias.first_side_wins + bias.second_side_wins,
            )}
          </p>
        )}
      </Card>
    </div>
  )
}

function intervalText(low: number | null, high: number | null, locale: string): string {
  const text = (value: number | null, open: string) =>
    value === null ? open : Math.round(value).toLocaleString(locale).replace('-', '−')
  return `${text(low, '−∞')} … ${text(high, '∞')}`
}

function signed(value: number): string {
  return value > 0 ? `+${value}` : value < 0 ? `−${-value}` : '0'
}
