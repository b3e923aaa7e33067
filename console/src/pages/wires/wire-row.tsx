// One event, and the frames that each dialect makes of it.

import { Fragment, memo, type ReactNode, useState } from 'react'
import { Link } from 'wouter'
import { useLocale, useWords } from '../../i18n/words.ts'
import { groupOf, severityOf } from '../../run/event-groups.ts'
import type { JournalRow } from '../../run/journal-row.ts'
import { durationText } from '../../ui/countdown.tsx'
import { withVisibleControls } from '../../ui/visible-text.ts'
import type { DialectName } from './dialects.ts'
import { wiresWords } from './words.ts'

/** More of a frame is shown on demand. */
const shownCharsMax = 280

type WireRowProps = {
  runId: string
  row: JournalRow
  start: number
  columns: readonly DialectName[]
  isCurrent: boolean
}

export const WireRow = memo(function WireRow({ runId, row, start, columns, isCurrent }: WireRowProps) {
  const words = useWords(wiresWords)
  const locale = useLocale()
  return (
    <div className="wire-row" data-current={isCurrent} data-severity={severityOf(row) ?? undefined}>
      <Link
        className="wire-event"
        href={`/runs/${encodeURIComponent(runId)}?seq=${row.seq}`}
        aria-label={words.toMoment(row.seq)}
        aria-current={isCurrent ? 'true' : undefined}
        data-group={groupOf(row)}
      >
        <span className="wire-seq numbers">{row.seq.toLocaleString(locale)}</span>
        <code className="cut">{row.type}</code>
        <span className="numbers">+{durationText(row.atMs - start)}</span>
      </Link>
      {columns.map((name) => {
        const frames = row.wires[name] ?? []
        return (
          <div key={name} className="wire-cell">
            {frames.length === 0 ? (
              <span className="wire-none" title={words.nothing} aria-label={words.nothing} role="img">
                –
              </span>
            ) : null}
            {frames.map((frame, index) => (
              // Frames of one event have no other name.
              <Frame key={index} text={frame} />
            ))}
            {row.ends.includes(name) ? <span className="wire-ends">{words.ends}</span> : null}
          </div>
        )
      })}
    </div>
  )
})

function Frame({ text }: { text: string }) {
  const words = useWords(wiresWords)
  const locale = useLocale()
  const [isWhole, setWhole] = useState(false)
  const bytes = text.replace(/\n+$/, '')
  const isCut = !isWhole && bytes.length > shownCharsMax
  return (
    <div className="wire-frame" dir="ltr">
      {withFieldNames(withVisibleControls(isCut ? `${bytes.slice(0, shownCharsMax)}…` : bytes))}
      {isCut ? (
        <button type="button" className="wire-more" onClick={() => setWhole(true)}>
          {words.showAll(bytes.length.toLocaleString(locale))}
        </button>
      ) : null}
    </div>
  )
}

/** The names of the fields of server-sent events are less important than what is in them. */
function withFieldNames(text: string): ReactNode {
  return text.split('\n').map((line, index) => {
    const name = /^(?:id|event|data|retry):/.exec(line)?.[0] ?? ''
    return (
      // The lines of a frame do not change.
      <Fragment key={index}>
        {index === 0 ? null : '\n'}
        {name === '' ? null : <span className="wire-field">{name}</span>}
        {line.slice(name.length)}
      </Fragment>
    )
  })
}
