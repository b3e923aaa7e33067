// `read_tool_output`: reads on in the output of an earlier tool call that was too long to be shown
// whole. It gives nothing that the conversation does not already have.

import type { JsonValue } from '../journal/event.ts'
import { quoted, textField } from './excerpt.ts'
import type { Tool, ToolOutputs } from './tool.ts'
import { readToolOutput } from '../journal/tool-outcome.ts'
import { isRecord } from '../kit/is-record.ts'

/** In characters. A longer part would push the conversation out of the model's memory. */
const partCharsMax = 16_000
const partChars = 8_000

export function createReadToolOutput(outputs: ToolOutputs): Tool {
  return {
    name: readToolOutput,
    description:
      'Reads a part of the output of an earlier tool call that was cut because it is long. The note at the end of a cut output has its outputId.',
    effect: 'read',
    confirm: 'never',
    audience: 'large_outputs',
    inputSchema: {
      type: 'object',
      properties: {
        outputId: { type: 'string', minLength: 1, maxLength: 200, description: 'From the note of the cut output.' },
        offset: { type: 'integer', minimum: 0, description: 'The first character to read; 0 when absent.' },
        length: {
          type: 'integer',
          minimum: 1,
          maximum: partCharsMax,
          description: `How many characters to read; ${partChars} when absent.`,
        },
      },
      required: ['outputId'],
      additionalProperties: false,
    },
    timeoutMs: 30_000,
    // With room for the note.
    outputCharsMax: partCharsMax + 200,
    describe: (input) => `Read on in a long tool output from character ${numberField(input, 'offset', 0)}`,
    async run(input, context) {
      const outputId = textField(input, 'outputId')
      const text = await outputs.read(outputId, context)
      if (text === undefined) {
        const message = `There is no output ${quoted(outputId)} in this conversation, or it is no longer stored. Call its tool again.`
        return { ok: false, output: { error: message }, summary: message }
      }
      const from = Math.min(numberField(input, 'offset', 0), text.length)
      const to = Math.min(text.length, from + numberField(input, 'length', partChars))
      const summary = `Characters ${from} to ${to} of ${text.length}.`
      return { ok: true, output: `${text.slice(from, to).toWellFormed()}\n[${summary}]`, summary }
    },
  }
}

function numberField(input: JsonValue, name: string, absent: number): number {
  const value = isRecord(input) ? input[name] : undefined
  return typeof value === 'number' ? value : absent
}
