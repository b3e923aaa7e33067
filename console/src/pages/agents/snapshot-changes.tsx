// What changed since the snapshot before this one, about the same thing.

import type { JsonValue } from '@polylog/client'
import { useLoaded } from '../../api/use-loaded.ts'
import { useWords } from '../../i18n/words.ts'
import { Badge, type Tone } from '../../ui/badge.tsx'
import { JsonTree } from '../../ui/json-tree.tsx'
import { Card } from '../../ui/page.tsx'
import { Problem } from '../../ui/problem.tsx'
import { diffTexts } from '../../ui/text-diff.ts'
import { TextDiffSide } from '../../ui/text-diff-view.tsx'
import { TimeAgo } from '../../ui/time-ago.tsx'
import { withVisibleControls } from '../../ui/visible-text.ts'
import type { SnapshotChange, SnapshotDiff } from './snapshots.ts'
import { agentsWords } from './words.ts'

const tones: Record<SnapshotChange['change'], Tone> = { added: 'good', removed: 'bad', changed: 'warn' }

export function SnapshotChanges({ snapshotId }: { snapshotId: string }) {
  const words = useWords(agentsWords)
  const { data, error, reload } = useLoaded(`diff ${snapshotId}`, ({ json }, signal) =>
    json<SnapshotDiff>(`/v1/agent/snapshots/${encodeURIComponent(snapshotId)}/diff`, { signal }),
  )
  if (error?.code === 'snapshots_not_comparable') {
    return (
      <Card title={words.changes}>
        <p className="soft bench-note">{words.firstSnapshot}</p>
      </Card>
    )
  }
  if (error !== undefined) return <Problem error={error} onRetry={reload} />
  if (data === undefined) return null
  return (
    <Card
      title={
        <span className="row row-wrap">
          {words.changes}
          <Badge>{data.changes.length}</Badge>
          <span className="faint bench-note">
            {words.since} <TimeAgo at={data.before.generatedAtMs} />
          </span>
        </span>
      }
    >
      {data.changes.length === 0 ? <p className="soft bench-note">{words.noChanges}</p> : null}
      <ul className="changes">
        {data.changes.map((change) => (
          <li key={`${change.path} ${change.change}`}>
            <p className="row">
              <Badge tone={tones[change.change]}>{words[change.change]}</Badge>
              <code className="changes-path">{withVisibleControls(change.path)}</code>
            </p>
            <Values {...change} />
          </li>
        ))}
      </ul>
      {data.truncated ? <p className="faint bench-note">{words.truncated}</p> : null}
    </Card>
  )
}

function Values({ change, before, after }: SnapshotChange) {
  const words = useWords(agentsWords)
  if (typeof before === 'string' && typeof after === 'string') {
    const parts = diffTexts(before, after)
    return (
      <div className="changes-values">
        <TextDiffSide parts={parts} side="left" />
        <TextDiffSide parts={parts} side="right" />
      </div>
    )
  }
  return (
    <div className="changes-values">
      {change === 'added' ? null : <Value label={words.before} value={before} />}
      {change === 'removed' ? null : <Value label={words.after} value={after} />}
    </div>
  )
}

function Value({ label, value }: { label: string; value: JsonValue | undefined }) {
  return <JsonTree value={value} label={label} />
}
