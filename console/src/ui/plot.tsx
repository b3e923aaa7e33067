// Lines over time. The library that draws them is loaded with the first plot. Its legend has the newest values, or those
// below the mouse; screen readers read it.

import { useEffect, useRef, useState } from 'react'
import type uPlot from 'uplot'
import { preferences } from '../app/preferences.ts'
import { useLocale } from '../i18n/words.ts'
import './plot.css'

/** The time axis is at least this long, so that the first values do not fill it. */
const secondsMin = 60

export type PlotSeries = {
  label: string
  /** Null: nothing is known of this time. */
  values: readonly (number | null)[]
  /** True: the line goes on over such times. */
  isJoined?: boolean
  tone: 'accent' | 'good' | 'warn' | 'bad' | 'info'
}

type PlotProps = {
  title: string
  /** Epoch milliseconds, ascending. */
  times: readonly number[]
  series: readonly PlotSeries[]
  height?: number
  format?: (value: number) => string
  /** The axis reaches at least this far, so that small values do not look dramatic. */
  atLeast?: number
}

export function Plot({ title, times, series, height = 160, format = String, atLeast = 1 }: PlotProps) {
  const locale = useLocale()
  const [pointed, setPointed] = useState<number | null>(null)
  const place = useRef<HTMLDivElement>(null)
  const drawn = useRef<uPlot | null>(null)
  const { theme } = preferences.use()
  const data = [times.map((at) => at / 1000), ...series.map(({ values }) => [...values])] as uPlot.AlignedData
  const latest = useRef(data)
  latest.current = data
  const shape = series.map(({ label, tone }) => `${label}:${tone}`).join('|')

  useEffect(() => {
    let isGone = false
    const element = place.current
    const watch = new ResizeObserver(() => drawn.current?.setSize({ width: element?.clientWidth ?? 0, height }))
    void Promise.all([import('uplot'), import('uplot/dist/uPlot.min.css')]).then(([{ default: Plotter }]) => {
      if (isGone || element === null) return
      const axis = {
        stroke: () => resolved(element, 'text-faint'),
        grid: { stroke: () => resolved(element, 'line'), width: 1 },
        ticks: { show: false },
      }
      drawn.current = new Plotter(
        {
          width: element.clientWidth,
          height,
          padding: [8, 12, 0, 0],
          cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
          legend: { show: false },
          scales: {
            x: { range: (_: uPlot, min: number, max: number) => [Math.min(min, max - secondsMin), max] },
            y: { range: (_: uPlot, __: number, max: number) => [0, Math.max(atLeast, max * 1.1)] },
          },
          axes: [
            { ...axis, size: 24, values: (_: uPlot, values: number[]) => clockTexts(values, locale) },
            { ...axis, size: 56, space: 36, values: (_: uPlot, values: number[]) => values.map(format) },
          ],
          hooks: { setCursor: [({ cursor }: uPlot) => setPointed(cursor.idx ?? null)] },
          series: [
            {},
            ...series.map(({ label, tone, isJoined = false }) => ({
              label,
              spanGaps: isJoined,
              stroke: () => resolved(element, tone),
              ...(series.length === 1 ? { fill: () => resolved(element, `${tone}-soft`) } : {}),
              width: 1.5,
              points: { show: false },
            })),
          ],
        },
        latest.current,
        element,
      )
      watch.observe(element)
    })
    return () => {
      isGone = true
      watch.disconnect()
      drawn.current?.destroy()
      drawn.current = null
    }
  }, [shape, height, theme, locale, atLeast])
  useEffect(() => drawn.current?.setData(latest.current), [data])

  return (
    <figure className="plot" aria-label={title}>
      <figcaption className="row row-wrap">
        <span className="grow">{title}</span>
        <span className="plot-legend">
          {series.map(({ label, values, tone }) => {
            const value = values[pointed ?? values.length - 1]
            return (
              <span key={label} className="plot-value">
                <span className={`plot-mark plot-${tone}`} />
                {label} <span className="numbers">{value == null ? '–' : format(value)}</span>
              </span>
            )
          })}
        </span>
      </figcaption>
      <div ref={place} aria-hidden="true" />
    </figure>
  )
}

/** With seconds if minutes alone would repeat. */
function clockTexts(values: readonly number[], locale: string): string[] {
  const isFine = values.some((seconds) => seconds % 60 !== 0)
  const format = new Intl.DateTimeFormat(locale, {
    hour: '2-digit',
    minute: '2-digit',
    ...(isFine ? { second: '2-digit' } : {}),
  })
  return values.map((seconds) => format.format(seconds * 1000))
}

/**
 * A token as a colour that a canvas understands: the browser computes `light-dark()` only for elements. A new element has
 * no transition from another colour.
 */
function resolved(element: HTMLElement, token: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(--${token})`
  element.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}
