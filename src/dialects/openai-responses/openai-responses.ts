// The wire of `format=openai-responses`: the events of OpenAI's Responses API. README.md beside this
// file has the mapping table and the reasons.
//
// What must stay true: `sequence_number` counts the events of a response from 0 without a hole, and is
// the same in every replay. The client refuses unknown events, so there are none, and every item
// is closed before its response ends. A run that waits for its client ends one response, and what
// follows is the next one, with an id, items and token counts of its own.

import { clientToolSource } from '../../journal/client-tool.ts'
import type { EventData, JsonValue, RunEvent } from '../../journal/event.ts'
import { addUsage, noUsage, usageOfStep, type UsageTotals } from '../../journal/usage.ts'
import { defined } from '../../kit/defined.ts'
import { grown } from '../../kit/growing-text.ts'
import { withEntry } from '../../kit/shared-map.ts'
import { shownOutput, noCalls } from '../calls.ts'
import { type Dialect, endsStream, type Frame, pingTiming } from '../dialect.ts'
import { valueText } from '../interactions.ts'
import { sseFrame, sseHeaders } from '../sse-encoding.ts'
import {
  argumentText,
  requestFields,
  responseId,
  type ResponseItem,
  type ResponseObject,
  type ResponseStatus,
  responseUsage,
  serverLabel,
} from './response-object.ts'

type OpenText = {
  readonly kind: 'message' | 'reasoning'
  /** The id in the journal. */
  readonly id: string
  readonly itemId: string
  readonly index: number
  readonly text: string
  readonly annotations: readonly Record<string, unknown>[]
}

type ResponseCall = {
  readonly name: string
  readonly input: JsonValue | undefined
  readonly source: string | undefined
  /** The item of this call in the response that is open; null if it has none there. */
  readonly item: { readonly id: string; readonly index: number } | null
}

export type ResponsesState = {
  readonly runId: string
  /** In seconds. */
  readonly createdAt: number
  readonly fields: Readonly<Record<string, unknown>>
  /** How many responses of this run came before this one. */
  readonly response: number
  /** True between `response.created` and the last event of the response. */
  readonly isOpen: boolean
  readonly inProgress: boolean
  /** The next sequence number. */
  readonly next: number
  /** By their place in the output. */
  readonly items: ReadonlyMap<number, ResponseItem>
  /** Items of messages that are not part of the answer: superseded, or not fitting the schema. */
  readonly dropped: ReadonlySet<string>
  /** Over all responses of the run, so that the ids of items are unique. */
  readonly itemCount: number
  readonly open: OpenText | null
  /** The item of each message. */
  readonly messageItems: ReadonlyMap<string, string>
  readonly calls: ReadonlyMap<string, ResponseCall>
  readonly finishReason: string
  readonly usage: UsageTotals
  readonly hasSchema: boolean
  /** The last response that has ended. */
  readonly ended: ResponseObject | null
}

const noItems: ReadonlyMap<number, never> = new Map<number, never>()

const ending = { atDecision: 'parks' } as const

export const openAiResponsesDialect: Dialect<ResponsesState> = {
  name: 'openai-responses',
  headers: sseHeaders,

  open: ({ runId }) => ({
    runId,
    createdAt: 0,
    fields: {},
    response: 0,
    isOpen: false,
    inProgress: false,
    next: 0,
    items: noItems,
    dropped: new Set(),
    itemCount: 0,
    open: null,
    messageItems: new Map(),
    calls: noCalls,
    finishReason: 'stop',
    usage: noUsage,
    hasSchema: false,
    ended: null,
  }),

  step(state, event) {
    const writer = new ResponseWriter(state)
    writeEvent(writer, event)
    return { state: writer.state, frames: writer.frames }
  },

  encode: ({ name, data }, address) => sseFrame(address, name, JSON.stringify(data)),
  // Every event has its own sequence number, so each changes the state.
  encodeDelta: () => null,

  keepAlive: () => ': c\n\n',
  keepAliveTiming: pingTiming,

  ...ending,
}

