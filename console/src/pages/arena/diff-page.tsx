// The difference of any two runs, aligned: tool calls are matched, texts compared word by word, time and tokens side by
// side. The address names the runs.

import { type FormEvent, useState } from 'react'
import { useLocation, useSearchParams } from 'wouter'
import type { RunInfo } from '@polylog/client'
import { useCurl } from '../../api/curl.ts'
import { useLoaded } from '../../api/use-loaded.ts'
import { useWords } from '../../i18n/words.ts'
import { Button } from '../../ui/button.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { TextField } from '../../ui/field.tsx'
import { Page } from '../../ui/page.tsx'
import { ArenaTabs } from './arena-tabs.tsx'
import { RunDiffView } from './run-diff-view.tsx'
import { arenaWords } from './words.ts'
import './diff-page.css'

/** How many recent runs the fields offer. */
const offeredRuns = 50

export function DiffPage() {
  const words = useWords(arenaWords)
  const [search] = useSearchParams()
  const [left, right] = [search.get('left') ?? '', search.get('right') ?? '']
  return (
    <Page title={words.arena} bar={<ArenaTabs current="/arena/diff" />}>
      <RunChoice key={`${left} ${right}`} left={left} right={right} />
      {left === '' || right === '' ? (
        <NothingChosen />
      ) : (
        <RunDiffView key={`${left} ${right}`} left={left} right={right} />
      )}
    </Page>
  )
}

function NothingChosen() {
  const words = useWords(arenaWords)
  const call = useCurl('/v1/agent/runs?limit=2')
  return (
    <EmptyState icon="arena" title={words.chooseRuns} call={call}>
      {words.chooseRunsHelp}
    </EmptyState>
  )
}

function RunChoice({ left, right }: { left: string; right: string }) {
  const words = useWords(arenaWords)
  const [, navigate] = useLocation()
  const [chosen, setChosen] = useState({ left, right })
  const { data } = useLoaded('recent runs', ({ json }, signal) =>
    json<RunInfo[]>('/v1/agent/runs', { query: { limit: offeredRuns }, signal }),
  )
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const query = new URLSearchParams({ left: chosen.left.trim(), right: chosen.right.trim() })
    navigate(`/arena/diff?${String(query)}`)
  }
  const field = (side: 'left' | 'right', label: string) => (
    <div className="grow">
      <TextField
        label={label}
        list="recent-runs"
        spellCheck={false}
        autoComplete="off"
        placeholder={words.runId}
        maxLength={200}
        value={chosen[side]}
        onChange={(event) => setChosen((old) => ({ ...old, [side]: event.target.value }))}
      />
    </div>
  )
  return (
    <form className="diff-choice" onSubmit={submit}>
      <datalist id="recent-runs">
        {data?.map(({ runId, agentId, createdAt }) => (
          <option key={runId} value={runId}>{`${agentId} · ${createdAt}`}</option>
        ))}
      </datalist>
      {field('left', words.leftRun)}
      {field('right', words.rightRun)}
      <Button
        type="submit"
        look="primary"
        disabled={
          chosen.left.trim() === '' ||
          chosen.right.trim() === '' ||
          (chosen.left.trim() === left && chosen.right.trim() === right)
        }
      >
        {words.compareRuns}
      </Button>
    </form>
  )
}
