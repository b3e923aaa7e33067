// Who reads streams of the node that answers, slowest first.

import { useLocale, useWords } from '../../i18n/words.ts'
import { Badge } from '../../ui/badge.tsx'
import { durationText } from '../../ui/countdown.tsx'
import { sizeText } from '../../ui/file-field.tsx'
import { RunLink } from './open-runs.tsx'
import type { Overview } from './overview.ts'
import { operationWords } from './words.ts'

/** A reader that is this many events behind is slow. */
const lagHigh = 100

export function Readers({ overview: { streams, runs } }: { overview: Overview }) {
  const words = useWords(operationWords)
  const locale = useLocale()
  const owners = new Map(runs.map(({ runId, userId }) => [runId, userId]))
  return (
    <section className="stack" aria-label={words.streams}>
      <h2>{words.streams}</h2>
      {streams.length === 0 ? (
        <p className="faint">{words.noStreams}</p>
      ) : (
        <div className="table-box operations-runs" tabIndex={0} role="region" aria-label={words.streams}>
          <table className="table">
            <thead>
              <tr>
                <th scope="col">{words.format}</th>
                <th scope="col">{words.run}</th>
                <th scope="col" className="table-number">
                  {words.lag}
                </th>
                <th scope="col" className="table-number table-wide">
                  {words.buffered}
                </th>
                <th scope="col" className="table-number">
                  {words.open}
                </th>
              </tr>
            </thead>
            <tbody>
              {streams.map(({ format, runId, lag, bufferedBytes, openMs }, index) => (
                // A stream has no id, and the same run may be read many times.
                <tr key={`${runId ?? format} ${index}`}>
                  <td>{format}</td>
                  <td>
                    {runId === null ? (
                      <span className="faint">–</span>
                    ) : (
                      <RunLink runId={runId} {...ownerOf(owners, runId)} />
                    )}
                  </td>
                  <td className="table-number">
                    {lag === null ? (
                      <span className="faint">–</span>
                    ) : lag > lagHigh ? (
                      <Badge tone="warn">{words.events(lag.toLocaleString(locale))}</Badge>
                    ) : (
                      words.events(lag.toLocaleString(locale))
                    )}
                  </td>
                  <td className="table-number table-wide">{sizeText(bufferedBytes, locale)}</td>
                  <td className="table-number faint">{durationText(Math.floor(openMs / 1000) * 1000)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

function ownerOf(owners: ReadonlyMap<string, string>, runId: string): { userId?: string } {
  const userId = owners.get(runId)
  return userId === undefined ? {} : { userId }
}
