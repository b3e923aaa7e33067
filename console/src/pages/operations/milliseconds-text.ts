import { durationText } from '../../ui/countdown.tsx'

/** Commits take few milliseconds, so tenths matter. */
export function millisecondsText(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : durationText(ms)
}
