// Turns the text of a model or of a remote agent into deltas. After a crash it skips what
// was already shown, and closes the shown message if the new text differs from it.

import type { NewEvent } from '../journal/event.ts'
import type { RunState } from '../journal/run-state.ts'
import { cutText, pieceCharsMax } from '../kit/cut-text.ts'
import type { Ids } from '../kit/ids.ts'
import { WholeText } from '../kit/whole-text.ts'
import { RepeatedTextFilter } from './repeated-text.ts'

export class DeltaEmitter {
  /** The message that new text belongs to. */
  messageId: string
  private readonly step: number
  private readonly ids: Ids
  private readonly shownText: string
  private readonly textFilter: RepeatedTextFilter
  private readonly reasoningFilter: RepeatedTextFilter
  private readonly wholeText = new WholeText()
  private readonly wholeReasoning = new WholeText()
  private reasoningId: string | undefined

  constructor(state: RunState, step: number, shownText: string, shownReasoning: string, ids: Ids) {
    const current = state.steps.at(-1)
    this.step = step
    this.ids = ids
    this.shownText = shownText
    this.textFilter = new RepeatedTextFilter(shownText)
    this.reasoningFilter = new RepeatedTextFilter(shownReasoning)
    this.messageId = current?.messageId ?? ids()
    this.reasoningId = current?.reasoningId
  }

  text(text: string, events: NewEvent[]): void {
    const { diverged, fresh } = this.textFilter.feed(this.wholeText.feed(text))
    if (diverged) this.supersede(events)
    this.emitText(fresh, events)
  }

  reasoning(text: string, events: NewEvent[]): void {
    const { diverged, fresh } = this.reasoningFilter.feed(this.wholeReasoning.feed(text))
    if (diverged || this.reasoningId === undefined) this.reasoningId = this.ids()
    for (const piece of cutText(fresh)) {
      events.push({ type: 'reasoning.delta', data: { reasoningId: this.reasoningId, text: piece } })
    }
  }

  end(events: NewEvent[]): void {
    const rest = this.wholeText.end()
    if (rest !== '') this.text(rest, events)
    const { diverged, fresh } = this.textFilter.end()
    if (!diverged) return
    this.supersede(events)
    this.emitText(fresh, events)
  }

  private emitText(fresh: string, events: NewEvent[]): void {
    // One chunk of the provider becomes one delta, unless it is too large for one event.
    if (fresh.length <= pieceCharsMax) {
      if (fresh !== '') events.push({ type: 'text.delta', data: { messageId: this.messageId, text: fresh } })
      return
    }
    for (const piece of cutText(fresh))
      events.push({ type: 'text.delta', data: { messageId: this.messageId, text: piece } })
  }

  private supersede(events: NewEvent[]): void {
    events.push({
      type: 'message.done',
      data: {
        messageId: this.messageId,
        role: 'assistant',
        text: this.shownText,
        step: this.step,
        state: 'superseded',
      },
    })
    this.messageId = this.ids()
  }
}
