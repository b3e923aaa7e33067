// Compares a snapshot of the remote agent's messages with what was shown, and returns only
// what is new. Snapshots repeat the whole conversation, so only the messages after the last
// one of the user belong to this turn.

import type { ModelMessage } from '../../models/model.ts'
import { isRecord } from '../../kit/is-record.ts'

export type NewContent =
  | { type: 'text'; messageId: string; text: string }
  | { type: 'call'; callId: string; name: string; arguments: string }
  | { type: 'result'; callId: string; content: unknown; error?: string }

/** Text beyond this is not compared, and a snapshot then adds no text. */
const keptCharsMax = 256 * 1024
const messagesMax = 10_000
/** Only the newest messages of a snapshot are compared. */
const comparedMax = 200

export class MessageReconciler {
  private readonly shownTexts = new Map<string, string>()
  private keptChars = 0
  private isComplete = true

  constructor(messages: readonly ModelMessage[]) {
    const asked = messages.findLastIndex(({ role }) => role === 'user')
    for (const [index, message] of messages.slice(asked + 1).entries()) {
      if (message.role === 'assistant') this.shown(`earlier ${index}`, message.content)
    }
  }

  shown(messageId: string, text: string): void {
    if (!this.isComplete) return
    this.keptChars += text.length
    if (this.keptChars > keptCharsMax || this.shownTexts.size >= messagesMax) {
      this.isComplete = false
      this.shownTexts.clear()
      return
    }
    this.shownTexts.set(messageId, (this.shownTexts.get(messageId) ?? '') + text)
  }

  /** Throws nothing: what is malformed is skipped. */
  reconcile(list: unknown): NewContent[] {
    if (!Array.isArray(list) || list.length > messagesMax) return []
    const messages = list.filter(isRecord)
    const asked = messages.findLastIndex(({ role }) => role === 'user')
    return messages
      .slice(asked + 1)
      .slice(-comparedMax)
      .flatMap((message) => this.newIn(message))
  }

  private newIn(message: Record<string, unknown>): NewContent[] {
    const { id, role, content, toolCalls, toolCallId, error } = message
    if (role === 'tool' && typeof toolCallId === 'string') {
      return [{ type: 'result', callId: toolCallId, content, ...(typeof error === 'string' ? { error } : {}) }]
    }
    // Those of a subagent are not part of the answer.
    if (role !== 'assistant' || typeof message['subagentRunId'] === 'string') return []
    const found: NewContent[] = []
    const text = typeof content === 'string' && typeof id === 'string' ? this.newText(id, content) : ''
    if (text !== '') found.push({ type: 'text', messageId: String(id), text })
    for (const call of Array.isArray(toolCalls) ? toolCalls.filter(isRecord) : []) {
      const { id: callId, function: called } = call
      if (typeof callId !== 'string' || !isRecord(called) || typeof called['name'] !== 'string') continue
      const given = called['arguments']
      found.push({ type: 'call', callId, name: called['name'], arguments: typeof given === 'string' ? given : '' })
    }
    return found
  }

  private newText(id: string, content: string): string {
    if (!this.isComplete) return ''
    const shown = this.shownTexts.get(id)
    if (shown !== undefined) return content.startsWith(shown) ? content.slice(shown.length) : ''
    // The same message may have another id in the snapshot, and messages without a gap were shown as one.
    const wanted = content.trim()
    for (const text of this.shownTexts.values()) if (text.includes(wanted)) return ''
    return content
  }
}
