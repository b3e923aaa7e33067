// Two runs in rows: what belongs together is side by side, and what only one of them has stands alone.

import { useDeferredValue, useMemo, useState } from 'react'
import type { JsonValue, ToolBlock } from '@polylog/client'
import { useLoaded } from '../../api/use-loaded.ts'
import { useWords } from '../../i18n/words.ts'
import { isEnded, type RunView } from '../../run/run-view.ts'
import { useRun } from '../../run/use-run.ts'
import { runWords } from '../../run/words.ts'
import { Badge } from '../../ui/badge.tsx'
import { durationText } from '../../ui/countdown.tsx'
import { Checkbox } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { JsonTree } from '../../ui/json-tree.tsx'
import { Card } from '../../ui/page.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { TextDiffSide } from '../../ui/text-diff-view.tsx'
import { withVisibleOverrides } from '../../ui/visible-text.ts'
import { FactsTable } from './facts-table.tsx'
import { type DiffRow, runDiff } from './run-diff.ts'
import { runFacts } from './run-facts.ts'
import { arenaWords } from './words.ts'
import './run-diff-view.css'

/** Rows that are drawn at first. */
const rowsMax = 60

export function RunDiffView({ left, right }: { left: string; right: string }) {
  const words = useWords(arenaWords)
  const a = useRun(left)
  const b = useRun(right)
  const { data } = useLoaded(
    `runs ${left} ${right} ${String(isEnded(a.view))} ${String(isEnded(b.view))}`,
    async ({ client }, signal) => {
      const [first, second] = await Promise.all([client.getRun(left, { signal }), client.getRun(right, { signal })])
      return { left: first, right: second }
    },
  )
  const [onlyChanges, setOnlyChanges] = useState(false)
  const [shown, setShown] = useState(rowsMax)
  // Live runs change with every frame of the screen; the comparison follows when there is time.
  const [aBlocks, bBlocks] = [useDeferredValue(a.view.state.blocks), useDeferredValue(b.view.state.blocks)]
  const diff = useMemo(() => runDiff(aBlocks, bBlocks), [aBlocks, bBlocks])
  const failed = [a, b].flatMap(({ error, connection }) => (connection === 'failed' && error !== null ? [error] : []))
  if (failed[0] !== undefined) return <Problem error={failed[0]} />
  if (a.view.frames === 0 || b.view.frames === 0) return <Spinner center />
  const rows = onlyChanges ? diff.rows.filter(({ isSame }) => !isSame) : diff.rows
  const { tools } = diff
  return (
    <div className="run-diff">
      <Card title={words.facts}>
        <FactsTable
          left={{ name: words.left, facts: runFacts(a.view, data?.left) }}
          right={{ name: words.right, facts: runFacts(b.view, data?.right) }}
        />
      </Card>
      <section className="run-diff-rows" aria-label={words.aligned}>
        <header className="row row-wrap">
          <h2>{words.aligned}</h2>
          <Badge>{words.sameText(Math.round(diff.similarity * 100))}</Badge>
          {tools.matched + tools.onlyLeft + tools.onlyRight === 0 ? null : (
            <Badge>{words.matchedTools(tools.matched, tools.sameInput)}</Badge>
          )}
          {tools.onlyLeft === 0 ? null : <Badge tone="bad">{words.onlyLeftTools(tools.onlyLeft)}</Badge>}
          {tools.onlyRight === 0 ? null : <Badge tone="good">{words.onlyRightTools(tools.onlyRight)}</Badge>}
          <span className="grow" />
          <Checkbox
            label={words.onlyChanges}
            checked={onlyChanges}
            onChange={(event) => setOnlyChanges(event.target.checked)}
          />
        </header>
        {onlyChanges && a.view.state.input === b.view.state.input ? null : <Questions a={a.view} b={b.view} />}
        {rows.length === 0 ? <p className="faint run-diff-none">{words.noChanges}</p> : null}
        {rows.slice(0, shown).map((row, index) => (
          <Row key={index} row={row} views={[a.view, b.view]} />
        ))}
        {rows.length > shown ? (
          <button type="button" className="json-toggle" onClick={() => setShown(shown + rowsMax)}>
            {words.moreRows(rows.length - shown)}
          </button>
        ) : null}
        {diff.isCut ? <p className="faint">{words.cutDiff}</p> : null}
      </section>
    </div>
  )
}

