// Turns the events of one remote AG-UI run into the parts of a turn. It is lenient about the
// order of events, because agents of many frameworks differ, and strict about sizes.
//
//   TEXT_MESSAGE_* ─▶ text     REASONING_*, THINKING_*, text of subagents ─▶ reasoning
//   TOOL_CALL_START, _ARGS, _END ─▶ tool-called     TOOL_CALL_RESULT ─▶ tool-done
//   STATE_* ─▶ context     RUN_FINISHED, RUN_ERROR ─▶ `end`     all others ─▶ nothing

import type { TurnPart } from '../engine.ts'
import { AppError } from '../../errors/app-error.ts'
import type { JsonValue, Usage } from '../../journal/event.ts'
import { defined } from '../../kit/defined.ts'
import { isRecord } from '../../kit/is-record.ts'
import type { ModelMessage } from '../../models/model.ts'
import type { RemoteEvent } from './event-decoder.ts'
import { outputIn, parseArguments, textIn, remoteUsage } from './event-values.ts'
import { MessageReconciler } from './message-reconciler.ts'
import { keyOfCall, keyOfResult, keyOfText, type MessageIds } from './message-ids.ts'
import type { RemoteState } from './remote-state.ts'

export type RemoteEnd = (
  | { type: 'finished' }
  | { type: 'interrupted'; outcome: Record<string, unknown> }
  | { type: 'failed'; message: string; code: string | undefined }
) & { usage?: Usage }

type Call = { name: string; arguments: string; called: boolean; done: boolean; messageId?: string | undefined }

const callsMax = 512
const idCharsMax = 200
/** Of all calls of one remote run together. */
const argumentsCharsMax = 8 * 1024 * 1024
/** The id of a longer message is not kept. */
const comparedCharsMax = 1024 * 1024

export class EventTranslator {
  end: RemoteEnd | undefined
  private readonly state: RemoteState
  private readonly calls = new Map<string, Call>()
  private readonly reconciler: MessageReconciler
  private parts: TurnPart[] = []
  /** Complete calls that are not reported yet: if the run stops for consent to a call, the call has not begun. */
  private held: Extract<TurnPart, { type: 'tool-called' }>[] = []
  private argumentChars = 0
  /** The message and the call that chunks without an id belong to. */
  private openMessage: string | undefined
  private openChunkCall: string | undefined
  private openReasoning = ''
  /** The messages whose text was shown last, so that two of them are not joined without a gap. */
  private lastText: string | undefined
  private lastReasoning: string | undefined
  private readonly ignoredMessages = new Set<string>()
  private readonly ids: MessageIds = {}
  /** The text since the last call, which becomes one message of the journal, and the remote id of its beginning. */
  private stepText = ''
  private stepMessageId: string | undefined

  /** `messages` are those of the request: what this turn has already shown is not taken from a snapshot again. */
  constructor(state: RemoteState, messages: readonly ModelMessage[], openCalls: readonly string[]) {
    this.state = state
    this.reconciler = new MessageReconciler(messages)
    for (const { callId, name, input } of callsIn(messages)) {
      this.calls.set(callId, {
        name,
        arguments: JSON.stringify(input),
        called: true,
        done: !openCalls.includes(callId),
      })
    }
  }

  /** The parts of these events. Events after the end are ignored. */
  translate(events: readonly RemoteEvent[]): TurnPart[] {
    for (const event of events) {
      if (this.end !== undefined) break
      this.event(event)
    }
    const patch = this.state.takeChanges(this.end !== undefined)
    if (patch !== undefined) this.parts.push({ type: 'context', layer: 'session', patch })
    return this.parts.splice(0)
  }

  get holdsCalls(): boolean {
    return this.held.length > 0
  }

  /** Reports the calls that were held back, except those that wait for consent. */
  release(waits: (callId: string) => boolean = () => false): TurnPart[] {
    return this.held.splice(0).filter(({ callId }) => !waits(callId))
  }

  /** The ids of the messages so far. */
  messageIds(): MessageIds {
    const { stepText, stepMessageId } = this
    const isKnown = stepMessageId !== undefined && stepText.length <= comparedCharsMax
    return isKnown ? { ...this.ids, [keyOfText(stepText)]: stepMessageId } : this.ids
  }

  /** The calls that the remote agent made in this run and that have no result yet. */
  openCalls(): string[] {
    return [...this.calls].filter(([, call]) => call.called && !call.done).map(([id]) => id)
  }

