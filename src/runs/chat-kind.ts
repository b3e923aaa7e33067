// The kind of a run that answers in a conversation. It uses the instructions of the agent or
// of its model configuration, accepts any text as the answer, and its questions have no
// reply timeout.

import { AppError } from '../errors/app-error.ts'
import type { RunKind } from './run-kind.ts'

export const chatKind: RunKind = {
  name: 'chat',
  systemPrompt: (spec) => spec.systemPrompt,
  isAudience: (audience) => audience === 'chats',
  outputRule: () => undefined,
  computedAnswer: () => undefined,
  replyTimeoutMs: () => undefined,
  uploadExpired: () => new AppError('internal_error', 'A chat run never waits for an upload.'),
  changesAtEnd: () => ({}),
}
