// The kind of a run that answers in a conversation. It uses the instructions of the agent or
// of its model configuration, accepts any text as the answer unless the request has an
// output schema, and its questions have no reply timeout.

import { AppError } from '../errors/app-error.ts'
import { isValueDeeperThan } from '../kit/json-depth.ts'
import type { OutputRule } from './output-check.ts'
import type { RunKind } from './run-kind.ts'

/** Recursive code walks the answer: the JSON writer, and clients. */
const depthMax = 64

export const chatKind: RunKind = {
  name: 'chat',
  systemPrompt: (spec) => spec.systemPrompt,
  isAudience: (audience) => audience === 'chats',
  outputRule: ({ outputSchema }) => (outputSchema === undefined ? undefined : ruleOf(outputSchema)),
  computedAnswer: () => undefined,
  replyTimeoutMs: () => undefined,
  uploadExpired: () => new AppError('internal_error', 'A chat run never waits for an upload.'),
  changesAtEnd: () => ({}),
}

function ruleOf(schema: OutputRule['schema']): OutputRule {
  return {
    schema,
    mayAsk: false,
    check: (value) => (isValueDeeperThan(value, depthMax) ? [`it is nested more than ${depthMax} levels deep`] : []),
    invalid: (errors, repaired) =>
      new AppError(
        'output_validation_failed',
        `The model’s answer does not fit output.schema${repaired ? ', also after it was asked once more' : ''}: ${errors[0]}. Try again, or use another model.`,
        { details: { errors: [...errors] } },
      ),
  }
}
