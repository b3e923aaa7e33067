// One event: its place, its data, and the bytes that the native wire sent for it.

import { Link } from 'wouter'
import type { JsonValue } from '@polylog/client'
import { useLocale, useWords } from '../../i18n/words.ts'
import { groupOf } from '../../run/event-groups.ts'
import { type JournalRow, nativeFormat } from '../../run/journal-row.ts'
import { runWords } from '../../run/words.ts'
import { CodeBlock } from '../../ui/code-block.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { durationText } from '../../ui/countdown.tsx'
import { Icon } from '../../ui/icon.tsx'
import { JsonTree } from '../../ui/json-tree.tsx'
import { runsWords } from './words.ts'
import './event-detail.css'

export function EventDetail({ runId, row, start }: { runId: string; row: JournalRow | undefined; start: number }) {
  const words = useWords(runsWords)
  const run = useWords(runWords)
  const locale = useLocale()
  if (row === undefined) return <p className="event-detail faint">{words.noEvent}</p>
  const { seq, atMs, attempt, type, data } = row
  const sent = row.wires[nativeFormat] ?? []
  return (
    // A region that scrolls must be reachable by keyboard.
    <div className="event-detail" tabIndex={0} role="group" aria-label={words.sideEvent}>
      <div className="row row-wrap">
        <span className="row" data-group={groupOf(row)}>
          <span className="event-dot" />
          <code className="event-detail-type">{type}</code>
        </span>
        <span className="grow" />
        <span className="faint numbers">
          seq {seq.toLocaleString(locale)} · +{durationText(atMs - start)}
          {attempt > 1 ? ` · ${run.attempt(attempt)}` : ''}
        </span>
      </div>
      <p className="faint numbers">{new Date(atMs).toISOString()}</p>
      <div className="row">
        <h2 className="event-detail-head grow">{words.data}</h2>
        <CopyButton text={() => JSON.stringify(data, null, 2)} />
      </div>
      <JsonTree key={seq} value={data as unknown as JsonValue} label={words.data} />
      <div className="row">
        <h2 className="event-detail-head grow">{words.sent}</h2>
        <Link className="event-detail-link" href={`/wires/${encodeURIComponent(runId)}?seq=${seq}`}>
          {words.allWires}
          <Icon name="right" size={12} />
        </Link>
      </div>
      {sent.length === 0 ? (
        <p className="faint">{words.sentNothing}</p>
      ) : (
        <CodeBlock key={`sent ${seq}`} code={sent.join('').trimEnd()} label="text/event-stream" />
      )}
    </div>
  )
}
