// What a provider does by itself while it answers, for example a web search: its tool calls with
// their results, and the sources that the answer is based on, as events. These calls are never
// executed here and need no consent. The provider chooses all sizes, so each is bounded.

import { isProviderCall, openCalls, providerSourceOf, type RunState } from '../journal/run-state.ts'
import type { EventData, NewEvent } from '../journal/event.ts'
import { type Clock, elapsedMs } from '../kit/clock.ts'
import { defined } from '../kit/defined.ts'
import type { Ids } from '../kit/ids.ts'
import type { ModelPart } from '../models/model.ts'
import { type ClosedCall, closedCallEvent } from './closed-call.ts'
import { providerOf } from './provider-states.ts'
import { inlineOutputCharsMax, storeOutput } from './stored-output.ts'
import { outputText } from '../journal/tool-outcome.ts'

export type ProviderCallsContext = {
  clock: Clock
  ids: Ids
  putBlob(id: string, body: string): Promise<void>
}

type CallPart = Extract<ModelPart, { type: 'provider-call' }>
type ResultPart = Extract<ModelPart, { type: 'provider-result' }>
type SourcePart = Extract<ModelPart, { type: 'source' }>

const inputCharsMax = 64 * 1024
const summaryCharsMax = 500
/** Further sources of a step are left out. */
const sourcesMax = 256
const urlCharsMax = 8 * 1024
const titleCharsMax = 1000

const interrupted: ClosedCall = {
  outcome: 'cancelled',
  code: 'tool_cancelled',
  message: 'The answer was interrupted, and the provider is asked again.',
}

const withoutResult: ClosedCall = {
  outcome: 'unknown',
  code: 'tool_outcome_unknown',
  message: 'The provider ran this tool itself and sent no result.',
}

/** Closes the calls of a step that a crash interrupted. To be written before the step is asked again. */
export function interruptedCallEvents(state: RunState, ids: Ids): NewEvent[] {
  return openCalls(state)
    .filter(isProviderCall)
    .map(({ callId }) => closedCallEvent(callId, interrupted, ids))
}

/** The calls and sources of one step that its provider ran or named itself. */
export class ProviderCalls {
  private readonly runId: string
  private readonly step: number
  private readonly context: ProviderCallsContext
  /** The provider's id of an open call → its id in the journal, and when it was made. */
  private readonly open = new Map<string, { callId: string; startedAt: number }>()
  private readonly known: Set<string>
  private readonly takenIds: Set<string>
  private calls = 0

  constructor(state: RunState, runId: string, step: number, context: ProviderCallsContext) {
    this.runId = runId
    this.step = step
    this.context = context
    this.known = new Set((state.steps.at(-1)?.sources ?? []).map(sourceKey))
    this.takenIds = new Set(state.calls.keys())
  }

  /** How many calls there were in this answer. */
  get count(): number {
    return this.calls
  }

  call(part: CallPart, model: string, events: NewEvent[]): void {
    if (this.open.has(part.callId)) return
    const { ids, clock } = this.context
    const callId = part.callId === '' || this.takenIds.has(part.callId) ? `call_${ids()}` : part.callId
    this.takenIds.add(callId)
    this.open.set(part.callId, { callId, startedAt: clock.monotonic() })
    const input = JSON.stringify(part.input).length <= inputCharsMax ? part.input : {}
    const name = part.name === '' ? 'unnamed' : part.name
    const source = providerSourceOf(providerOf(model).name)
    events.push(
      {
        type: 'tool.called',
        data: {
          callId,
          name,
          step: this.step,
          index: this.calls,
          input,
          note: `Call ${name}`,
          effect: 'read',
          source,
        },
      },
      { type: 'tool.started', data: { callId, input, idempotencyKey: `${this.runId}:${callId}` } },
    )
    this.calls += 1
  }

  async result(part: ResultPart, events: NewEvent[]): Promise<void> {
    const { ids, clock } = this.context
    const open = this.open.get(part.callId)
    if (open === undefined) return
    this.open.delete(part.callId)
    const stored = await storeOutput(part.output, inlineOutputCharsMax, this.context)
    const message = outputText(part.output).slice(0, summaryCharsMax)
    events.push({
      type: 'tool.done',
      data: {
        callId: open.callId,
        messageId: ids(),
        outcome: part.isError ? 'failed' : 'succeeded',
        ...stored,
        summary: part.isError ? message : 'The provider ran this tool.',
        ...defined({ error: part.isError ? { code: 'tool_failed', message } : undefined }),
        durationMs: elapsedMs(clock, open.startedAt),
      },
    })
  }

  source({ url, title, mediaType }: SourcePart, messageId: string, events: NewEvent[]): void {
    if (this.known.size >= sourcesMax || (url !== undefined && url.length > urlCharsMax)) return
    const data: EventData<'source.found'> = {
      messageId,
      sourceId: this.context.ids(),
      ...defined({ url, title: title?.slice(0, titleCharsMax).toWellFormed(), mediaType: mediaType?.slice(0, 200) }),
    }
    const key = sourceKey(data)
    if (this.known.has(key)) return
    this.known.add(key)
    events.push({ type: 'source.found', data })
  }

  /** The answer is complete: calls without a result get one. */
  end(events: NewEvent[]): void {
    for (const { callId } of this.open.values()) events.push(closedCallEvent(callId, withoutResult, this.context.ids))
    this.open.clear()
  }
}

/** A page is one source of a message, under whichever title it is named again. */
function sourceKey({ messageId, url, title, mediaType }: EventData<'source.found'>): string {
  return JSON.stringify([messageId, url ?? [title, mediaType]])
}