function writeEvent(writer: ResponseWriter, event: RunEvent): void {
  switch (event.type) {
    case 'run.accepted':
      writer.change({
        createdAt: Math.floor(event.at / 1000),
        fields: requestFields(event.data),
        hasSchema: event.data.spec.outputSchema !== undefined,
      })
      writer.begin()
      return
    case 'run.state':
      if (endsStream(ending, event)) writer.finish('completed')
      else if (event.data.to === 'running') writer.run()
      else if (event.data.from === 'waiting_user' && event.data.to === 'queued') writer.begin()
      return
    case 'text.delta':
      writer.text('message', event.data.messageId, event.data.text)
      return
    case 'reasoning.delta':
      writer.text('reasoning', event.data.reasoningId, event.data.text)
      return
    case 'source.found':
      writer.cite(event.data)
      return
    case 'message.done': {
      const { messageId, state } = event.data
      if (writer.state.open?.id === messageId) writer.close(state === 'active' ? 'completed' : 'incomplete')
      // What a cancelled or failed run said before its end is part of its response, unless a client would parse it.
      if (state === 'superseded' || (state === 'abandoned' && writer.state.hasSchema)) writer.drop(messageId)
      return
    }
    case 'output.rejected':
      writer.drop(event.data.messageId)
      return
    case 'step.done':
      writer.change({
        finishReason: event.data.finishReason,
        usage: addUsage(writer.state.usage, usageOfStep(event.data)),
      })
      return
    case 'answer.discarded':
      writer.change({ usage: addUsage(writer.state.usage, usageOfStep(event.data)) })
      return
    case 'tool.called': {
      const { callId, name, input, source } = event.data
      writer.setCall(callId, { name, input, source, item: null })
      return
    }
    case 'tool.started':
      writer.runCall(event.data.callId, event.data.input)
      return
    case 'tool.done':
      writer.endCall(event.data)
      return
    case 'input.required':
      writer.ask(event.data)
      return
    case 'run.ended':
      writer.end(event.data)
      return

    // No event on this wire. Listed without a default, so that a new event type is a compile error here.
    case 'run.prepared':
    case 'step.started':
    case 'tool.progress':
    case 'input.resolved':
    case 'engine.handle':
    case 'context.patch':
    case 'context.cut':
    case 'context.summarised':
    case 'diagnostic':
      return
  }
}

/** The response as it is now, for a client that does not read the stream. */
export function currentResponse(state: ResponsesState): ResponseObject {
  if (!state.isOpen && state.ended !== null) return state.ended
  return responseObject(state, state.inProgress ? 'in_progress' : statusAtBegin(state))
}

/** The response that follows the last one, before it has begun. */
export function nextResponse(state: ResponsesState): ResponseObject {
  return responseObject({ ...state, items: noItems, dropped: new Set(), usage: noUsage }, 'queued')
}

function statusAtBegin({ fields }: ResponsesState): ResponseStatus {
  return fields['background'] === true ? 'queued' : 'in_progress'
}

function responseObject(
  state: ResponsesState,
  status: ResponseStatus,
  { error = null, incomplete = null }: { error?: unknown; incomplete?: string | null } = {},
): ResponseObject {
  const { runId, response, createdAt, fields, usage } = state
  const isOver = status !== 'queued' && status !== 'in_progress'
  return {
    id: responseId(runId, response),
    object: 'response',
    created_at: createdAt,
    status,
    error,
    incomplete_details: incomplete === null ? null : { reason: incomplete },
    output: outputOf(state, isOver),
    usage: isOver ? responseUsage(usage) : null,
    ...fields,
    ...(response === 0 ? {} : { previous_response_id: responseId(runId, response - 1) }),
  }
}

/** The items that belong to the answer. If it has to fit a schema, only its last text does. */
function outputOf({ items, open, dropped, hasSchema }: ResponsesState, isOver: boolean): ResponseItem[] {
  const shown = [...items].map(([index, item]) => (open?.index === index ? textItem(open, 'in_progress') : item))
  if (!isOver) return shown
  const answer = shown.findLast(({ id, type }) => type === 'message' && !dropped.has(id))
  return shown.filter((item) => !dropped.has(item.id) && (!hasSchema || item.type !== 'message' || item === answer))
}

function textItem({ kind, itemId, text, annotations }: OpenText, status: string): ResponseItem {
  if (kind === 'reasoning') return { id: itemId, type: 'reasoning', summary: [{ type: 'summary_text', text }] }
  return { id: itemId, type: 'message', status, role: 'assistant', content: [textPart(text, annotations)] }
}

function textPart(text: string, annotations: readonly unknown[] = []): Record<string, unknown> {
  return { type: 'output_text', text, annotations, logprobs: [] }
}

/** Collects the frames of one journal event. It replaces the state and never changes one that it got. */
class ResponseWriter {
  state: ResponsesState
  readonly frames: Frame[] = []

  constructor(state: ResponsesState) {
    this.state = state
  }

  change(fields: Partial<ResponsesState>): void {
    this.state = { ...this.state, ...fields }
  }

  private frame(type: string, fields: Record<string, unknown>): void {
    const { next } = this.state
    this.frames.push({ name: type, data: { type, sequence_number: next, ...fields } })
    this.change({ next: next + 1 })
  }

