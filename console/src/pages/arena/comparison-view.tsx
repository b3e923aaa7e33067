// One comparison: the question, two answers side by side, and the vote. Until the vote nothing here tells which
// configuration gave which answer: the server does not say, and the page asks for nothing else.

import { useEffect, useRef, useState } from 'react'
import type { Comparison } from '@polylog/client'
import { useApi } from '../../api/api.ts'
import { userQuery } from '../../api/named-user.ts'
import { problemOf } from '../../api/use-loaded.ts'
import { useWords } from '../../i18n/words.ts'
import { isEnded } from '../../run/run-view.ts'
import { announce } from '../../ui/announcements.ts'
import { Button } from '../../ui/button.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { showProblem } from '../../ui/toast.tsx'
import { withVisibleOverrides } from '../../ui/visible-text.ts'
import { Arm } from './arm.tsx'
import { Reveal } from './reveal.tsx'
import { useArm } from './use-arm.ts'
import { type Preference, useComparison } from './use-comparison.ts'
import { VoteBar } from './vote-bar.tsx'
import { arenaWords } from './words.ts'
import './comparison-view.css'

export function ComparisonView({ id }: { id: string }) {
  const words = useWords(arenaWords)
  const { comparison, error, reload, vote, isVoting } = useComparison(id)
  if (comparison === undefined) {
    return (
      <div className="comparison">
        {error === undefined ? <Spinner center /> : <Problem error={error} onRetry={reload} />}
      </div>
    )
  }
  const { trace_a, trace_b } = comparison
  if (trace_a === null || trace_b === null) {
    return (
      <div className="comparison">
        <p className="soft">{words.withoutRuns}</p>
      </div>
    )
  }
  return (
    <Arms
      comparison={comparison}
      runs={{ a: trace_a, b: trace_b }}
      isVoting={isVoting}
      onVote={vote}
      onEnded={reload}
      key={`${trace_a} ${trace_b}`}
    />
  )
}

type ArmsProps = {
  comparison: Comparison
  runs: { a: string; b: string }
  isVoting: boolean
  onVote(preference: Preference): Promise<void>
  onEnded(): void
}

function Arms({ comparison, runs, isVoting, onVote, onEnded }: ArmsProps) {
  const words = useWords(arenaWords)
  const api = useApi()
  const { state, preference } = comparison
  const isRevealed = comparison.side_a_config !== null
  const a = useArm(runs.a, isRevealed)
  const b = useArm(runs.b, isRevealed)
  const [isRevising, setRevising] = useState(false)
  const [isStopping, setStopping] = useState(false)
  const areEnded = isEnded(a.view) && isEnded(b.view)

  useEffect(() => {
    if (areEnded && state === 'pending') onEnded()
  }, [areEnded, state])
  const isReady = state === 'ready' && preference === null
  useEffect(() => {
    if (isReady) announce(words.readyToVote)
  }, [isReady])
  const hadVote = useRef(preference !== null)
  useEffect(() => {
    if (preference !== null && !hadVote.current) {
      announce(words.revealed(comparison.side_a_config ?? '', comparison.side_b_config ?? ''))
    }
    hadVote.current = preference !== null
  }, [preference])

  const stop = async () => {
    setStopping(true)
    try {
      const body = { conversation_id: comparison.conversation_id }
      await api.json('/api/cancel_stream', { method: 'POST', query: userQuery(), body })
      onEnded()
    } catch (failure) {
      showProblem(words.stopFailed, problemOf(failure))
    } finally {
      setStopping(false)
    }
  }
  const question = a.view.state.input || b.view.state.input
  return (
    <div className="comparison">
      <header className="comparison-head">
        <div className="grow">
          <h2 className="visually-hidden">{words.question}</h2>
          <p className="comparison-question" dir="auto">
            {withVisibleOverrides(question)}
          </p>
        </div>
        {state === 'pending' ? (
          <Button small icon="stop" disabled={isStopping} onClick={() => void stop()}>
            {words.stop}
          </Button>
        ) : null}
      </header>
      <div className="arms">
        <Arm side="a" runId={runs.a} run={a} comparison={comparison} />
        <Arm side="b" runId={runs.b} run={b} comparison={comparison} />
      </div>
      {state === 'failed' ? (
        <p className="comparison-failed soft" role="status">
          {words.noVote}
        </p>
      ) : preference === null || isRevising ? (
        <VoteBar
          canVote={state === 'ready' && !isVoting}
          current={preference}
          onVote={(chosen) => void onVote(chosen).then(() => setRevising(false))}
          onCancel={isRevising ? () => setRevising(false) : undefined}
        />
      ) : null}
      {isRevealed && !isRevising ? (
        <Reveal
          comparison={comparison}
          runs={runs}
          views={{ a: a.view, b: b.view }}
          onRevise={() => setRevising(true)}
        />
      ) : null}
    </div>
  )
}
