// A run that answers in a conversation: the agent's instructions (or those of its model
// configuration), any text as the answer, and questions that wait for a person.

import { AppError } from '../errors/app-error.ts'
import type { RunKind } from './run-kind.ts'

export const chatKind: RunKind = {
  name: 'chat',
  systemPrompt: (spec) => spec.systemPrompt,
  isAudience: () => false,
  outputRule: () => undefined,
  replyTimeoutMs: () => undefined,
  uploadExpired: () => new AppError('internal_error', 'A chat run never waits for an upload.'),
  changesAtEnd: () => ({}),
}