/** The questions, once if they are the same. */
function Questions({ a, b }: { a: RunView; b: RunView }) {
  const words = useWords(arenaWords)
  const [left, right] = [a.state.input, b.state.input]
  const cells = left === right ? [left] : [left, right]
  return (
    <div className="run-diff-row" data-kind="question">
      <RowHead name={words.question} isSame={left === right} />
      <div className="run-diff-cells" data-one={cells.length === 1}>
        {cells.map((text, index) => (
          <div key={index} className="run-diff-cell" dir="auto">
            {withVisibleOverrides(text)}
          </div>
        ))}
      </div>
    </div>
  )
}

function RowHead({ name, isSame, note }: { name: string; isSame: boolean; note?: string | undefined }) {
  const words = useWords(arenaWords)
  return (
    <div className="run-diff-row-head">
      <span className="run-diff-name">{name}</span>
      <span className={isSame ? 'faint' : 'run-diff-changed'}>{isSame ? words.same : (note ?? words.different)}</span>
    </div>
  )
}

function Row({ row, views }: { row: DiffRow; views: readonly [RunView, RunView] }) {
  const words = useWords(arenaWords)
  const states = useWords(runWords)
  const only = row.left === null ? words.onlyRight : row.right === null ? words.onlyLeft : undefined
  const missing = <div className="run-diff-cell run-diff-missing faint">{words.nothingHere}</div>
  if (row.kind === 'tool') {
    const note =
      only ??
      (row.sameInput
        ? words.otherOutput
        : row.sameOutput
          ? words.otherInput
          : `${words.otherInput}, ${words.otherOutput.toLowerCase()}`)
    return (
      <div className="run-diff-row" data-kind="tool">
        <RowHead name={`${states.tool} ${(row.left ?? row.right)?.name ?? ''}`} isSame={row.isSame} note={note} />
        <div className="run-diff-cells">
          {row.left === null ? missing : <ToolCell block={row.left} view={views[0]} />}
          {row.right === null ? missing : <ToolCell block={row.right} view={views[1]} />}
        </div>
      </div>
    )
  }
  return (
    <div className="run-diff-row" data-kind={row.kind}>
      <RowHead name={row.kind === 'text' ? words.message : states.reasoning} isSame={row.isSame} note={only} />
      <div className="run-diff-cells" data-one={row.isSame}>
        {row.left === null ? (
          missing
        ) : (
          <div className="run-diff-cell">
            <TextDiffSide parts={row.parts} side="left" />
          </div>
        )}
        {row.isSame ? null : row.right === null ? (
          missing
        ) : (
          <div className="run-diff-cell">
            <TextDiffSide parts={row.parts} side="right" />
          </div>
        )}
      </div>
    </div>
  )
}

function ToolCell({ block, view }: { block: ToolBlock; view: RunView }) {
  const words = useWords(runWords)
  const times = view.tools[block.id]
  const began = times?.startedAt ?? times?.seenAt
  // Both come from JSON.
  const output = (block.error ?? block.output) as JsonValue | undefined
  return (
    <div className="run-diff-cell">
      <p className="row run-diff-tool-head">
        <Icon name="tool" />
        <span className="grow cut">{words[block.status]}</span>
        {began === undefined || times?.endedAt === undefined ? null : (
          <span className="faint numbers">{durationText(times.endedAt - began)}</span>
        )}
      </p>
      <h3>{words.input}</h3>
      <JsonTree value={block.input} label={words.input} />
      {output === undefined ? null : (
        <>
          <h3>{words.output}</h3>
          <JsonTree value={output} label={words.output} />
        </>
      )}
    </div>
  )
}
