// Feedback on messages: likes, dislikes and comments. It is removed together with
// its message.

export type Reaction = 'like' | 'dislike'

/** One reaction or comment. A person has at most one reaction on a message, and any number of comments. */
export type FeedbackRow = {
  messageId: string
  owner: string
  kind: Reaction | 'comment'
  text: string | null
  incorrect: boolean
  unhelpful: boolean
  inappropriate: boolean
  at: number
}

export type FeedbackSummary = { reaction: Reaction | null; comments: number }

export interface FeedbackStore {
  /**
   * The same reaction again takes it back, another one replaces it. Returns the reaction that stands afterwards, or undefined if
   * there is no such message.
   */
  react(feedback: FeedbackRow & { kind: Reaction }): Promise<{ reaction: Reaction | null } | undefined>
  /** False if there is no such message. */
  addComment(feedback: FeedbackRow & { kind: 'comment' }): Promise<boolean>
  /** All feedback of `owner` on a message, oldest first. */
  feedbackOn(messageId: string, owner: string): Promise<FeedbackRow[]>
  /** The feedback of `owner` on the messages of a conversation, by message id. Messages without feedback are left out. */
  feedbackIn(conversationId: string, owner: string): Promise<Map<string, FeedbackSummary>>
}
