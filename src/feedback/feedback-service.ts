// Feedback on answers: one reaction per user, which is removed by sending it again, and
// comments.

import type { ConversationService } from '../conversations/conversation-service.ts'
import { AppError } from '../errors/app-error.ts'
import type { Caller } from '../kit/caller.ts'
import type { Clock } from '../kit/clock.ts'
import type { ConversationRow } from '../stores/conversation-store.ts'
import type { FeedbackRow, FeedbackStore, FeedbackSummary, Reaction } from '../stores/feedback-store.ts'
import type { MessageRow } from '../stores/message-store.ts'

export type FeedbackDependencies = {
  store: FeedbackStore
  conversations: Pick<ConversationService, 'message'>
  clock: Clock
}

/** An answer of the caller, as `FeedbackService.answer` gives it. */
export type JudgedAnswer = MessageRow & { owner: string }

export type Reasons = Pick<FeedbackRow, 'text' | 'incorrect' | 'unhelpful' | 'inappropriate'>

export class FeedbackService {
  private readonly dependencies: FeedbackDependencies

  constructor(dependencies: FeedbackDependencies) {
    this.dependencies = dependencies
  }

  /** The answer that a caller wants to judge. Throws `message_not_found`, and `invalid_request` if it is not an answer. */
  async answer(caller: Caller, messageId: string): Promise<JudgedAnswer> {
    const message = await this.dependencies.conversations.message(caller, messageId)
    if (message.role !== 'assistant') throw new AppError('invalid_request', 'message_id: only answers can be judged.')
    return message
  }

  /** Sets the reaction; sending the same one again removes it. Returns the reaction that is now stored. */
  async react(answer: JudgedAnswer, kind: Reaction, reasons: Reasons): Promise<Reaction | null> {
    const result = await this.dependencies.store.react({ ...this.about(answer), ...reasons, kind })
    if (result === undefined) throw messageGone()
    return result.reaction
  }

  async comment(answer: JudgedAnswer, text: string): Promise<void> {
    const row = { ...this.about(answer), text, incorrect: false, unhelpful: false, inappropriate: false }
    if (!(await this.dependencies.store.addComment({ ...row, kind: 'comment' }))) throw messageGone()
  }

  /** The owner's feedback on the messages of a conversation, by message id. */
  async inConversation({ id, owner }: ConversationRow): Promise<ReadonlyMap<string, FeedbackSummary>> {
    return await this.dependencies.store.feedbackIn(id, owner)
  }

  private about({ id, owner }: JudgedAnswer): Pick<FeedbackRow, 'messageId' | 'owner' | 'at'> {
    return { messageId: id, owner, at: this.dependencies.clock.now() }
  }
}

function messageGone(): AppError {
  return new AppError('message_not_found', 'The message is gone.')
}
