// The run of one side, live. Before the vote its frames lack the model and the reasoning, so it is read again after the
// vote; until that is complete the page keeps what it has.

import { useEffect, useRef, useState } from 'react'
import { useApi } from '../../api/api.ts'
import { isEnded, type RunView } from '../../run/run-view.ts'
import type { FollowedRun } from '../../run/run-follower.ts'
import { forgetRun, useRun } from '../../run/use-run.ts'

/** What the server says instead of a model before the vote. */
const hiddenModel = 'hidden until the vote'

export function useArm(runId: string, isRevealed: boolean): FollowedRun {
  const api = useApi()
  const [round, setRound] = useState(0)
  const { view, connection, recovered, error } = useRun(runId, round)
  const complete = useRef<RunView | null>(null)
  if (isEnded(view)) complete.current = view
  const isHidden = view.state.start?.metadata.model === hiddenModel
  useEffect(() => {
    if (!isRevealed || !isHidden || !isEnded(view)) return
    forgetRun(api, runId)
    setRound((number) => number + 1)
  }, [api, runId, isRevealed, isHidden, view])
  return { view: isEnded(view) ? view : (complete.current ?? view), connection, recovered, error }
}