  findCall(callId: string): { name: string; input: JsonValue } | undefined {
    const call = this.calls.get(callId)
    return call === undefined ? undefined : { name: call.name, input: parseArguments(call.arguments) }
  }

  private event(event: RemoteEvent): void {
    const { type } = event
    if (this.openChunkCall !== undefined && type !== 'TOOL_CALL_CHUNK' && type !== 'RAW') this.closeChunkCall()
    switch (type) {
      case 'TEXT_MESSAGE_START':
      case 'TEXT_MESSAGE_CHUNK':
        return this.beginText(event)
      case 'TEXT_MESSAGE_CONTENT':
        return this.text(event, textIn(event['messageId']) ?? this.openMessage ?? '')
      case 'REASONING_MESSAGE_START':
      case 'REASONING_START':
        this.openReasoning = textIn(event['messageId']) ?? ''
        return
      case 'REASONING_MESSAGE_CONTENT':
      case 'REASONING_MESSAGE_CHUNK':
        return this.reasoning(event, textIn(event['messageId']) ?? this.openReasoning)
      case 'THINKING_TEXT_MESSAGE_START':
        this.openReasoning += '.'
        return
      case 'THINKING_TEXT_MESSAGE_CONTENT':
        return this.reasoning(event, this.openReasoning)
      case 'TOOL_CALL_START':
        return this.beginCall(textIn(event['toolCallId']), textIn(event['toolCallName']), event['parentMessageId'])
      case 'TOOL_CALL_ARGS':
        return this.addArguments(textIn(event['toolCallId']), event['delta'])
      case 'TOOL_CALL_END':
        return this.endCall(textIn(event['toolCallId']))
      case 'TOOL_CALL_CHUNK':
        return this.callChunk(event)
      case 'TOOL_CALL_RESULT':
        return this.result(textIn(event['toolCallId']), event['content'], undefined, textIn(event['messageId']))
      case 'STATE_SNAPSHOT':
        return this.state.replace(event['snapshot'])
      case 'STATE_DELTA':
        return this.state.patch(event['delta'])
      case 'MESSAGES_SNAPSHOT':
        return this.messages(event['messages'])
      case 'RUN_FINISHED':
        return this.finish(event)
      case 'RUN_ERROR':
        this.end = {
          type: 'failed',
          message: textIn(event['message']) ?? 'It gave no reason.',
          code: textIn(event['code']),
          ...usageIn(event),
        }
        return
      default:
        // RUN_STARTED, ends of messages, steps, activities, subagents, CUSTOM, RAW and unknown types show nothing.
        return
    }
  }

  private beginText(event: RemoteEvent): void {
    const id = textIn(event['messageId'])
    if (id !== undefined && id !== this.openMessage) {
      this.openMessage = id
      const role = event['role']
      if (role !== undefined && role !== null && role !== 'assistant') this.ignoredMessages.add(id)
      if (this.ignoredMessages.size > 10_000) throw tooMany('messages')
    }
    if (event['delta'] !== undefined) this.text(event, id ?? this.openMessage ?? '')
  }

  private text(event: RemoteEvent, messageId: string): void {
    const delta = textIn(event['delta'])
    if (delta === undefined || delta === '' || this.ignoredMessages.has(messageId)) return
    // A subagent works for the agent; the agent's own message is the answer.
    if (isOfSubagent(event)) return this.reasoning(event, messageId)
    this.showText(messageId, delta)
  }

  private showText(messageId: string, text: string): void {
    this.parts.push(...this.release())
    if (this.lastText !== undefined && this.lastText !== messageId) {
      this.parts.push({ type: 'text', text: '\n\n' })
      this.stepText += '\n\n'
    }
    this.lastText = messageId
    this.stepMessageId ??= messageId
    if (this.stepText.length <= comparedCharsMax) this.stepText += text
    this.reconciler.shown(messageId, text)
    this.parts.push({ type: 'text', text })
  }

  private reasoning(event: RemoteEvent, messageId: string): void {
    const delta = textIn(event['delta'])
    if (delta === undefined || delta === '') return
    this.parts.push(...this.release())
    if (this.lastReasoning !== undefined && this.lastReasoning !== messageId) {
      this.parts.push({ type: 'reasoning', text: '\n\n' })
    }
    this.lastReasoning = messageId
    this.parts.push({ type: 'reasoning', text: delta })
  }

