// The progress of a one-shot run in sentences, for clients that cannot read a stream of the run. Deltas are summed
// up, because a notification for each of them would cost more than the text itself. Pure.

import type { RunEvent } from '../../journal/event.ts'

/** How many characters of text make one report. */
const charsPerReport = 400

export class RunProgress {
  #chars = 0
  #reported = 0

  /** The sentence to report after this event, or undefined if it is not worth one. */
  after(event: RunEvent): string | undefined {
    switch (event.type) {
      case 'run.state':
        return event.data.to === 'queued' ? 'The run waits for its turn.' : undefined
      case 'step.started':
        return `The model is asked (step ${event.data.step}).`
      case 'text.delta':
        this.#chars += event.data.text.length
        if (this.#chars - this.#reported < charsPerReport) return undefined
        this.#reported = this.#chars
        return `The model has written ${this.#chars} characters.`
      case 'tool.called':
        return `The model uses the tool ${event.data.name}.`
      case 'context.summarised':
        return 'The older part of the conversation was summarised.'
      case 'output.rejected':
        return 'The answer does not fit; the model is asked to correct it.'
      default:
        return undefined
    }
  }
}
