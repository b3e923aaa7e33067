import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { closedAddress } from '../../test/support/closed-port.ts'
import { type FakeFeishu, startFakeFeishu } from '../../test/support/fake-feishu.ts'
import { type ManualClock, manualClock } from '../../test/support/manual-clock.ts'
import { toolContext } from '../../test/support/tool-context.ts'
import { AppError } from '../errors/app-error.ts'
import { createFeishuTool } from './send-feishu-message.ts'
import type { Tool, ToolContext } from './tool.ts'

let feishu: FakeFeishu
let clock: ManualClock
let tool: Tool
let keys = 0

before(async () => {
  feishu = await startFakeFeishu()
})
after(() => feishu.stop())
beforeEach(async () => {
  await feishu.behave({})
  clock = manualClock()
  tool = create()
})

function create(options: { appId?: string; appSecret?: string; baseUrl?: string } = {}): Tool {
  const entry = createFeishuTool({
    appId: feishu.appId,
    appSecret: feishu.appSecret,
    baseUrl: feishu.baseUrl,
    clock,
    ...options,
  })
  assert.ok('tool' in entry)
  return entry.tool
}

function send(context: Partial<ToolContext> = {}, recipientId = 'ou_x', message = 'Hello') {
  keys += 1
  return tool.run({ recipientId, message }, toolContext({ idempotencyKey: `key_${keys}`, ...context }))
}

const messagesOf = async (key: string) => (await feishu.sent()).filter(({ uuid }) => uuid === key)

/** What the calls inside cost in requests. */
async function requestsDuring(work: () => Promise<unknown>) {
  const start = await feishu.requests()
  await work()
  const end = await feishu.requests()
  return { token: end.token - start.token, send: end.send - start.send }
}

test('a message is sent once, with the key of the call, and its id comes back', async () => {
  const result = await send({ idempotencyKey: 'key_a' })

  assert.deepEqual(result, {
    ok: true,
    output: { recipientId: 'ou_x', messageId: 'om_key_a' },
    summary: 'The message to ou_x was sent.',
  })
  assert.deepEqual(await messagesOf('key_a'), [
    { receiveIdType: 'open_id', receiveId: 'ou_x', text: 'Hello', uuid: 'key_a', requests: 1 },
  ])
})

test('the kind of recipient is read from the id', async () => {
  const ids = { ou_1: 'open_id', on_1: 'union_id', oc_1: 'chat_id', 'ana@example.com': 'email', u123: 'user_id' }
  for (const id of Object.keys(ids)) await send({ idempotencyKey: `to_${id}` }, id)

  for (const [id, type] of Object.entries(ids)) assert.equal((await messagesOf(`to_${id}`))[0]?.receiveIdType, type)
})

test('a key that is too long for Feishu is shortened in the same way each time', async () => {
  const idempotencyKey = 'k'.repeat(200)
  await send({ idempotencyKey }, 'ou_long')
  await send({ idempotencyKey }, 'ou_long')

  const messages = (await feishu.sent()).filter(({ receiveId }) => receiveId === 'ou_long')
  assert.equal(messages.length, 1)
  assert.ok(messages[0]!.uuid.length <= 50)
  assert.equal(messages[0]!.requests, 2)
})

test('the token is kept until shortly before it expires', async () => {
  await feishu.behave({ tokenSeconds: 7200 })

  assert.deepEqual(await requestsDuring(() => send()), { token: 1, send: 1 })
  await clock.advance(7200_000 - 61_000)
  assert.deepEqual(await requestsDuring(() => send()), { token: 0, send: 1 })
  await clock.advance(2_000)
  assert.deepEqual(await requestsDuring(() => send()), { token: 1, send: 1 })
})

test('an invalid token is refreshed once, and the refused message is sent then', async () => {
  await send()
  await feishu.expireTokens()

  const requests = await requestsDuring(() => send({ idempotencyKey: 'key_refresh' }))

  assert.deepEqual(requests, { token: 1, send: 2 })
  assert.equal((await messagesOf('key_refresh'))[0]?.requests, 1)
})