  begin(): void {
    if (this.state.isOpen) return
    this.change({ isOpen: true, inProgress: false, next: 0, items: noItems, dropped: new Set(), usage: noUsage })
    const status = statusAtBegin(this.state)
    this.frame('response.created', { response: responseObject(this.state, status) })
    if (status === 'queued') this.frame('response.queued', { response: responseObject(this.state, status) })
  }

  run(): void {
    this.begin()
    if (this.state.inProgress) return
    this.change({ inProgress: true })
    this.frame('response.in_progress', { response: responseObject(this.state, 'in_progress') })
  }

  /** Adds an item and returns its place. */
  private add(prefix: string, item: Record<string, unknown>, id?: string): { id: string; index: number } {
    this.run()
    const { items, itemCount, runId } = this.state
    const itemId = id ?? `${prefix}_${runId}_${itemCount}`
    const added = { ...item, id: itemId } as unknown as ResponseItem
    const index = items.size
    this.change({ items: withEntry(items, index, added), itemCount: itemCount + 1 })
    this.frame('response.output_item.added', { output_index: index, item: added })
    return { id: itemId, index }
  }

  private done(index: number, item: ResponseItem): void {
    this.change({ items: withEntry(this.state.items, index, item) })
    this.frame('response.output_item.done', { output_index: index, item })
  }

  text(kind: OpenText['kind'], id: string, text: string): void {
    if (text === '') return
    if (this.state.open?.kind !== kind || this.state.open.id !== id) this.openText(kind, id)
    const { open } = this.state
    if (open === null) return
    this.change({ open: { ...open, text: grown(open.text, text) } })
    const place = { item_id: open.itemId, output_index: open.index, delta: text }
    if (kind === 'message') this.frame('response.output_text.delta', { ...place, content_index: 0, logprobs: [] })
    else this.frame('response.reasoning_summary_text.delta', { ...place, summary_index: 0 })
  }

  private openText(kind: OpenText['kind'], id: string): void {
    this.close('completed')
    if (kind === 'message') {
      const place = this.add('msg', { type: 'message', status: 'in_progress', role: 'assistant', content: [] })
      this.change({
        open: { kind, id, itemId: place.id, index: place.index, text: '', annotations: [] },
        messageItems: withEntry(this.state.messageItems, id, place.id),
      })
      const at = { item_id: place.id, output_index: place.index, content_index: 0 }
      this.frame('response.content_part.added', { ...at, part: textPart('') })
      return
    }
    const place = this.add('rs', { type: 'reasoning', summary: [] })
    this.change({ open: { kind, id, itemId: place.id, index: place.index, text: '', annotations: [] } })
    const at = { item_id: place.id, output_index: place.index, summary_index: 0 }
    this.frame('response.reasoning_summary_part.added', { ...at, part: { type: 'summary_text', text: '' } })
  }

  /** Closes the text or the reasoning that is open. */
  close(status: 'completed' | 'incomplete'): void {
    const { open } = this.state
    if (open === null) return
    const { kind, itemId, index, text, annotations } = open
    const place = { item_id: itemId, output_index: index }
    if (kind === 'message') {
      this.frame('response.output_text.done', { ...place, content_index: 0, text, logprobs: [] })
      this.frame('response.content_part.done', { ...place, content_index: 0, part: textPart(text, annotations) })
    } else {
      this.frame('response.reasoning_summary_text.done', { ...place, summary_index: 0, text })
      const part = { type: 'summary_text', text }
      this.frame('response.reasoning_summary_part.done', { ...place, summary_index: 0, part })
    }
    this.change({ open: null })
    this.done(index, textItem(open, status))
  }

  /** This wire has citations of addresses in a text that is open. Where in the text is not known. */
  cite({ messageId, url, title }: EventData<'source.found'>): void {
    const { open } = this.state
    if (url === undefined || open?.kind !== 'message' || open.id !== messageId) return
    const annotation = { type: 'url_citation', url, title: title ?? url, start_index: 0, end_index: 0 }
    this.frame('response.output_text.annotation.added', {
      item_id: open.itemId,
      output_index: open.index,
      content_index: 0,
      annotation_index: open.annotations.length,
      annotation,
    })
    this.change({ open: { ...open, annotations: [...open.annotations, annotation] } })
  }

  drop(messageId: string): void {
    const item = this.state.messageItems.get(messageId)
    if (item !== undefined) this.change({ dropped: new Set(this.state.dropped).add(item) })
  }

  setCall(callId: string, call: ResponseCall): void {
    this.change({ calls: withEntry(this.state.calls, callId, call) })
  }

  private callOf(callId: string): ResponseCall {
    // A row of the journal that no longer fits its schema is skipped when reading.
    return this.state.calls.get(callId) ?? { name: 'unknown', input: undefined, source: undefined, item: null }
  }

