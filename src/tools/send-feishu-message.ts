// `send_feishu_message`: sends a text message through Feishu's open platform. The message
// reaches a person, so the tool is `unsafe` and always needs confirmation.
//
// A message is posted again only if Feishu refused the first request because of an invalid
// token. After a timeout or a server error it is unknown whether the message arrived: the
// tool throws with `details.outcome` "unknown" and does not retry. Feishu itself drops a
// message with a repeated `uuid`.

import { createHash } from 'node:crypto'
import { AppError } from '../errors/app-error.ts'
import type { Clock } from '../kit/clock.ts'
import { quoted, textField } from './excerpt.ts'
import { createFeishuClient, type FeishuAnswer } from './feishu-client.ts'
import type { ToolContext, ToolResult } from './tool.ts'
import type { ToolEntry } from './tool-registry.ts'

export type FeishuOptions = {
  appId?: string | undefined
  appSecret?: string | undefined
  baseUrl?: string | undefined
  clock: Clock
  /** The time limit of each HTTP request. */
  requestTimeoutMs?: number
}

const name = 'send_feishu_message'
const description = 'Sends a text message to a person or a group chat in Feishu.'
const effect = 'unsafe'

/** Feishu refused the request before it did anything, because the token is invalid or has expired. */
const invalidTokenCodes = new Set([99991663, 99991664, 99991668])

/** Feishu's limit for `uuid`. */
const uuidCharsMax = 50

export function createFeishuTool(options: FeishuOptions): ToolEntry {
  const { appId, appSecret, clock } = options
  const baseUrl = options.baseUrl || 'https://open.feishu.cn'
  const missing = (reason: string): ToolEntry => ({
    source: 'built-in',
    missing: { name, description, effect, reason },
  })
  const unset = [...(appId ? [] : ['FEISHU_APP_ID']), ...(appSecret ? [] : ['FEISHU_APP_SECRET'])]
  if (!appId || !appSecret) return missing(`${unset.join(' and ')} ${unset.length > 1 ? 'are' : 'is'} not set.`)
  if (!/^https?:\/\//.test(baseUrl) || !URL.canParse(baseUrl)) return missing('FEISHU_BASE_URL is not an http(s) URL.')

  const requestTimeoutMs = options.requestTimeoutMs ?? 15_000
  const feishu = createFeishuClient({ appId, appSecret, baseUrl: baseUrl.replace(/\/+$/, ''), clock, requestTimeoutMs })

  async function send(recipientId: string, message: string, context: ToolContext): Promise<ToolResult> {
    const path = `/open-apis/im/v1/messages?receive_id_type=${recipientType(recipientId)}`
    const body = {
      receive_id: recipientId,
      msg_type: 'text',
      content: JSON.stringify({ text: message }),
      uuid: uuidOf(context.idempotencyKey),
    }
    for (let refreshed = false; ; refreshed = true) {
      const token = await feishu.token(context.signal)
      if ('refused' in token) return refusal(token.refused, 'Feishu refused the app id and secret')

      const answer = await feishu.post(path, body, token.value, context.signal)
      const tokenInvalid = answer.status === 401 || (answer.code !== null && invalidTokenCodes.has(answer.code))
      if (tokenInvalid && !refreshed && answer.status < 500) {
        feishu.forgetToken(token.value)
        continue
      }
      return resultOf(answer, recipientId)
    }
  }

  return {
    source: 'built-in',
    tool: {
      name,
      description,
      effect,
      confirm: 'always',
      inputSchema: {
        type: 'object',
        properties: {
          recipientId: {
            type: 'string',
            minLength: 1,
            maxLength: 256,
            description:
              'Who gets it: an open id (ou_…), a union id (on_…), a chat id (oc_…), an e-mail address or a user id.',
          },
          message: { type: 'string', minLength: 1, maxLength: 30_000, description: 'The text of the message.' },
        },
        required: ['recipientId', 'message'],
        additionalProperties: false,
      },
      // Enough for every request that one call makes: token and message, each twice if the token was invalid.
      timeoutMs: requestTimeoutMs * 4,
      outputCharsMax: 4_000,
      describe: (input) =>
        `Send a Feishu message to ${recipientLabel(textField(input, 'recipientId'))}: ${quoted(textField(input, 'message'))}`,
      run: (input, context) => send(textField(input, 'recipientId'), textField(input, 'message'), context),
    },
  }
}

function resultOf(answer: FeishuAnswer, recipientId: string): ToolResult {
  if (answer.status >= 500 || (answer.status < 300 && answer.code === null)) {
    throw new AppError(
      'tool_failed',
      `Feishu answered with HTTP ${answer.status} and nothing that says what became of the message. It may have been delivered.`,
      { details: { outcome: 'unknown', status: answer.status } },
    )
  }
  if (answer.code !== 0) return refusal(answer, 'Feishu refused the message')
  const messageId = typeof answer.data.message_id === 'string' ? answer.data.message_id : null
  return { ok: true, output: { recipientId, messageId }, summary: `The message to ${recipientId} was sent.` }
}

/** The result if Feishu refused the request: nothing was sent. */
function refusal(answer: FeishuAnswer, what: string): ToolResult {
  const why =
    answer.code === null ? `HTTP ${answer.status}` : `code ${answer.code}${answer.message ? `: ${answer.message}` : ''}`
  return {
    ok: false,
    output: { code: answer.code, message: answer.message, status: answer.status },
    summary: `${what} (${why}).`,
  }
}

function recipientType(recipientId: string): string {
  if (recipientId.startsWith('ou_')) return 'open_id'
  if (recipientId.startsWith('on_')) return 'union_id'
  if (recipientId.startsWith('oc_')) return 'chat_id'
  return recipientId.includes('@') ? 'email' : 'user_id'
}

function uuidOf(idempotencyKey: string): string {
  if (idempotencyKey.length <= uuidCharsMax) return idempotencyKey
  return createHash('sha256').update(idempotencyKey).digest('hex').slice(0, uuidCharsMax)
}

function recipientLabel(recipientId: string): string {
  return recipientId === '' ? 'nobody' : recipientId.slice(0, 100)
}
