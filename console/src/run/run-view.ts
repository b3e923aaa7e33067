// What the console knows of one run: the fold of the client, and the times that it leaves out. It is the only reducer of
// the console. Live, after a reload and in a replay it gets the same frames and gives the same view.

import { emptyRun, reduceRun, type RunFrame, type RunState } from '@polylog/client'

export type ToolTimes = {
  /** When the call was first seen, when its tool began to work, and when it ended; epoch milliseconds. */
  seenAt: number
  startedAt?: number
  endedAt?: number
}

export type RunView = {
  readonly state: RunState
  readonly tools: Readonly<Record<string, ToolTimes>>
  /** How many frames were applied. */
  readonly frames: number
  readonly endedAt?: number
}

export const emptyView: RunView = { state: emptyRun, tools: {}, frames: 0 }

export function reduceView(view: RunView, frame: RunFrame): RunView {
  const state = reduceRun(view.state, frame)
  // A frame that the state already has.
  if (state === view.state) return view
  const next = { ...view, state, frames: view.frames + 1 }
  if (frame.event === 'tool.state')
    return { ...next, tools: { ...view.tools, [frame.data.toolId]: timesOf(view, frame.data) } }
  if (frame.event === 'agent.end') return { ...next, endedAt: frame.data.finishedAtMs }
  return next
}

function timesOf(
  { tools }: RunView,
  { toolId, status, atMs }: { toolId: string; status: string; atMs: number },
): ToolTimes {
  const known = tools[toolId] ?? { seenAt: atMs }
  if (status === 'running') return { ...known, startedAt: atMs }
  if (status === 'queued' || status === 'awaiting_input') return known
  return { ...known, endedAt: atMs }
}

export function isEnded({ state }: RunView): boolean {
  return state.status === 'succeeded' || state.status === 'failed' || state.status === 'cancelled'
}

/** The text of all messages of the answer, for copying. */
export function answerText({ state }: RunView): string {
  return state.blocks
    .flatMap((block) =>
      block.type === 'text' && block.role === 'assistant' && block.state !== 'superseded' ? [block.text] : [],
    )
    .join('\n\n')
}
