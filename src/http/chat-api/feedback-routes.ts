// What people think of an answer: a reaction, which the same click takes back, and
// comments.

import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import type { FeedbackRow, Reaction } from '../../stores/feedback-store.ts'
import { callerOf, type Server, type Services } from '../routes.ts'
import { clientFields, clientQuery, optionalFlag, optionalIdField, ownMessage, sentenceBody } from './client.ts'

const commentChars = 20_000
const comment = z.string().max(commentChars).nullish()

const reactionBody = z.object({
  ...clientFields,
  message_id: optionalIdField,
  feedback_msg: comment,
  incorrect: optionalFlag,
  unhelpful: optionalFlag,
  inappropriate: optionalFlag,
})

const sentences: Readonly<Record<Reaction, string>> = { like: 'Liked', dislike: 'Disliked' }

export function feedbackRoutes(server: Server, services: Services): void {
  const { store, clock } = services

  for (const kind of ['like', 'dislike'] as const) {
    server.post(
      `/api/${kind}`,
      {
        schema: {
          tags: ['Chat API'],
          summary: kind === 'like' ? 'Like an answer, or take it back' : 'Dislike an answer, or take it back',
          querystring: clientQuery,
          body: reactionBody,
          response: {
            200: z.object({ message: z.string(), state: z.enum(['like', 'dislike']).nullable() }),
            400: sentenceBody,
            404: sentenceBody,
          },
        },
      },
      async (request) => {
        const row = await feedbackOf(request, request.body, kind)
        const result = await store.react({ ...row, kind })
        if (result === undefined) throw new AppError('message_not_found', 'The message is gone.')
        return {
          message: result.reaction === null ? 'Reaction removed' : sentences[result.reaction],
          state: result.reaction,
        }
      },
    )
  }

  server.post(
    '/api/text_feedback',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'Say something about an answer',
        querystring: clientQuery,
        body: z.object({ ...clientFields, message_id: optionalIdField, feedback_msg: comment }),
        response: { 200: z.object({ message: z.string() }), 400: sentenceBody, 404: sentenceBody },
      },
    },
    async (request) => {
      const { feedback_msg } = request.body
      const row = await feedbackOf(request, request.body, 'comment')
      if (feedback_msg == null) throw new AppError('invalid_request', 'feedback_msg missing')
      if (feedback_msg.trim() === '') throw new AppError('invalid_request', 'feedback_msg is empty')
      if (!(await store.addComment({ ...row, kind: 'comment' })))
        throw new AppError('message_not_found', 'The message is gone.')
      return { message: 'Feedback submitted' }
    },
  )

  async function feedbackOf(
    request: FastifyRequest,
    body: Partial<z.infer<typeof reactionBody>>,
    kind: FeedbackRow['kind'],
  ): Promise<FeedbackRow> {
    if (body.message_id === undefined) throw new AppError('invalid_request', 'message_id missing')
    const message = await ownMessage(store, callerOf(request, services), body.message_id)
    if (message.role !== 'assistant') throw new AppError('invalid_request', 'message_id: only answers can be judged.')
    return {
      messageId: message.id,
      owner: message.owner,
      kind,
      text: body.feedback_msg ?? null,
      incorrect: body.incorrect ?? false,
      unhelpful: body.unhelpful ?? false,
      inappropriate: body.inappropriate ?? false,
      at: clock.now(),
    }
  }
}
