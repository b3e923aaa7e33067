// One result: its source (run or cache) and age, its fields, the raw JSON, and the request that gives it.

import { useState } from 'react'
import { Link } from 'wouter'
import type { JsonValue } from '@polylog/client'
import { pages } from '../../app/pages.ts'
import { useWords } from '../../i18n/words.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { CodeBlock } from '../../ui/code-block.tsx'
import { durationText } from '../../ui/countdown.tsx'
import { Icon } from '../../ui/icon.tsx'
import { JsonTree } from '../../ui/json-tree.tsx'
import { Card } from '../../ui/page.tsx'
import { StructuredValue } from '../../ui/structured-value.tsx'
import { TimeAgo } from '../../ui/time-ago.tsx'
import { agentsWords } from './words.ts'

type ResultCardProps = {
  result: { runId: string; snapshotId: string | null; generatedAtMs: number; data: Record<string, JsonValue> }
  expiresAtMs: number | null
  /** Absent if the result was opened from the list. */
  cached?: boolean
  tookMs?: number
  call: string
}

type ResultView = 'structured' | 'tree' | 'json' | 'curl'

export function ResultCard({ result, expiresAtMs, cached, tookMs, call }: ResultCardProps) {
  const words = useWords(agentsWords)
  const [view, setView] = useState<ResultView>('structured')
  const views: [ResultView, string][] = [
    ['structured', words.structured],
    ['tree', words.tree],
    ['json', words.rawJson],
    ['curl', 'curl'],
  ]
  const hasRunPage = pages.some(({ path }) => path === '/runs')
  return (
    <Card
      title={
        <span className="row row-wrap">
          {words.result}
          {cached === undefined ? (
            <Badge>{words.storedResult}</Badge>
          ) : (
            <Badge tone={cached ? 'info' : 'good'} dot>
              {cached ? words.hit : words.miss}
            </Badge>
          )}
        </span>
      }
      actions={
        hasRunPage ? (
          <Link className="button button-quiet button-small" href={`/runs/${encodeURIComponent(result.runId)}`}>
            <Icon name="run" />
            {words.openRun}
          </Link>
        ) : undefined
      }
    >
      <dl className="result-facts">
        <div>
          <dt>{words.generated}</dt>
          <dd>
            <TimeAgo at={result.generatedAtMs} />
          </dd>
        </div>
        {tookMs === undefined ? null : (
          <div>
            <dt>{words.took}</dt>
            <dd className="numbers">{durationText(tookMs)}</dd>
          </div>
        )}
        <div>
          <dt>{words.snapshot}</dt>
          <dd>{result.snapshotId === null ? words.notStored : <code>{result.snapshotId}</code>}</dd>
        </div>
        {expiresAtMs === null ? null : (
          <div>
            <dt>{words.expires}</dt>
            <dd>
              <TimeAgo at={expiresAtMs} />
            </dd>
          </div>
        )}
      </dl>
      <div className="result-views" role="group" aria-label={words.viewAs}>
        {views.map(([name, label]) => (
          <Button key={name} small look="quiet" aria-pressed={view === name} onClick={() => setView(name)}>
            {label}
          </Button>
        ))}
      </div>
      {view === 'structured' ? (
        <StructuredValue value={result.data} />
      ) : view === 'tree' ? (
        <JsonTree value={result.data} label={words.result} />
      ) : view === 'json' ? (
        <CodeBlock code={JSON.stringify(result.data, null, 2)} language="json" />
      ) : (
        <CodeBlock code={call} label="curl" />
      )}
    </Card>
  )
}
