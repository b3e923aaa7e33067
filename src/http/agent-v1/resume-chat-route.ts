// GET /v1/agent/chat: `experimental_resume` of AI SDK 4. The hook appends `?chatId=` to the address of the chat
// even if it has a query already, so the id may be at the end of `format`.

import { z } from 'zod'
import { beginning } from '../../dialects/cursor.ts'
import { AppError } from '../../errors/app-error.ts'
import { dialectNamed, formatNames } from '../formats.ts'
import { callerOf, errorBody, idParam, type Server, type Services, userIdQuery } from '../routes.ts'
import { sendEmptyStream, streamRun } from '../stream-run.ts'
import { conversationHeader } from '../views.ts'

const appendedId = /\?chatId=(.*)$/s

export function resumeChatRoute(server: Server, services: Services): void {
  const { conversations } = services
  server.get(
    '/v1/agent/chat',
    {
      schema: {
        tags: ['Agent'],
        summary: 'Resume a chat of AI SDK 4',
        description:
          'Replays the newest open run of the chat from its beginning and follows it. The reply is empty if no run is open: this client cannot read a 204.',
        querystring: userIdQuery.extend({
          format: z.string().max(300).optional().describe(formatNames),
          chatId: idParam.optional().describe('The id of the chat: your name for the conversation.'),
        }),
        response: { 400: errorBody },
      },
    },
    async (request, reply) => {
      const { format, chatId } = request.query
      const dialect = dialectNamed(format)
      const id = idParam.safeParse(chatId ?? appendedId.exec(format ?? '')?.[1])
      if (!id.success) throw new AppError('invalid_request', 'Add ?chatId= with the id of the chat, to resume it.')
      const conversation = await conversations.find(callerOf(request, services).userId, id.data)
      const run = conversation === undefined ? undefined : (await conversations.openRuns(conversation)).at(-1)
      if (run === undefined) return await sendEmptyStream(reply, dialect.headers)
      const headers = conversationHeader(run.conversationId)
      return await streamRun(services, request, reply, { run, dialect, cursor: beginning, headers })
    },
  )
}
