// Folds what the gateway says about one run into the parts of a turn. The same text or call
// may be reported several times: by events that are sent twice, by cumulative text, by the
// chat history after a gap or a reconnect. The fold emits each only once, in order.
//
// A turn is a sequence of messages with calls between them. The gateway trims its messages, so
// white space at their ends is dropped here, and the history gives the same text as the events.

import type { JsonValue, Usage } from '../../journal/event.ts'
import { isTokenCount } from '../../journal/usage.ts'
import { defined } from '../../kit/defined.ts'
import type { FinishReason } from '../../models/model.ts'
import type { TurnPart } from '../engine.ts'
import { type Fields, fieldsOf, textOf, wholeOf } from './gateway-frames.ts'
import type { HistoryItem } from './remote-history.ts'
import { resultText, boundedJson, toolOutput } from './tool-values.ts'

type Message = { item: string | undefined; text: string; isFromHistory?: boolean }

export type TurnEnd = { ok: true; reason: FinishReason } | { ok: false; message: string }

/** Between two messages without a call between them, as the gateway itself joins them. */
const separator = '\n\n'

export class RemoteTurn {
  /** How the turn ended, once the gateway has said so. */
  end: TurnEnd | undefined
  /** The final text that the gateway reported with the end. */
  finalText = ''
  /** The lifecycle of the run is over; the last event follows. */
  isEnding = false
  /** The gateway's id of the run. */
  runId: string
  private lastSeq = -1
  private readonly messages: Message[] = []
  /** When the gateway stored the last message that was read from the history. */
  private storedAt: number | undefined
  /** Whether the last message may still grow. */
  private isOpen = false
  /** Whether text was the last part, so that another message needs a separator. */
  private afterText = false
  private reasoning = ''
  private readonly called = new Set<string>()
  private readonly done = new Set<string>()
  private readonly asked = new Set<string>()
  private inputTokens: number | undefined
  private outputTokens: number | undefined

  constructor(runId: string) {
    this.runId = runId
  }

  /** A gateway that was started again numbers the events of a run from the beginning. */
  restartNumbering(): void {
    this.lastSeq = -1
  }

  /** The events of other runs are ignored. */
  event(event: string, payload: Fields, hasFrameNumber: boolean): { parts: TurnPart[]; gap: boolean } {
    const nothing = { parts: [], gap: false }
    if (event === 'exec.approval.requested') return { parts: this.approval(payload), gap: false }
    if (payload['runId'] !== this.runId) return nothing
    if (event === 'chat') {
      this.chat(payload)
      return nothing
    }
    if (event !== 'agent' && event !== 'session.tool') return nothing
    const seq = wholeOf(payload['seq'])
    if (seq === undefined || seq <= this.lastSeq) return nothing
    // The gateway merges text events and skips their numbers. Lost frames show in the numbers of the connection, if it has any.
    const gap = !hasFrameNumber && this.lastSeq >= 0 && seq > this.lastSeq + 1
    this.lastSeq = seq
    const at = wholeOf(payload['ts'])
    return { parts: this.stream(textOf(payload['stream']), fieldsOf(payload['data']), at), gap }
  }

  /** What the chat history says about this run, from its beginning. */
  history(items: readonly HistoryItem[]): TurnPart[] {
    const parts: TurnPart[] = []
    let position = 0
    for (const item of items) {
      if (item.type === 'text') {
        position = this.historyText(item.text, position, parts)
        this.storedAt = item.at
      }
      if (item.type === 'call') parts.push(...this.call(item.callId, item.name, item.input))
      if (item.type === 'result') parts.push(...this.result(item.callId, item.text, item.isError))
    }
    return parts
  }

