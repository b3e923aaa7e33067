// The waterfall of a run: one line for the run and its states, one for each request to the model, each tool call and each
// question. Long waits are cut short and say how long they were. A press on a line goes to that moment.

import { type CSSProperties, memo, type MouseEvent, useEffect, useRef } from 'react'
import { useWords } from '../i18n/words.ts'
import { durationText } from '../ui/countdown.tsx'
import { Icon, type IconName } from '../ui/icon.tsx'
import { VirtualList, type VirtualListHandle } from '../ui/virtual-list.tsx'
import { withVisibleControls } from '../ui/visible-text.ts'
import type { TimeScale } from './time-scale.ts'
import type { Span } from './waterfall.ts'
import { runWords } from './words.ts'
import './waterfall-view.css'

const rowHeight = 28
const headerHeight = 28
const tickCount = 6

const icons: Record<Span['kind'], IconName> = { run: 'run', model: 'agent', tool: 'tool', question: 'comment' }

type WaterfallViewProps = {
  spans: readonly Span[]
  /** Changes when spans do; the list is the same object while it grows. */
  version: number
  scale: TimeScale
  /** The time up to which open spans last. */
  now: number
  /** The moment that is shown. */
  at: number
  /** The number of the event that is shown; its line is marked. */
  seq: number
  onSeekSeq(seq: number): void
  onSeekTime(time: number): void
}

export function WaterfallView({ spans, version, scale, now, at, seq, onSeekSeq, onSeekTime }: WaterfallViewProps) {
  const words = useWords(runWords)
  const list = useRef<VirtualListHandle>(null)
  // The newest line that had begun.
  const current = lastBegun(spans, seq)
  useEffect(() => {
    if (current >= 0) list.current?.scrollTo(current)
  }, [current])
  const share = Math.min(1, scale.share(at))
  // A time at the very end would stick out.
  const ticks = scale.ticks(tickCount).filter((tick) => tick.share < 0.93)
  return (
    <div className="waterfall" style={{ '--playhead': share } as CSSProperties}>
      <VirtualList
        ref={list}
        label={words.waterfall}
        count={spans.length}
        rowHeight={rowHeight}
        keyOf={(index) => spans[index]?.id ?? index}
        header={{
          height: headerHeight,
          content: (
            <div className="waterfall-row waterfall-axis" aria-hidden="true">
              <span className="waterfall-label faint">{words.startedAfter}</span>
              <span className="waterfall-track">
                {ticks.map(({ share: tick, ms }) => (
                  <span key={ms} className="waterfall-tick numbers" style={{ left: percent(tick) }}>
                    {durationText(ms)}
                  </span>
                ))}
                {scale.cuts.map(({ from, to, ms }) => (
                  <span
                    key={from}
                    className="waterfall-cut-label numbers"
                    style={{ left: percent(from), width: percent(to - from) }}
                    title={words.waitCut(durationText(ms))}
                  >
                    <span>{durationText(ms)}</span>
                  </span>
                ))}
                <span className="waterfall-handle" />
              </span>
            </div>
          ),
        }}
        overlay={
          <>
            <div className="waterfall-overlay" aria-hidden="true">
              {scale.cuts.map(({ from, to }) => (
                <span key={from} className="waterfall-cut" style={{ left: percent(from), width: percent(to - from) }} />
              ))}
            </div>
            <div className="waterfall-overlay waterfall-over" aria-hidden="true">
              <span className="waterfall-future" />
              <span className="waterfall-playhead" />
            </div>
          </>
        }
        renderRow={(index) => {
          const span = spans[index]
          if (span === undefined) return null
          return (
            <WaterfallRow
              span={span}
              version={span.end === null ? version : -1}
              scale={scale}
              now={span.end ?? now}
              isCurrent={index === current}
              onSeekSeq={onSeekSeq}
              onSeekTime={onSeekTime}
            />
          )
        }}
      />
      <div className="waterfall-legend" aria-hidden="true">
        <span data-sign="queued">{words.segment_queued}</span>
        <span data-sign="model">{words.span_model}</span>
        <span data-sign="token">{words.firstTokenSign}</span>
        <span data-sign="tool">{words.span_tool}</span>
        <span data-sign="waiting">{words.segment_waiting}</span>
        <span data-sign="failed">{words.failed}</span>
      </div>
    </div>
  )
}

