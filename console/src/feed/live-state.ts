// What is going on, for the whole console: runs that have not ended and decisions that wait. Read once, then kept up to
// date by the feed.

import type { FeedFrame, Interaction, RunInfo } from '@polylog/client'
import { type Api, currentApi, useApi } from '../api/api.ts'
import { createStore } from '../app/store.ts'
import { useEffect } from 'react'
import { useFeed } from './feed.ts'

export type LiveState = {
  /** By id. */
  runs: ReadonlyMap<string, RunInfo>
  /** What waits for a person, by id: confirmations and questions. */
  decisions: ReadonlyMap<string, Interaction>
  /** There were more decisions than one answer of the server has. */
  hasMoreDecisions: boolean
  /** The lists were read at least once. */
  isRead: boolean
}

/** More are counted as this many. */
const rowsMax = 200
/** With fewer left, the next ones are read. */
const rowsLow = 50
const nothing: LiveState = { runs: new Map(), decisions: new Map(), hasMoreDecisions: false, isRead: false }

export const liveState = createStore<LiveState>(nothing)

/** The frame of the console calls it once. */
export function useLiveState(): LiveState {
  const api = useApi()
  useFeed((frame) => {
    if (needsLists(frame)) void load(api)
    else liveState.set((old) => applied(old, frame))
    const { decisions, hasMoreDecisions } = liveState.get()
    if (isCut(frame) || (hasMoreDecisions && decisions.size < rowsLow)) void load(api)
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

/** The feed leaves out long arguments; the list has them. */
function isCut(frame: FeedFrame): boolean {
  return (
    frame.type === 'interaction.opened' && frame.interaction.payload === null && frame.interaction.toolName !== null
  )
}

/** A call that another client has to execute is nothing that a person can decide. */
function isDecision({ kind }: Interaction): boolean {
  return kind !== 'client_tool'
}

async function load(api: Api): Promise<void> {
  try {
    const [runs, interactions] = await Promise.all([
      api.json<RunInfo[]>('/v1/agent/runs', { query: { status: 'queued,running,awaiting_input', limit: rowsMax } }),
      api.json<Interaction[]>('/v1/interactions', { query: { status: 'pending', limit: rowsMax } }),
    ])
    // Dropped: the user signed out while the request was under way.
    if (api !== currentApi()) return
    liveState.set({
      runs: new Map(runs.map((run) => [run.runId, run])),
      decisions: new Map(interactions.filter(isDecision).map((interaction) => [interaction.id, interaction])),
      hasMoreDecisions: interactions.length === rowsMax,
      isRead: true,
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
      const { interaction } = frame
      const decisions = new Map(state.decisions)
      if (frame.type === 'interaction.decided') decisions.delete(interaction.id)
      else if (isDecision(interaction)) decisions.set(interaction.id, interaction)
      return { ...state, decisions }
    }
    default:
      return state
  }
}
