// What is going on, for the whole console: runs that have not ended and decisions that wait. Read once, then kept up to
// date by the feed.

import type { Confirmation, FeedFrame, RunInfo } from '@polylog/client'
import { type Api, useApi } from '../api/api.ts'
import { createStore } from '../app/store.ts'
import { useEffect } from 'react'
import { useFeed } from './feed.ts'

export type LiveState = {
  /** By id. */
  runs: ReadonlyMap<string, RunInfo>
  /** The ids of pending decisions. */
  decisions: ReadonlySet<string>
}

/** More are counted as this many. */
const rowsMax = 200
const nothing: LiveState = { runs: new Map(), decisions: new Set() }

export const liveState = createStore<LiveState>(nothing)

/** The frame of the console calls it once. */
export function useLiveState(): LiveState {
  const api = useApi()
  useFeed((frame) => {
    if (needsLists(frame)) void load(api)
    else liveState.set((old) => applied(old, frame))
  })
  useEffect(() => {
    liveState.set(nothing)
    void load(api)
  }, [api])
  return liveState.use()
}

/** True if changes may be missing, so that lists have to be read again. */
export function needsLists(frame: FeedFrame): boolean {
  return frame.type === 'reset' || (frame.type === 'hello' && !frame.resumed)
}

export function isOpen({ status }: Pick<RunInfo, 'status'>): boolean {
  return status === 'queued' || status === 'running' || status === 'awaiting_input'
}

async function load(api: Api): Promise<void> {
  try {
    const [runs, decisions] = await Promise.all([
      api.json<RunInfo[]>('/v1/agent/runs', { query: { status: 'queued,running,awaiting_input', limit: rowsMax } }),
      api.json<Confirmation[]>('/v1/tool-confirmations', { query: { status: 'pending', limit: rowsMax } }),
    ])
    liveState.set({
      runs: new Map(runs.map((run) => [run.runId, run])),
      decisions: new Set(decisions.map(({ id }) => id)),
    })
  } catch {
    // The pages say what is wrong; the numbers in the navigation stay as they are.
  }
}

function applied(state: LiveState, frame: FeedFrame): LiveState {
  switch (frame.type) {
    case 'run.changed': {
      const runs = new Map(state.runs)
      if (isOpen(frame.run)) runs.set(frame.run.runId, frame.run)
      else runs.delete(frame.run.runId)
      return { ...state, runs }
    }
    case 'interaction.opened':
    case 'interaction.decided': {
      if (frame.interaction.kind !== 'confirmation') return state
      const decisions = new Set(state.decisions)
      if (frame.type === 'interaction.opened') decisions.add(frame.interaction.id)
      else decisions.delete(frame.interaction.id)
      return { ...state, decisions }
    }
    default:
      return state
  }
}
