// Estimates with their intervals, one row each, on one scale. The numbers are beside it as text, so nothing depends on
// seeing the marks. A phone stacks the cells of a row; the roles keep it a table for screen readers.

import type { ReactNode } from 'react'
import './interval-plot.css'

export type IntervalRow = {
  key: string
  label: ReactNode
  value: number
  /** Null: without a bound. */
  low: number | null
  high: number | null
  tone: 'good' | 'bad' | 'info' | 'neutral'
  /** Cells behind the plot; one for each of `columns`. */
  cells: readonly { text: string; isStrong?: boolean; help?: string }[]
}

type IntervalPlotProps = {
  caption: string
  labelTitle: string
  plotTitle: string
  columns: readonly string[]
  rows: readonly IntervalRow[]
  /** A line through all rows. */
  reference: number
  format?: (value: number) => string
}

/** Room at both ends, as a share of the scale. */
const margin = 0.06

export function IntervalPlot({
  caption,
  labelTitle,
  plotTitle,
  columns,
  rows,
  reference,
  format = String,
}: IntervalPlotProps) {
  const known = rows.flatMap(({ value, low, high }) => [value, low ?? value, high ?? value])
  const [least, most] = [Math.min(reference, ...known), Math.max(reference, ...known)]
  const room = Math.max((most - least) * margin, 1)
  const [from, to] = [least - room, most + room]
  const at = (value: number) => `${(((value - from) / (to - from)) * 100).toFixed(2)}%`
  const ticks = ticksOf(from, to)
  return (
    <div className="interval-plot" tabIndex={0} role="region" aria-label={caption}>
      <table role="table">
        <caption className="visually-hidden">{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            <th scope="col" role="columnheader">
              {labelTitle}
            </th>
            <th scope="col" role="columnheader" className="interval-track-cell">
              {plotTitle}
            </th>
            {columns.map((column) => (
              <th key={column} scope="col" role="columnheader" className="interval-number">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map(({ key, label, value, low, high, tone, cells }) => (
            <tr key={key} role="row">
              <th scope="row" role="rowheader">
                {label}
              </th>
              <td role="cell" className="interval-track-cell">
                <div className="interval-track" data-tone={tone} aria-hidden="true">
                  {ticks.map((tick) => (
                    <span key={tick} className="interval-grid" style={{ left: at(tick) }} />
                  ))}
                  <span className="interval-reference" style={{ left: at(reference) }} />
                  <span
                    className="interval-bar"
                    data-open-low={low === null}
                    data-open-high={high === null}
                    style={{ left: at(low ?? from), right: `calc(100% - ${at(high ?? to)})` }}
                  />
                  <span className="interval-dot" style={{ left: at(value) }} />
                </div>
              </td>
              {cells.map(({ text, isStrong = false, help }, index) => (
                <td
                  key={columns[index] ?? index}
                  role="cell"
                  className="interval-number numbers"
                  data-label={columns[index]}
                  data-strong={isStrong}
                  title={help}
                >
                  {text}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        <tfoot aria-hidden="true">
          <tr>
            <td />
            <td className="interval-track-cell">
              <div className="interval-axis">
                {ticks.map((tick) => (
                  <span key={tick} style={{ left: at(tick) }}>
                    {format(tick)}
                  </span>
                ))}
              </div>
            </td>
            <td colSpan={columns.length} />
          </tr>
        </tfoot>
      </table>
    </div>
  )
}

/** About four round numbers between the ends. */
function ticksOf(from: number, to: number): number[] {
  const rough = (to - from) / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power
  const first = Math.ceil(from / step)
  return Array.from({ length: Math.max(0, Math.floor(to / step) - first + 1) }, (_, index) => (first + index) * step)
}
