// Where in a run the person is: at its end, live, or at one of its events; and the replay that moves from event to event as
// fast as they happened, or four times as fast.

import { useCallback, useEffect, useRef, useState } from 'react'
import type { RunRecord } from './run-record.ts'
import type { TimeScale } from './time-scale.ts'

export type Speed = 1 | 4

export type Playback = {
  /** The index of the event; null at the end, where new events are followed. */
  position: number | null
  /** The index that is shown; -1 before the first event has come. */
  index: number
  isPlaying: boolean
  speed: Speed
  setSpeed(speed: Speed): void
  seek(index: number): void
  step(by: number): void
  toEnd(): void
  toggle(): void
}

type PlaybackOptions = { record: RunRecord; count: number; scale: TimeScale; start: number | null }

/** `start` is the number in the journal to begin at; null for the end. */
export function usePlayback({ record, count, scale, start }: PlaybackOptions): Playback {
  const [wanted, setWanted] = useState(start)
  const [position, setPosition] = useState<number | null>(null)
  const [isPlaying, setPlaying] = useState(false)
  const [speed, setSpeed] = useState<Speed>(1)
  const last = count - 1
  const latest = useRef({ record, scale, last, speed })
  latest.current = { record, scale, last, speed }

  // The event that the address names may not have come yet.
  useEffect(() => {
    if (wanted === null || last < 0) return
    const isThere = (record.rows[last]?.seq ?? 0) >= wanted
    setPosition(Math.max(0, record.indexOfSeq(wanted)))
    if (isThere) setWanted(null)
  }, [record, wanted, last])

  const seek = useCallback((index: number) => {
    setWanted(null)
    setPlaying(false)
    setPosition(Math.min(Math.max(0, index), Math.max(0, latest.current.last)))
  }, [])
  const toEnd = useCallback(() => {
    setWanted(null)
    setPlaying(false)
    setPosition(null)
  }, [])
  const index = position === null ? last : Math.min(position, last)
  const step = (by: number) => seek(index + by)
  const toggle = () => {
    if (isPlaying) return setPlaying(false)
    setWanted(null)
    // At the end a replay begins again.
    if (index >= last) setPosition(0)
    else setPosition(index)
    setPlaying(true)
  }

  const from = useRef(0)
  from.current = index
  useEffect(() => {
    if (!isPlaying) return
    let place = latest.current.scale.placeOf(latest.current.record.times[from.current] ?? 0)
    let before: number | null = null
    let frame = 0
    const advance = (now: number) => {
      const { record: run, scale: line, last: end, speed: factor } = latest.current
      place += before === null ? 0 : (now - before) * factor
      before = now
      const next = Math.max(from.current, run.indexOfTime(line.timeAt(place)))
      if (next >= end) {
        setPlaying(false)
        setPosition(null)
        return
      }
      setPosition(next)
      frame = requestAnimationFrame(advance)
    }
    frame = requestAnimationFrame(advance)
    return () => cancelAnimationFrame(frame)
  }, [isPlaying])

  return { position, index, isPlaying, speed, setSpeed, seek, step, toEnd, toggle }
}
