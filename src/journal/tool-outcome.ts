// The text of a finished tool call, as the model reads it and as the journal measures it. Pure.

import type { EventData, JsonValue } from './event.ts'
import { fileLabel } from './message-parts.ts'

/** The name of the tool that reads on in outputs that were cut. */
export const readToolOutput = 'read_tool_output'

type Done = EventData<'tool.done'>

export function outputText(output: JsonValue | undefined): string {
  if (output === undefined) return ''
  return typeof output === 'string' ? output : JSON.stringify(output)
}

/** The result of a call as the model reads it. Only the outcome `succeeded` may tell the model that the call took effect. */
export function resultForModel(done: Done): string {
  const whole = outputText(done.output)
  const output = done.truncated ? `${whole}\n[cut: ${cutNote(done, whole.length)}]` : whole
  switch (done.outcome) {
    case 'succeeded':
      return withLabels(output, done.files)
    case 'failed':
    case 'threw':
      return `The tool failed: ${done.error?.message ?? done.summary}${output === '' ? '' : `\n${output}`}`
    case 'denied':
      return `The user did not allow this call, so it was not run. ${done.error?.message ?? done.summary}`
    case 'cancelled':
      return 'The call was cancelled before it finished.'
    case 'unknown':
      return `The outcome of this call is unknown: it may or may not have happened. ${done.error?.message ?? ''}`.trim()
  }
}

function cutNote({ fullLength, outputRef }: Done, shown: number): string {
  return outputRef === undefined ? `${fullLength} characters in all` : readOnNote(outputRef, shown, fullLength)
}

/** Tells the model how to get the rest of an output that was cut. */
export function readOnNote(outputId: string, shown: number, fullLength: number): string {
  return `${shown} of ${fullLength} characters; to read on, use ${readToolOutput} with outputId "${outputId}" and offset ${shown}`
}

/** Names the files that the text does not name already. */
function withLabels(text: string, files: Done['files'] = []): string {
  const missing = files.map(fileLabel).filter((label) => !text.includes(label))
  return [text, ...missing].filter((line) => line !== '').join('\n')
}
