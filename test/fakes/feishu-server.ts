// A fake of Feishu's open platform: the two routes that the tool uses, and routes under
// /_control for the test. A message counts as sent when it was recorded, also if the caller got
// an error. Like the real one, it records each `uuid` once.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type FeishuBehaviour = {
  /** Instead of a token. */
  tokenCode?: number
  tokenStatus?: number
  tokenSeconds?: number
  /** The message is refused with this code (and not recorded). */
  sendCode?: number
  sendMessage?: string
  sendStatus?: number
  /** The message is recorded, and then: HTTP 500, a broken connection, or nothing at all. */
  afterRecording?: 'fail' | 'drop' | 'hang' | 'garbage'
  delayMs?: number
}

export type SentMessage = {
  receiveIdType: string | null
  receiveId: string
  text: string
  uuid: string
  /** How often a message with this uuid came in. */
  requests: number
}

const appId = process.env.FAKE_FEISHU_APP_ID ?? 'cli_test'
const appSecret = process.env.FAKE_FEISHU_APP_SECRET ?? 'secret'

let behaviour: FeishuBehaviour = {}
let tokenNumber = 0
let tokenRequests = 0
let sendRequests = 0
const validTokens = new Set<string>()
const sent = new Map<string, SentMessage>()

const server = createServer((request, response) => {
  void handle(request, response)
})
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
})
process.stdin.on('end', () => process.exit(0)).resume()

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://fake')
  const body = JSON.parse((await readAll(request)) || '{}') as Record<string, string>

  if (url.pathname === '/_control/behave') {
    behaviour = body
    return answer(response, 200, {})
  }
  if (url.pathname === '/_control/expire-tokens') {
    validTokens.clear()
    return answer(response, 200, {})
  }
  if (url.pathname === '/_control/seen') {
    return answer(response, 200, { sent: [...sent.values()], tokenRequests, sendRequests })
  }

  if (behaviour.delayMs !== undefined) await new Promise((resolve) => setTimeout(resolve, behaviour.delayMs))
  if (request.method === 'POST' && url.pathname === '/open-apis/auth/v3/tenant_access_token/internal') {
    return giveToken(body, response)
  }
  if (request.method === 'POST' && url.pathname === '/open-apis/im/v1/messages') {
    return takeMessage(url, request.headers.authorization ?? '', body, response)
  }
  answer(response, 404, { code: 404, msg: 'no such route' })
}

function giveToken(body: Record<string, string>, response: ServerResponse): void {
  tokenRequests += 1
  if (behaviour.tokenStatus !== undefined) return answer(response, behaviour.tokenStatus, {})
  if (behaviour.tokenCode !== undefined)
    return answer(response, 200, { code: behaviour.tokenCode, msg: 'told to refuse' })
  if (body.app_id !== appId || body.app_secret !== appSecret)
    return answer(response, 200, { code: 10014, msg: 'app secret invalid' })
  tokenNumber += 1
  const token = `t-${tokenNumber}`
  validTokens.add(token)
  answer(response, 200, { code: 0, msg: 'ok', tenant_access_token: token, expire: behaviour.tokenSeconds ?? 7200 })
}

function takeMessage(url: URL, authorization: string, body: Record<string, string>, response: ServerResponse): void {
  sendRequests += 1
  if (!validTokens.has(authorization.replace('Bearer ', ''))) {
    return answer(response, 400, { code: 99991663, msg: 'Invalid access token for authorization.' })
  }
  const { sendCode, sendStatus } = behaviour
  if (sendCode !== undefined || sendStatus !== undefined) {
    return answer(
      response,
      sendStatus ?? 200,
      sendCode === undefined ? {} : { code: sendCode, msg: behaviour.sendMessage ?? 'told to refuse' },
    )
  }
  const uuid = body.uuid ?? ''
  const known = sent.get(uuid)
  const { text } = JSON.parse(body.content ?? '{}') as { text: string }
  const receiveIdType = url.searchParams.get('receive_id_type')
  sent.set(
    uuid,
    known
      ? { ...known, requests: known.requests + 1 }
      : { receiveIdType, receiveId: body.receive_id ?? '', text, uuid, requests: 1 },
  )

  switch (behaviour.afterRecording) {
    case 'hang':
      return
    case 'drop':
      response.destroy()
      return
    case 'fail':
      return answer(response, 500, {})
    case 'garbage':
      response.writeHead(200).end('<html>')
      return
    default:
      answer(response, 200, { code: 0, msg: 'success', data: { message_id: `om_${uuid}`, msg_type: body.msg_type } })
  }
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function readAll(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return text
}
