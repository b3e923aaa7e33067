// The state of a run that a user interface draws, computed from its frames. Pure: `reduceRun` returns a new state and
// keeps every part that did not change, and a frame that the state already has changes nothing. So frames may be cut,
// repeated and reduced again in any way; the result is that of the whole run.

import { isAfter } from './cursor.ts'
import type { ErrorValue, UsageTotals } from './journal.ts'
import type { JsonValue } from './json.ts'
import type { NativeFrameData, NativeToolStatus } from './native.ts'
import type { RunFrame } from './run.ts'

/** A message. `superseded`: a restarted model said something else instead. `abandoned`: the run ended before its end. */
export type TextBlock = {
  type: 'text'
  id: string
  role: NativeFrameData['agent.message']['role']
  text: string
  state: 'streaming' | 'done' | 'superseded' | 'abandoned'
  /** The pages and documents that it is based on. */
  sources: readonly Omit<NativeFrameData['agent.source'], 'messageId'>[]
}

export type ReasoningBlock = { type: 'reasoning'; id: string; text: string }

/**
 * A tool call. While its status is `awaiting_input`, `confirm` or `reject` its `confirmationId`; if its `source` is
 * `client`, execute it and send its `toolResults`. `message` is the newest sentence for people.
 */
export type ToolBlock = Omit<NativeFrameData['tool.state'], 'toolId' | 'at' | 'atMs' | 'previousStatus'> & {
  type: 'tool'
  id: string
}

/** A question that belongs to no tool call; `reply` with its id. */
export type QuestionBlock = Omit<NativeFrameData['input.required'], 'interactionId' | 'at'> & {
  type: 'question'
  id: string
  /** False once it was answered or closed. */
  open: boolean
  resolution?: NativeFrameData['input.resolved']['resolution']
  /** The answer. */
  response?: JsonValue
}

export type Block = TextBlock | ReasoningBlock | ToolBlock | QuestionBlock

export type RunState = {
  /** The id of the newest frame; `0` before the first. */
  readonly cursor: string
  /** The fields of `agent.start`; null before it. */
  readonly start: NativeFrameData['agent.start'] | null
  readonly status: NativeToolStatus
  /** What the user asked. */
  readonly input: string
  /** What to draw, in order. */
  readonly blocks: readonly Block[]
  /** The merged patches of each layer. */
  readonly context: Readonly<Record<string, Readonly<Record<string, JsonValue>>>>
  /** The final answer of a run that succeeded; `data` is its value if the request had an output schema. */
  readonly output?: string
  readonly data?: unknown
  readonly usage?: UsageTotals
  readonly error?: ErrorValue
  /** Why the run was cancelled. */
  readonly reason?: string
}

export const emptyRun: RunState = { cursor: '0', start: null, status: 'queued', input: '', blocks: [], context: {} }

/** The state after these frames. */
export function foldRun(frames: Iterable<RunFrame>, state: RunState = emptyRun): RunState {
  for (const frame of frames) state = reduceRun(state, frame)
  return state
}

/** The state after one more frame. */
export function reduceRun(state: RunState, frame: RunFrame): RunState {
  return isAfter(frame.id, state.cursor) ? { ...apply(state, frame), cursor: frame.id } : state
}

/** The tool calls and questions that wait for a person. */
export function openRequests({ blocks }: Pick<RunState, 'blocks'>): (ToolBlock | QuestionBlock)[] {
  return blocks.filter(
    (block): block is ToolBlock | QuestionBlock =>
      (block.type === 'tool' && block.status === 'awaiting_input') || (block.type === 'question' && block.open),
  )
}

function apply(state: RunState, frame: RunFrame): RunState {
  switch (frame.event) {
    case 'agent.start':
      return { ...state, start: frame.data, input: frame.data.input }
    case 'agent.delta': {
      const { id, delta } = frame.data
      return withText(state, id, ({ text }) => ({ text: text + delta }))
    }
    case 'agent.source': {
      const { messageId, ...source } = frame.data
      return withText(state, messageId, ({ sources }) => ({ sources: [...sources, source] }))
    }
    case 'agent.reasoning': {
      const { id, delta } = frame.data
      return withBlock(state, 'reasoning', id, (block) => ({
        type: 'reasoning',
        id,
        text: (block?.text ?? '') + delta,
      }))
    }
    case 'agent.message': {
      const { id, role, content, metadata } = frame.data
      return withText(state, id, () => ({ role, text: content, state: metadata.state ?? 'done' }))
    }
    case 'tool.state': {
      const { toolId, at: _at, atMs: _atMs, previousStatus: _previous, ...fields } = frame.data
      return withBlock(state, 'tool', toolId, (block) => ({
        ...(block?.message === undefined ? {} : { message: block.message }),
        ...fields,
        type: 'tool',
        id: toolId,
      }))
    }
    case 'input.required': {
      const { interactionId: id, at: _at, ...fields } = frame.data
      return withBlock(state, 'question', id, () => ({ ...fields, type: 'question', id, open: true }))
    }
    case 'input.resolved': {
      const { interactionId: id, resolution, response } = frame.data
      return withBlock(state, 'question', id, (block) =>
        block === undefined
          ? undefined
          : { ...block, open: false, resolution, ...(response === undefined ? {} : { response }) },
      )
    }
    case 'context.patch': {
      const { layer, patch } = frame.data
      return { ...state, context: { ...state.context, [layer]: { ...state.context[layer], ...patch } } }
    }
    case 'error':
      return { ...state, error: frame.data }
    case 'agent.end': {
      const { runId: _run, finishedAt: _at, finishedAtMs: _atMs, ...fields } = frame.data
      return { ...state, ...fields, blocks: state.blocks.map(closed) }
    }
    default:
      // A frame of a newer server.
      return state
  }
}

function withText(state: RunState, id: string, change: (block: TextBlock) => Partial<TextBlock>): RunState {
  return withBlock(state, 'text', id, (found) => {
    const block = found ?? { type: 'text', id, role: 'assistant', text: '', state: 'streaming', sources: [] }
    return { ...block, ...change(block) }
  })
}

/** Replaces the block with this type and id, or adds it at the end; the run is at work, or waits for a person. */
function withBlock<Type extends Block['type']>(
  state: RunState,
  type: Type,
  id: string,
  change: (block: Extract<Block, { type: Type }> | undefined) => Block | undefined,
): RunState {
  const at = state.blocks.findLastIndex((block) => block.type === type && block.id === id)
  const next = change(state.blocks[at] as Extract<Block, { type: Type }> | undefined)
  if (next === undefined) return state
  const blocks = at < 0 ? [...state.blocks, next] : state.blocks.with(at, next)
  return { ...state, blocks, status: openRequests({ blocks }).length > 0 ? 'awaiting_input' : 'running' }
}

/** What is still open when the run ends. */
function closed(block: Block): Block {
  if (block.type === 'text' && block.state === 'streaming') return { ...block, state: 'abandoned' }
  return block.type === 'question' && block.open ? { ...block, open: false } : block
}
