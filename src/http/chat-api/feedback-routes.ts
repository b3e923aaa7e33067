// Feedback on an answer: a like or dislike, which the same request takes back, and
// comments.

import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import type { JudgedAnswer } from '../../feedback/feedback-service.ts'
import type { Reaction } from '../../stores/feedback-store.ts'
import { callerOf, type Server, type Services } from '../routes.ts'
import { clientFields, clientQuery, optionalFlag, optionalIdField, sentenceBody } from './client.ts'

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
  const { feedback } = services

  for (const kind of ['like', 'dislike'] as const) {
    server.post(
      `/api/${kind}`,
      {
        schema: {
          tags: ['Chat API'],
          summary:
            kind === 'like' ? 'Like an answer, or take the like back' : 'Dislike an answer, or take the dislike back',
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
        const { message_id, feedback_msg, incorrect, unhelpful, inappropriate } = request.body
        const state = await feedback.react(await answerOf(request, message_id), kind, {
          text: feedback_msg ?? null,
          incorrect: incorrect ?? false,
          unhelpful: unhelpful ?? false,
          inappropriate: inappropriate ?? false,
        })
        return { message: state === null ? 'Reaction removed' : sentences[state], state }
      },
    )
  }

  server.post(
    '/api/text_feedback',
    {
      schema: {
        tags: ['Chat API'],
        summary: 'Comment on an answer',
        querystring: clientQuery,
        body: z.object({ ...clientFields, message_id: optionalIdField, feedback_msg: comment }),
        response: { 200: z.object({ message: z.string() }), 400: sentenceBody, 404: sentenceBody },
      },
    },
    async (request) => {
      const { message_id, feedback_msg } = request.body
      const answer = await answerOf(request, message_id)
      if (feedback_msg == null) throw new AppError('invalid_request', 'feedback_msg missing')
      if (feedback_msg.trim() === '') throw new AppError('invalid_request', 'feedback_msg is empty')
      await feedback.comment(answer, feedback_msg)
      return { message: 'Feedback submitted' }
    },
  )

  async function answerOf(request: FastifyRequest, messageId: string | undefined): Promise<JudgedAnswer> {
    if (messageId === undefined) throw new AppError('invalid_request', 'message_id missing')
    return await feedback.answer(callerOf(request, services), messageId)
  }
}