  /** A remote agent may ask for consent after it has said that a call began, so its calls are shown when they are done. */
  runCall(callId: string, input: JsonValue | undefined): void {
    const call = this.callOf(callId)
    if (call.source?.startsWith('engine:') === true) this.setCall(callId, { ...call, input })
    else this.startCall(callId, input)
  }

  private startCall(callId: string, input: JsonValue | undefined): void {
    const call = this.callOf(callId)
    if (call.item !== null) return
    this.close('completed')
    const item = this.add('mcp', { ...callItem(call, input), status: 'in_progress' })
    const place = { item_id: item.id, output_index: item.index }
    this.frame('response.mcp_call.in_progress', place)
    this.frame('response.mcp_call_arguments.done', { ...place, arguments: argumentText(input) })
    this.setCall(callId, { ...call, input, item })
  }

  /** The client knows the results of its own tools. */
  endCall(event: EventData<'tool.done'>): void {
    const { callId, outcome, error, summary } = event
    if (this.callOf(callId).source === clientToolSource) return
    this.startCall(callId, this.callOf(callId).input)
    const isGood = outcome === 'succeeded'
    const output = isGood ? (valueText(shownOutput(event)) ?? '') : null
    this.closeCall(callId, isGood ? 'completed' : 'failed', output, isGood ? null : (error?.message ?? summary))
  }

  private closeCall(callId: string, status: string, output: string | null, error: string | null): void {
    const call = this.callOf(callId)
    if (call.item === null) return
    const { id, index } = call.item
    const type = status === 'completed' ? 'response.mcp_call.completed' : 'response.mcp_call.failed'
    this.frame(type, { item_id: id, output_index: index })
    this.done(index, { ...callItem(call, call.input), id, type: 'mcp_call', status, output, error })
    this.setCall(callId, { ...call, item: null })
  }

  /** A call of the client's tool, or a question, is a function call. A call that needs consent is an approval request. */
  ask(event: EventData<'input.required'>): void {
    const { interactionId, kind, callId, input, prompt, outcome, options = [], fields = [] } = event
    this.close('completed')
    const call = callId === undefined ? undefined : this.callOf(callId)
    const text = argumentText(input ?? call?.input ?? { prompt, options, fields })
    const name = call?.name ?? 'ask_user'
    if (kind === 'confirmation') {
      const server_label = serverLabel(call?.source)
      // This API has no field for the sentence, nor for a call that may have happened already. Clients ignore `polylog`.
      const polylog = { prompt, ...defined({ outcome }) }
      const request = { type: 'mcp_approval_request', server_label, name, arguments: text, polylog }
      const { index, id } = this.add('mcpr', request, interactionId)
      this.done(index, { ...request, id })
      return
    }
    const item = { type: 'function_call', call_id: interactionId, name }
    const { id, index } = this.add('fc', { ...item, arguments: '', status: 'in_progress' })
    const place = { item_id: id, output_index: index }
    this.frame('response.function_call_arguments.delta', { ...place, delta: text })
    this.frame('response.function_call_arguments.done', { ...place, name, arguments: text })
    this.done(index, { ...item, id, arguments: text, status: 'completed' })
  }

  end({ status, error }: EventData<'run.ended'>): void {
    const { finishReason } = this.state
    if (status === 'succeeded') {
      if (finishReason === 'length') this.finish('incomplete', { incomplete: 'max_output_tokens' })
      else this.finish('completed')
    } else if (status === 'canceled') this.finish('cancelled')
    else if (error?.code === 'model_content_filtered') this.finish('incomplete', { incomplete: 'content_filter' })
    else {
      const code = error?.code ?? 'internal_error'
      this.finish('failed', { error: { code, message: error?.message ?? 'The run failed.' } })
    }
  }

  /** There is no event for a cancel on this wire: the response is incomplete, and its status says why. */
  finish(status: ResponseStatus, how: { error?: unknown; incomplete?: string } = {}): void {
    this.begin()
    this.close(status === 'completed' ? 'completed' : 'incomplete')
    for (const [callId, { item }] of this.state.calls)
      if (item !== null) this.closeCall(callId, 'incomplete', null, 'The call has not finished.')
    const response = responseObject(this.state, status, how)
    this.frame(`response.${status === 'cancelled' ? 'incomplete' : status}`, { response })
    this.change({ isOpen: false, ended: response, response: this.state.response + 1 })
  }
}

function callItem({ name, source }: ResponseCall, input: JsonValue | undefined): Record<string, unknown> {
  return {
    type: 'mcp_call',
    server_label: serverLabel(source),
    name,
    arguments: argumentText(input),
    approval_request_id: null,
    output: null,
    error: null,
  }
}