  /** The final text, if the events did not have all of it. `isKnown` is false if the history has to be read. */
  finish(): { parts: TurnPart[]; isKnown: boolean } {
    const final = this.finalText.trim()
    const all = this.messages.map(({ text }) => text).join(separator)
    const last = this.messages.at(-1)?.text ?? ''
    if (final === '' || all.endsWith(final)) return { parts: [], isKnown: true }
    if (all === '') return { parts: this.text(undefined, final), isKnown: true }
    if (final.startsWith(all)) return { parts: this.rest(final.slice(all.length)), isKnown: true }
    if (final.startsWith(last)) return { parts: this.rest(final.slice(last.length)), isKnown: true }
    return { parts: [], isKnown: false }
  }

  finishPart(reason: FinishReason): TurnPart {
    return { type: 'finish', reason, ...defined({ usage: this.usage() }) }
  }

  /** What the turn has used, if it failed. */
  spentParts(): TurnPart[] {
    const usage = this.usage()
    return usage === undefined ? [] : [{ type: 'spent', usage }]
  }

  private usage(): Usage | undefined {
    const usage = defined({ inputTokens: this.inputTokens, outputTokens: this.outputTokens })
    return Object.keys(usage).length === 0 ? undefined : usage
  }

  hasOpenCalls(): boolean {
    return this.called.size > this.done.size
  }

  approval(payload: Fields): TurnPart[] {
    const request = fieldsOf(payload['request'])
    const key = textOf(payload['id'])
    if (request['runId'] !== this.runId || key === '' || this.asked.has(key)) return []
    this.asked.add(key)
    const callId = textOf(request['toolCallId']) || key
    const command = textOf(request['command'])
    const folder = textOf(request['cwd'])
    const warning = textOf(request['warningText'])
    // The approval itself reports a call that was not reported yet.
    this.call(callId, 'exec', {})
    return [
      {
        type: 'approval',
        key,
        callId,
        name: 'exec',
        input: { command },
        prompt: [`Run the command: ${command}`, folder && `In the folder: ${folder}`, warning]
          .filter(Boolean)
          .join('\n'),
        ...defined({ expiresAt: wholeOf(payload['expiresAtMs']) }),
      },
    ]
  }

  private stream(stream: string, data: Fields, at: number | undefined): TurnPart[] {
    switch (stream) {
      case 'assistant': {
        const item = textOf(data['itemId']) || undefined
        const text = textOf(data['text'])
        return this.isLate(item, text.trim(), at) ? [] : this.text(item, text)
      }
      case 'thinking':
        return this.thinking(textOf(data['text']))
      case 'tool':
        return this.tool(data)
      case 'usage':
        if (isTokenCount(data['inputTokens'])) this.inputTokens = data['inputTokens']
        if (isTokenCount(data['outputTokens'])) this.outputTokens = data['outputTokens']
        return []
      case 'lifecycle':
        if (data['phase'] === 'end' || data['phase'] === 'error') this.isEnding = true
        return []
      default:
        return []
    }
  }

  private chat(payload: Fields): void {
    const { state } = payload
    const message = fieldsOf(payload['message'])
    if (state === 'final') {
      this.finalText = resultText(message['content'])
      this.end ??= { ok: true, reason: payload['stopReason'] === 'length' ? 'length' : 'stop' }
    } else if (state === 'error') {
      const reason = textOf(payload['errorMessage']).slice(0, 500)
      this.end ??= { ok: false, message: reason === '' ? 'The gateway reported an error.' : reason }
    } else if (state === 'aborted') {
      this.end ??= { ok: false, message: 'The turn was stopped on the gateway.' }
    }
  }

  /** Whether an event is about a message that the history had already, because it was read while the event was on its way. */
  private isLate(item: string | undefined, text: string, at: number | undefined): boolean {
    if (this.isOpen) return false
    if (item !== undefined && this.messages.some((message) => message.item === item && message.text.startsWith(text)))
      return true
    const last = this.messages.at(-1)
    if (last?.isFromHistory !== true) return false
    if (at !== undefined && this.storedAt !== undefined && at !== this.storedAt) return at < this.storedAt
    return last.text.startsWith(text)
  }