test('a token that is refused again is an answer, not a loop', async () => {
  await feishu.behave({ sendCode: 99991668, sendStatus: 401, sendMessage: 'Invalid token' })

  let result: unknown
  const requests = await requestsDuring(async () => (result = await send()))

  assert.deepEqual(requests, { token: 2, send: 2 })
  assert.deepEqual(result, {
    ok: false,
    output: { code: 99991668, message: 'Invalid token', status: 401 },
    summary: 'Feishu refused the message (code 99991668: Invalid token).',
  })
})

test('a business failure is a no with its code and its message', async () => {
  await feishu.behave({ sendCode: 230002, sendMessage: 'Bot is not in the chat' })

  const result = await send()

  assert.equal(result.ok, false)
  assert.deepEqual(result.output, { code: 230002, message: 'Bot is not in the chat', status: 200 })
  assert.equal(result.summary, 'Feishu refused the message (code 230002: Bot is not in the chat).')
})

test('wrong credentials are a no, and nothing is sent', async () => {
  tool = create({ appSecret: 'wrong' })

  let result: { ok: boolean; summary: string } | undefined
  const requests = await requestsDuring(async () => (result = await send()))

  assert.deepEqual(requests, { token: 1, send: 0 })
  assert.equal(result?.ok, false)
  assert.match(result.summary, /code 10014: app secret invalid/)
})

for (const afterRecording of ['fail', 'drop', 'garbage'] as const) {
  test(`after sending, "${afterRecording}" is thrown as an unknown outcome and nothing is sent again`, async () => {
    await feishu.behave({ afterRecording })

    await assert.rejects(send({ idempotencyKey: `key_${afterRecording}` }), (error) => {
      assert.ok(error instanceof AppError)
      assert.equal(error.code, 'tool_failed')
      assert.equal(error.details?.outcome, 'unknown')
      return true
    })
    assert.equal((await messagesOf(`key_${afterRecording}`))[0]?.requests, 1)
  })
}

test('a silence after sending ends at the limit, as an unknown outcome', async () => {
  await feishu.behave({ afterRecording: 'hang' })

  const sending = send({ idempotencyKey: 'key_hang' })
  const outcome = assert.rejects(sending, { code: 'tool_failed', details: { outcome: 'unknown' } })
  while ((await messagesOf('key_hang')).length === 0); // the message is there, the answer is not
  await clock.advance(15_000)

  await outcome
  assert.equal((await messagesOf('key_hang'))[0]?.requests, 1)
})

test('a cancelled call gives back the reason of who cancelled it', async () => {
  await feishu.behave({ afterRecording: 'hang' })
  const stop = new AbortController()
  const reason = new AppError('run_cancelled', 'The run was cancelled.')

  const outcome = assert.rejects(send({ idempotencyKey: 'key_stop', signal: stop.signal }), (error) => error === reason)
  while ((await messagesOf('key_stop')).length === 0);
  stop.abort(reason)

  await outcome
})

test('without a token nothing is sent, and the error says so', async () => {
  await feishu.behave({ tokenStatus: 503 })
  const requests = await requestsDuring(() =>
    assert.rejects(send(), { code: 'tool_unavailable', message: /Nothing was sent/ }),
  )
  assert.deepEqual(requests, { token: 1, send: 0 })

  tool = create({ baseUrl: await closedAddress() })
  await assert.rejects(send(), { code: 'tool_unavailable', message: /Nothing was sent/ })
})

test('the tool is unsafe, always confirmed, and says what it is about to do', () => {
  assert.equal(tool.effect, 'unsafe')
  assert.equal(tool.confirm, 'always')
  assert.equal(tool.describe({ recipientId: 'ou_x', message: 'Hello' }), 'Send a Feishu message to ou_x: “Hello”')
})

test('a missing setting or a broken address is a reason, not a tool', () => {
  const reasonOf = (options: object) => {
    const entry = createFeishuTool({ clock, ...options })
    return 'missing' in entry ? entry.missing.reason : null
  }

  assert.equal(reasonOf({ appId: 'x' }), 'FEISHU_APP_SECRET is not set.')
  assert.equal(reasonOf({ appId: '', appSecret: 'x' }), 'FEISHU_APP_ID is not set.')
  assert.equal(reasonOf({ appId: 'x', appSecret: 'y', baseUrl: 'feishu' }), 'FEISHU_BASE_URL is not an http(s) URL.')
  assert.equal(reasonOf({ appId: 'x', appSecret: 'y' }), null)
})
