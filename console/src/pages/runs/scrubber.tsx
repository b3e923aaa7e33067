// The moment of the run that is shown: a slider over all events, single steps, and a replay.

import type { CSSProperties } from 'react'
import { useLocale, useWords } from '../../i18n/words.ts'
import type { RunRecord } from '../../run/run-record.ts'
import type { Playback, Speed } from '../../run/use-playback.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { durationText } from '../../ui/countdown.tsx'
import { runsWords } from './words.ts'
import './scrubber.css'

const speeds: readonly Speed[] = [1, 4]
/** More marks would be one bar. */
const marksMax = 100

type ScrubberProps = {
  playback: Playback
  record: RunRecord
  count: number
  isLive: boolean
  onNextError(): void
}

export function Scrubber({ playback, record, count, isLive, onNextError }: ScrubberProps) {
  const words = useWords(runsWords)
  const locale = useLocale()
  const { index, position, isPlaying, speed, setSpeed, seek, step, toEnd, toggle } = playback
  const seq = record.rows[index]?.seq ?? 0
  const after = durationText((record.times[index] ?? 0) - (record.times[0] ?? 0))
  const last = Math.max(1, count - 1)
  const errors = record.errors.length
  return (
    <div className="scrubber" role="group" aria-label={words.moments}>
      <span className="scrubber-buttons">
        <span className="scrubber-far">
          <IconButton icon="first" small label={words.first} disabled={index <= 0} onClick={() => seek(0)} />
        </span>
        <IconButton icon="left" small label={words.previous} disabled={index <= 0} onClick={() => step(-1)} />
        <IconButton
          icon={isPlaying ? 'pause' : 'play'}
          look="primary"
          small
          label={isPlaying ? words.pause : words.play}
          onClick={toggle}
        />
        <IconButton icon="right" small label={words.next} disabled={index >= count - 1} onClick={() => step(1)} />
        <span className="scrubber-far">
          <IconButton icon="last" small label={words.toEnd} disabled={position === null} onClick={toEnd} />
        </span>
      </span>
      <span className="scrubber-speeds" role="group" aria-label={words.speed}>
        {speeds.map((each) => (
          <button key={each} type="button" aria-pressed={speed === each} onClick={() => setSpeed(each)}>
            {each}×
          </button>
        ))}
      </span>
      <span className="scrubber-line">
        <span className="scrubber-marks" aria-hidden="true">
          {record.errors.slice(0, marksMax).map((at) => (
            <span key={at} style={{ left: `${(at / last) * 100}%` }} />
          ))}
        </span>
        <input
          type="range"
          min={0}
          max={Math.max(0, count - 1)}
          step={1}
          value={Math.max(0, index)}
          aria-label={words.moments}
          aria-valuetext={words.momentText(String(index + 1), String(count), after)}
          style={{ '--filled': `${(Math.max(0, index) / last) * 100}%` } as CSSProperties}
          onChange={(event) => seek(Number(event.target.value))}
        />
      </span>
      <span className="scrubber-moment numbers" title={words.momentText(String(index + 1), String(count), after)}>
        <strong>{seq.toLocaleString(locale)}</strong>
        <span className="faint"> / {(record.rows.at(-1)?.seq ?? 0).toLocaleString(locale)}</span>
        <span className="scrubber-time soft">+{after}</span>
      </span>
      {isLive ? (
        <Button small look={position === null ? 'quiet' : 'plain'} disabled={position === null} onClick={toEnd}>
          <span className="scrubber-live" data-on={position === null} />
          {position === null ? words.following : words.followLive}
        </Button>
      ) : null}
      <Button small icon="alert" look="quiet" disabled={errors === 0} onClick={onNextError} title={words.nextError}>
        <span className="scrubber-errors">{errors === 0 ? words.noErrors : words.errorCount(errors)}</span>
      </Button>
    </div>
  )
}