type WaterfallRowProps = {
  span: Span
  /** Spans that have not ended change in place. */
  version: number
  scale: TimeScale
  now: number
  isCurrent: boolean
  onSeekSeq(seq: number): void
  onSeekTime(time: number): void
}

const WaterfallRow = memo(function WaterfallRow({
  span,
  scale,
  now,
  isCurrent,
  onSeekSeq,
  onSeekTime,
}: WaterfallRowProps) {
  const words = useWords(runWords)
  const name = span.kind === 'run' ? words.run : withVisibleControls(span.label)
  const end = span.end ?? now
  const endShare = scale.share(end)
  const duration = durationText(end - span.start)
  // The duration stands where it has room.
  const side = endShare < 0.84 ? 'after' : scale.share(span.start) > 0.16 ? 'before' : 'inside'
  const seekAt = (event: MouseEvent<HTMLElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect()
    onSeekTime(scale.timeAt(((event.clientX - left) / width) * scale.length))
  }
  return (
    <div className="waterfall-row" data-kind={span.kind} data-outcome={span.outcome} data-current={isCurrent}>
      <button
        type="button"
        className="waterfall-label"
        aria-current={isCurrent ? 'true' : undefined}
        aria-label={`${words[`span_${span.kind}`]} ${name}, ${duration}`}
        title={name}
        onClick={() => onSeekSeq(span.seq)}
      >
        <Icon name={icons[span.kind]} size={14} />
        <span className="cut grow">{name}</span>
        {span.step === undefined ? null : <span className="waterfall-step faint numbers">{span.step}</span>}
      </button>
      {/* The same moments are reached by keyboard with the slider. */}
      <span className="waterfall-track" onClick={seekAt}>
        {span.segments.map(({ kind, start, end: over, attempt }) => (
          <span
            key={start + kind}
            className={`waterfall-bar waterfall-bar-${kind}`}
            title={`${words[`segment_${kind}`]} · ${durationText((over ?? end) - start)}${attempt > 1 ? ` · ${words.attempt(attempt)}` : ''}`}
            style={{ left: percent(scale.share(start)), width: percent(scale.share(over ?? end) - scale.share(start)) }}
          >
            {span.kind === 'run' && kind === 'active' && attempt > 1 ? (
              <span className="waterfall-attempt numbers">{attempt}</span>
            ) : null}
          </span>
        ))}
        {span.firstToken === undefined ? null : (
          <>
            <span
              className="waterfall-bar waterfall-bar-tokens"
              style={{
                left: percent(scale.share(span.firstToken)),
                width: percent(endShare - scale.share(span.firstToken)),
              }}
            />
            <span
              className="waterfall-token"
              title={words.firstToken(durationText(span.firstToken - span.start))}
              style={{ left: percent(scale.share(span.firstToken)) }}
            />
          </>
        )}
        {span.marks.map(({ seq, at, tone }) => (
          <span
            key={seq}
            className={`waterfall-mark waterfall-mark-${tone}`}
            title={`seq ${seq}`}
            style={{ left: percent(scale.share(at)) }}
          />
        ))}
        {span.kind === 'run' ? null : (
          <span
            className="waterfall-time numbers"
            data-side={side}
            style={{ left: percent(side === 'before' ? scale.share(span.start) : endShare) }}
          >
            {duration}
          </span>
        )}
      </span>
    </div>
  )
})

function lastBegun(spans: readonly Span[], seq: number): number {
  return spans.findLastIndex((span) => span.seq <= seq)
}

function percent(share: number): string {
  return `${(Math.min(1, Math.max(0, share)) * 100).toFixed(3)}%`
}
