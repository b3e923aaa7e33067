// Lines over time. The library that draws them is loaded with the first plot. Below it, screen readers get the newest
// values as text.

import { useEffect, useRef } from 'react'
import type uPlot from 'uplot'
import { preferences } from '../app/preferences.ts'
import './plot.css'

export type PlotSeries = {
  label: string
  values: readonly (number | null)[]
  tone: 'accent' | 'good' | 'warn' | 'bad' | 'info'
}

type PlotProps = {
  title: string
  /** Epoch milliseconds, ascending. */
  times: readonly number[]
  series: readonly PlotSeries[]
  height?: number
  format?: (value: number) => string
}

export function Plot({ title, times, series, height = 180, format = String }: PlotProps) {
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
          cursor: { y: false },
          legend: { show: series.length > 1 },
          axes: [axis, { ...axis, values: (_: uPlot, values: number[]) => values.map(format) }],
          series: [
            {},
            ...series.map(({ label, tone }) => ({
              label,
              stroke: () => resolved(element, tone),
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
  }, [shape, height, theme])
  useEffect(() => drawn.current?.setData(latest.current), [data])

  return (
    <figure className="plot" aria-label={title}>
      <figcaption>
        {title}
        <span className="visually-hidden">
          {series
            .map(({ label, values }) => `${label}: ${values.at(-1) == null ? '–' : format(values.at(-1) ?? 0)}`)
            .join(', ')}
        </span>
      </figcaption>
      <div ref={place} aria-hidden="true" />
    </figure>
  )
}

/** A token as a colour that a canvas understands: the browser computes `light-dark()` only for elements. */
function resolved(element: HTMLElement, token: string): string {
  element.style.color = `var(--${token})`
  const { color } = getComputedStyle(element)
  element.style.color = ''
  return color
}