  private beginCall(callId: string | undefined, name: string | undefined, messageId?: unknown): void {
    if (callId === undefined || this.calls.has(callId)) return
    if (callId === '' || callId.length > idCharsMax || name === undefined || name === '' || name.length > idCharsMax) {
      throw new AppError('engine_failed', 'The remote agent reported a call with a bad id or name.')
    }
    if (this.calls.size >= callsMax) throw tooMany('calls')
    this.calls.set(callId, { name, arguments: '', called: false, done: false, messageId: textIn(messageId) })
  }

  private addArguments(callId: string | undefined, delta: unknown): void {
    const call = callId === undefined ? undefined : this.calls.get(callId)
    if (call === undefined || call.called || typeof delta !== 'string') return
    this.argumentChars += delta.length
    if (this.argumentChars > argumentsCharsMax) {
      throw new AppError('engine_failed', 'The arguments of the calls of the remote agent are longer than 8 MiB.')
    }
    call.arguments += delta
  }

  private endCall(callId: string | undefined): void {
    const call = callId === undefined ? undefined : this.calls.get(callId)
    if (callId === undefined || call === undefined || call.called) return
    call.called = true
    this.held.push({ type: 'tool-called', callId, name: call.name, input: parseArguments(call.arguments) })
    const messageId = call.messageId ?? this.stepMessageId
    if (messageId !== undefined) this.ids[keyOfCall(callId)] = messageId
    this.stepText = ''
    this.stepMessageId = undefined
    // Text after a call is a new message of its own.
    this.lastText = undefined
    this.lastReasoning = undefined
  }

  private callChunk(event: RemoteEvent): void {
    const callId = textIn(event['toolCallId']) ?? this.openChunkCall
    if (this.openChunkCall !== callId) this.closeChunkCall()
    this.beginCall(callId, textIn(event['toolCallName']), event['parentMessageId'])
    this.openChunkCall = callId
    this.addArguments(callId, event['delta'])
  }

  private closeChunkCall(): void {
    this.endCall(this.openChunkCall)
    this.openChunkCall = undefined
  }

  private result(callId: string | undefined, content: unknown, error?: string, messageId?: string): void {
    const call = callId === undefined ? undefined : this.calls.get(callId)
    if (callId === undefined || call === undefined || call.done) return
    this.endCall(callId)
    call.done = true
    if (messageId !== undefined) this.ids[keyOfResult(callId)] = messageId
    this.parts.push(...this.release())
    const output = outputIn(content)
    this.parts.push(
      error === undefined
        ? { type: 'tool-done', callId, outcome: 'succeeded', output }
        : { type: 'tool-done', callId, outcome: 'failed', output, error: { code: 'tool_failed', message: error } },
    )
  }

  private messages(list: unknown): void {
    for (const item of this.reconciler.reconcile(list)) {
      switch (item.type) {
        case 'text':
          this.showText(item.messageId, item.text)
          break
        case 'call':
          this.beginCall(item.callId, item.name)
          this.addArguments(item.callId, item.arguments)
          this.endCall(item.callId)
          break
        case 'result':
          this.result(item.callId, item.content, item.error)
          break
      }
    }
  }

  private finish(event: RemoteEvent): void {
    const outcome = isRecord(event['outcome']) ? event['outcome'] : {}
    for (const callId of this.calls.keys()) this.endCall(callId)
    switch (outcome['type']) {
      case 'interrupt':
        this.end = { type: 'interrupted', outcome, ...usageIn(event) }
        return
      case 'cancelled':
        this.end = { type: 'failed', message: 'It was cancelled there.', code: 'cancelled', ...usageIn(event) }
        return
      default:
        this.end = { type: 'finished', ...usageIn(event) }
    }
  }
}

function callsIn(messages: readonly ModelMessage[]) {
  const asked = messages.findLastIndex(({ role }) => role === 'user')
  return messages.slice(asked + 1).flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : []))
}

function usageIn(event: RemoteEvent): { usage?: Usage } {
  return defined({ usage: remoteUsage(event['usage']) })
}

function tooMany(what: string): AppError {
  return new AppError('engine_failed', `The remote agent sent too many ${what} in one turn.`)
}

function isOfSubagent(event: RemoteEvent): boolean {
  return typeof event['subagentRunId'] === 'string'
}