  /** `whole` is all text of the message so far. */
  private text(item: string | undefined, whole: string): TurnPart[] {
    const text = whole.trim()
    if (text === '') return []
    const last = this.isOpen ? this.messages.at(-1) : undefined
    if (last !== undefined && (last.item === item || last.item === undefined || item === undefined)) {
      if (text.startsWith(last.text)) {
        const rest = text.slice(last.text.length)
        last.text = text
        last.item ??= item
        return rest === '' ? [] : [{ type: 'text', text: rest }]
      }
      // An older state of the same message.
      if (last.text.startsWith(text)) return []
      // The message was replaced. What was shown cannot be taken back, so the new text follows it.
    }
    const parts: TurnPart[] = [{ type: 'text', text: this.afterText ? separator + text : text }]
    this.messages.push({ item, text })
    this.isOpen = true
    this.afterText = true
    return parts
  }

  /** More text of the turn, of which the beginning is known. */
  private rest(rest: string): TurnPart[] {
    const last = this.messages.at(-1)
    if (this.isOpen && last !== undefined && !rest.startsWith(separator)) return this.text(last.item, last.text + rest)
    this.isOpen = false
    return this.text(undefined, rest)
  }

  /** Returns the position of the next message that this fold has emitted. */
  private historyText(whole: string, position: number, parts: TurnPart[]): number {
    const text = whole.trim()
    if (text === '') return position
    const known = this.messages.findIndex((message, index) => index >= position && text.startsWith(message.text))
    if (known === -1) {
      // Text that was missed before other text cannot be inserted any more.
      if (position < this.messages.length) return position
      this.isOpen = false
      parts.push(...this.text(undefined, text))
      this.closeFromHistory()
      return this.messages.length
    }
    if (known === this.messages.length - 1 && this.isOpen) {
      parts.push(...this.text(undefined, text))
      this.closeFromHistory()
    }
    return known + 1
  }

  private closeFromHistory(): void {
    this.isOpen = false
    const last = this.messages.at(-1)
    if (last !== undefined) last.isFromHistory = true
  }

  private thinking(whole: string): TurnPart[] {
    if (!whole.startsWith(this.reasoning)) this.reasoning = ''
    const text = whole.slice(this.reasoning.length)
    this.reasoning = whole
    return text === '' ? [] : [{ type: 'reasoning', text }]
  }

  private tool(data: Fields): TurnPart[] {
    const callId = textOf(data['toolCallId'])
    if (callId === '') return []
    const name = textOf(data['name']) || 'tool'
    switch (data['phase']) {
      case 'start':
        return this.call(callId, name, data['args'])
      case 'update': {
        const message = resultText(fieldsOf(data['partialResult'])['content'])
        return message === '' ? [] : [...this.call(callId, name, {}), { type: 'tool-progress', callId, message }]
      }
      case 'result':
      case 'end':
        return [
          ...this.call(callId, name, {}),
          ...this.result(callId, resultText(fieldsOf(data['result'])['content']), data['isError'] === true),
        ]
      default:
        return []
    }
  }

  private call(callId: string, name: string, input: unknown): TurnPart[] {
    if (this.called.has(callId)) return []
    this.called.add(callId)
    this.isOpen = false
    this.afterText = false
    return [{ type: 'tool-called', callId, name, input: boundedJson(input) }]
  }

  private result(callId: string, text: string, isError: boolean): TurnPart[] {
    if (!this.called.has(callId) || this.done.has(callId)) return []
    this.done.add(callId)
    if (isError) {
      const message = text.slice(0, 500) || 'The tool failed.'
      return [{ type: 'tool-done', callId, outcome: 'failed', error: { code: 'tool_failed', message } }]
    }
    const output: JsonValue = toolOutput(text)
    return [{ type: 'tool-done', callId, outcome: 'succeeded', output }]
  }
}
