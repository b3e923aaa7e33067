// The load of the node that answers, over the last quarter of an hour.

import { useLocale, useWords } from '../../i18n/words.ts'
import { Card } from '../../ui/page.tsx'
import { Plot } from '../../ui/plot.tsx'
import { withVisibleControls } from '../../ui/visible-text.ts'
import { millisecondsText } from './milliseconds-text.ts'
import type { LoadSample, Overview } from './overview.ts'
import { operationWords } from './words.ts'

export function Load({ overview }: { overview: Overview }) {
  const words = useWords(operationWords)
  const locale = useLocale()
  const { samples, everyMs } = overview.load
  const node = overview.nodes.find(({ id }) => id === overview.node)
  const times = samples.map(({ atMs }) => atMs)
  const whole = (value: number) => (Number.isInteger(value) ? value.toLocaleString(locale) : '')
  return (
    <section className="stack" aria-label={words.quarter}>
      <h2>
        {words.quarter}
        {overview.nodes.length > 1 && node !== undefined ? (
          <span className="faint load-node"> {words.ofNode(withVisibleControls(node.name))}</span>
        ) : null}
      </h2>
      {samples.length === 0 ? (
        <p className="faint">{words.noSamples}</p>
      ) : (
        <div className="plots">
          <Card>
            <Plot
              title={words.commitTime}
              times={times}
              format={millisecondsText}
              atLeast={5}
              series={[
                { label: words.commitAverage, tone: 'accent', isJoined: true, values: timesOf(samples, 'commitMs') },
                { label: words.commitMax, tone: 'warn', isJoined: true, values: timesOf(samples, 'commitMsMax') },
              ]}
            />
          </Card>
          <Card>
            <Plot
              title={words.queueDepth}
              times={times}
              format={whole}
              atLeast={4}
              series={[{ label: words.queue, tone: 'info', values: samples.map(({ commitQueue }) => commitQueue) }]}
            />
          </Card>
          <Card>
            <Plot
              title={words.runsOverTime}
              times={times}
              format={whole}
              atLeast={4}
              series={[
                { label: words.running, tone: 'accent', values: samples.map(({ runs }) => countIn(runs, 'running')) },
                {
                  label: words.waiting,
                  tone: 'warn',
                  values: samples.map(({ runs }) => countIn(runs, 'awaiting_input')),
                },
                { label: words.queued, tone: 'info', values: samples.map(({ runs }) => countIn(runs, 'queued')) },
              ]}
            />
          </Card>
          <Card>
            <Plot
              title={words.commitRate}
              times={times}
              format={(value) => words.perSecond(value.toLocaleString(locale, { maximumFractionDigits: 1 }))}
              atLeast={2}
              series={[
                {
                  label: words.commitRate,
                  tone: 'good',
                  values: samples.map(({ commits }) => (commits * 1000) / everyMs),
                },
              ]}
            />
          </Card>
        </div>
      )}
    </section>
  )
}

/** Without commits there is no time that one took. */
function timesOf(samples: readonly LoadSample[], name: 'commitMs' | 'commitMsMax'): (number | null)[] {
  return samples.map((sample) => (sample.commits === 0 ? null : sample[name]))
}

type Counts = LoadSample['runs']

/** Null if the database did not answer then: the line has a gap. */
function countIn(runs: Counts, status: keyof NonNullable<Counts>): number | null {
  return runs === null ? null : (runs[status] ?? 0)
}
