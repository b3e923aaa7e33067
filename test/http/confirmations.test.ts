// Confirm once: a decision is applied at most once, to the arguments that were
// shown or to the edit that came with it, by its owner, and never after it expired.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  assertCallsArePaired,
  calls,
  endOf,
  type Json,
  messagesOf,
  runIdOf,
  says,
  someone,
  startTestServer,
  toolState,
  toolStatuses,
  until,
} from '../support/test-server.ts'
import type { SseStream } from '../support/sse.ts'
import { sharedMcpServer } from '../support/shared-mcp-server.ts'

const { server, effects } = sharedMcpServer()
let amount = 0

type Asked = { user: string; stream: SseStream; id: string; amount: number; conversationId: string }

/** A run that waits for consent to charge an amount that no other test uses. */
async function askToCharge(): Promise<Asked> {
  amount += 1
  const user = someone()
  const conversationId = `conv-${user}`
  await server.provider.script([calls(['charge', { amount }]), says('Done.')], user)
  const stream = await server.chat(user, { input: user, conversationId })
  const { json } = await stream.waitFor(toolState('awaiting_input'))
  return { user, stream, id: json.data.confirmationId, amount, conversationId }
}

const charges = (value: number) => effects.lines().filter((line) => line === `charge ${value}`).length
const decide = (asked: Pick<Asked, 'id'>, user: string, what: 'confirm' | 'reject', body?: unknown) =>
  server.call('POST', `/v1/tool-confirmations/${asked.id}/${what}`, { user, ...(body === undefined ? {} : { body }) })
const rowOf = async ({ id, user }: Asked) => (await server.call('GET', `/v1/tool-confirmations/${id}`, { user })).body
const listOf = async (user: string, query = '') =>
  (await server.call('GET', `/v1/tool-confirmations${query}`, { user })).body as unknown as Json[]

describe('one decision', () => {
  test('confirm: the tool runs once with the arguments that were shown, and the row is filled in', async () => {
    const asked = await askToCharge()
    const before = await rowOf(asked)

    const decided = await decide(asked, asked.user, 'confirm')
    await asked.stream.ended()

    assert.equal(before.status, 'pending')
    assert.equal(before.toolName, 'charge')
    assert.deepEqual(before.payload, { amount: asked.amount })
    assert.equal(before.userId, asked.user)
    assert.ok(before.expiresAtMs > before.createdAtMs)
    assert.equal(decided.status, 200)
    assert.equal(decided.body.status, 'confirmed')
    assert.equal(charges(asked.amount), 1)
    const row = await rowOf(asked)
    assert.equal(row.status, 'confirmed')
    assert.match(JSON.stringify(row.result), new RegExp(`charged ${asked.amount}`))
    assert.equal(row.error, null)
    assert.ok(row.executedAtMs >= row.confirmedAtMs)
    assert.equal(endOf(asked.stream.frames).status, 'succeeded')
  })

  test('the answer does not wait for the tool', async () => {
    const user = someone()
    // Two calls: the first needs consent and the second never ends, so the run cannot be over.
    await server.provider.script([calls(['charge', { amount: 9001 }, 'c1'], ['slow', {}, 'c2'])], user)
    const stream = await server.chat(user, user)
    const { json } = await stream.waitFor(toolState('awaiting_input'))

    const decided = await decide({ id: json.data.confirmationId }, user, 'confirm')
    await stream.waitFor(toolState('succeeded', 'charge'))

    assert.equal(decided.status, 200)
    assert.equal((await server.call('GET', `/v1/agent/runs/${runIdOf(stream)}`, { user })).body.status, 'running')
    await server.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user })
  })

  test('reject: nothing runs, the reason reaches the person’s row, the stream and the model', async () => {
    const asked = await askToCharge()

    const decided = await decide(asked, asked.user, 'reject', { reason: 'far too expensive' })
    await asked.stream.ended()

    assert.equal(decided.status, 200)
    assert.equal(decided.body.status, 'rejected')
    assert.equal(decided.body.error, 'far too expensive')
    assert.equal(charges(asked.amount), 0)
    assert.equal(toolStatuses(asked.stream.frames).at(-1), 'cancelled')
    assert.equal(endOf(asked.stream.frames).status, 'succeeded')
    const messages = messagesOf((await server.asked(asked.user))[1])
    assertCallsArePaired(messages)
    assert.match(messages.at(-1)?.content, /far too expensive/)
  })

  test('edit: the changes are merged over what was shown, and the tool and the model get the edited arguments', async () => {
    const asked = await askToCharge()
    const edited = asked.amount + 10_000

    const decided = await decide(asked, asked.user, 'confirm', { payload: { amount: edited } })
    await asked.stream.ended()

    assert.equal(decided.status, 200)
    assert.deepEqual(decided.body.payload, { amount: edited })
    assert.equal(charges(asked.amount), 0)
    assert.equal(charges(edited), 1)
    assert.deepEqual(asked.stream.frames.find(toolState('succeeded'))?.json.data.input, { amount: edited })
    // In this run and in the next one.
    await server.chatToEnd(asked.user, { input: `next ${asked.user}`, conversationId: asked.conversationId })
    for (const request of (await server.asked(asked.user)).slice(1)) {
      const call = messagesOf(request).find((message) => message.tool_calls !== undefined)
      assert.deepEqual(JSON.parse(call?.tool_calls[0].function.arguments), { amount: edited })
    }
  })

  test('an edit with a number that JSON cannot hold is 400, and the call waits for another decision', async () => {
    const asked = await askToCharge()

    const refused = await server.call('POST', `/v1/tool-confirmations/${asked.id}/confirm`, {
      user: asked.user,
      raw: '{"payload":{"amount":1e999}}',
    })

    assert.deepEqual([refused.status, refused.body.code], [400, 'invalid_json'])
    assert.match(refused.body.message, /^payload\.amount: The number is too large/)
    assert.equal((await rowOf(asked)).status, 'pending')
    assert.equal((await decide(asked, asked.user, 'confirm')).status, 200)
    await asked.stream.ended()
    assert.equal(charges(asked.amount), 1)
  })

  test('an edited call shows the arguments that ran in its row, its message, the timeline and every dialect', async () => {
    const asked = await askToCharge()
    const edited = asked.amount + 20_000
    await decide(asked, asked.user, 'confirm', { payload: { amount: edited } })
    await asked.stream.ended()
    const run = `/v1/agent/runs/${runIdOf(asked.stream)}`
    const read = async (path: string) => (await server.call('GET', path, { user: asked.user })).text

    assert.deepEqual((await rowOf(asked)).payload, { amount: edited })
    const wires = ['sse', 'vercel-ai', 'chunks', 'session'].map((name) => `${run}/stream?format=${name}`)
    const views = [`${run}/timeline`, `/v1/agent/messages?conversationId=${asked.conversationId}`]
    // Some wires quote JSON inside of JSON.
    const shown = new RegExp(String.raw`"amount\\?":${edited}`)
    for (const path of [...wires, ...views]) assert.match(await read(path), shown, path)
    const trace = (await server.call('GET', `/api/trace/${runIdOf(asked.stream)}`, { user: asked.user })).body.trace
    const start = (trace.events as Json[]).find(({ type }) => type === 'tool_start')
    assert.deepEqual([start?.tool_args, start?.requested_args], [{ amount: edited }, { amount: asked.amount }])
  })

  test('an edit that does not fit the tool is 400, and the question stays open', async () => {
    const asked = await askToCharge()

    for (const payload of [{ amount: 'a lot' }, { amount: 0 }, { amount: null }]) {
      const answer = await decide(asked, asked.user, 'confirm', { payload })

      assert.equal(answer.status, 400)
      assert.equal(answer.body.code, 'confirmation_payload_invalid')
      assert.match(answer.body.message, /amount/)
    }
    assert.equal((await rowOf(asked)).status, 'pending')
    await decide(asked, asked.user, 'reject')
    await asked.stream.ended()
    assert.equal(charges(asked.amount), 0)
  })
})

describe('two people at once', () => {
  test('one decision counts, the other is 409 with the row as it is; the tool runs at most once', async () => {
    for (const pair of [
      ['confirm', 'confirm'],
      ['confirm', 'reject'],
    ] as const) {
      const asked = await askToCharge()

      const answers = await Promise.all(pair.map((what) => decide(asked, asked.user, what)))
      await asked.stream.ended()

      const won = answers.filter(({ status }) => status === 200)
      const lost = answers.filter(({ status }) => status === 409)
      assert.deepEqual([won.length, lost.length], [1, 1])
      assert.equal(lost[0]?.body.code, 'tool_confirmation_resolved')
      assert.equal(lost[0]?.body.details.confirmation.id, asked.id)
      assert.equal(lost[0]?.body.details.confirmation.status, won[0]?.body.status)
      assert.equal(charges(asked.amount), won[0]?.body.status === 'confirmed' ? 1 : 0)
    }
  })

  test('ten clicks at once run the tool once', async () => {
    const asked = await askToCharge()

    const answers = await Promise.all(Array.from({ length: 10 }, () => decide(asked, asked.user, 'confirm')))
    await asked.stream.ended()

    assert.equal(answers.filter(({ status }) => status === 200).length, 1)
    assert.equal(answers.filter(({ status }) => status === 409).length, 9)
    assert.equal(charges(asked.amount), 1)
  })
})

describe('a confirmation and a cancel at once', () => {
  test('the row tells what became of the call: it ran, or the run ended before', async () => {
    const asked = await askToCharge()
    const runId = runIdOf(asked.stream)

    const [decided, cancelled] = await Promise.all([
      decide(asked, asked.user, 'confirm'),
      server.call('POST', `/v1/agent/runs/${runId}/cancel`, { user: asked.user, body: {} }),
    ])
    await asked.stream.ended()

    assert.equal(cancelled.status, 200)
    const { status, error, executedAt } = await rowOf(asked)
    const ran = charges(asked.amount) === 1
    assert.equal(executedAt !== null, ran)
    if (decided.status !== 200) assert.equal(status, 'cancelled')
    else if (!ran) assert.deepEqual([status, error?.code], ['failed', 'tool_cancelled'])
  })
})

describe('whose it is', () => {
  test('another user can neither see nor decide it: 404, and it stays pending', async () => {
    const asked = await askToCharge()
    const stranger = someone('stranger')

    const answers = [
      await server.call('GET', `/v1/tool-confirmations/${asked.id}`, { user: stranger }),
      await decide(asked, stranger, 'confirm'),
      await decide(asked, stranger, 'reject'),
    ]

    for (const { status, body } of answers) {
      assert.deepEqual([status, body.code], [404, 'tool_confirmation_not_found'])
    }
    assert.deepEqual(await listOf(stranger), [])
    assert.equal((await rowOf(asked)).status, 'pending')
    await decide(asked, asked.user, 'reject')
  })

  test('one that does not exist is 404', async () => {
    const answer = await decide({ id: 'nothing' }, someone(), 'confirm')

    assert.deepEqual([answer.status, answer.body.code], [404, 'tool_confirmation_not_found'])
  })
})

describe('several calls in one step', () => {
  test('a call that needs no consent runs at once; the run goes on when the other is decided', async () => {
    const user = someone()
    await server.provider.script(
      [calls(['lookup', { word: 'tea' }, 'c_read'], ['charge', { amount: 777 }, 'c_pay']), says('Both done.')],
      user,
    )
    const stream = await server.chat(user, user)
    const { json } = await stream.waitFor(toolState('awaiting_input'))
    await stream.waitFor(toolState('succeeded', 'lookup'))
    await server.reaches(user, runIdOf(stream), 'awaiting_input')
    const askedBefore = (await server.asked(user)).length

    await decide({ id: json.data.confirmationId }, user, 'confirm')
    await stream.ended()

    assert.equal(askedBefore, 1)
    assert.deepEqual(toolStatuses(stream.frames, 'charge'), [
      'queued',
      'running',
      'awaiting_input',
      'running',
      'succeeded',
    ])
    assert.deepEqual(toolStatuses(stream.frames, 'lookup'), ['queued', 'running', 'succeeded'])
    const messages = messagesOf((await server.asked(user))[1])
    assertCallsArePaired(messages)
    assert.equal(endOf(stream.frames).output, 'Both done.')
  })

  test('the run leaves awaiting_input only when all its questions are decided', async () => {
    const user = someone()
    await server.provider.script(
      [calls(['charge', { amount: 501 }, 'c_1'], ['charge', { amount: 502 }, 'c_2']), says('Ok.')],
      user,
    )
    const stream = await server.chat(user, user)
    await stream.waitFor(() => stream.frames.filter(toolState('awaiting_input')).length === 2)
    await server.reaches(user, runIdOf(stream), 'awaiting_input')
    const ids = stream.frames.filter(toolState('awaiting_input')).map(({ json }) => json.data.confirmationId as string)

    await decide({ id: ids[0] as string }, user, 'reject')
    await until('the first decision to be shown', async () =>
      (await listOf(user, '?status=pending')).length === 1 ? true : undefined,
    )
    const between = (await server.asked(user)).length
    await decide({ id: ids[1] as string }, user, 'confirm')
    await stream.ended()

    assert.equal(between, 1)
    assert.equal((await server.asked(user)).length, 2)
    assert.deepEqual([charges(501), charges(502)], [0, 1])
    assert.equal(endOf(stream.frames).status, 'succeeded')
  })
})

describe('lists and batches', () => {
  test('the list is newest first and narrowed by status, conversation and run', async () => {
    const user = someone()
    const conversationId = `conv-${user}`
    const made: { id: string; stream: SseStream }[] = []
    for (const place of [conversationId, `other-${user}`, `third-${user}`]) {
      const marker = `in ${place}`
      await server.provider.script([calls(['remember_note', { text: marker }]), says('Ok.')], marker)
      const stream = await server.chat(user, { input: marker, conversationId: place })
      made.unshift({ id: (await stream.waitFor(toolState('awaiting_input'))).json.data.confirmationId, stream })
    }
    const [third, second, first] = made as [(typeof made)[0], (typeof made)[0], (typeof made)[0]]
    await decide(third, user, 'confirm')
    await decide(second, user, 'reject')
    await Promise.all([third.stream.ended(), second.stream.ended()])

    const ids = async (query: string) => (await listOf(user, query)).map(({ id }) => id as string)

    assert.deepEqual(await ids(''), [third.id, second.id, first.id])
    assert.deepEqual(await ids('?status=pending'), [first.id])
    assert.deepEqual(await ids('?status=confirmed'), [third.id])
    assert.deepEqual(await ids('?status=rejected'), [second.id])
    assert.deepEqual(await ids('?status=failed'), [])
    assert.deepEqual(await ids(`?conversationId=${conversationId}`), [first.id])
    assert.deepEqual(await ids(`?runId=${runIdOf(second.stream)}`), [second.id])
    assert.deepEqual(await ids('?limit=1'), [third.id])
    assert.deepEqual(await ids(`?limit=1&before=${third.id}`), [second.id])
    assert.deepEqual(await ids(`?status=pending&limit=1&before=${third.id}`), [first.id])
    const strange = await server.call('GET', `/v1/tool-confirmations?before=${third.id}`, { user: someone() })
    assert.equal(strange.status, 404)
    assert.equal((await server.call('GET', '/v1/tool-confirmations?status=maybe', { user })).status, 400)
  })

  test('a batch decides each on its own: what cannot be decided does not stop the rest', async () => {
    const one = await askToCharge()
    const foreign = await askToCharge()
    const items = [{ id: one.id }, { id: foreign.id }, { id: 'nothing' }, { id: one.id }]

    const { status, body } = await server.call('POST', '/v1/tool-confirmations/batch/confirm', {
      user: one.user,
      body: { items },
    })
    await one.stream.ended()

    assert.equal(status, 200)
    assert.deepEqual([body.total, body.succeeded, body.failed], [4, 1, 3])
    assert.deepEqual(
      (body.items as Json[]).map(({ id, success, status: word, code }) => [id, success, word ?? code]),
      [
        [one.id, true, 'confirmed'],
        [foreign.id, false, 'tool_confirmation_not_found'],
        ['nothing', false, 'tool_confirmation_not_found'],
        [one.id, false, 'tool_confirmation_resolved'],
      ],
    )
    assert.deepEqual([charges(one.amount), charges(foreign.amount)], [1, 0])
    await decide(foreign, foreign.user, 'reject')
  })

  test('a batch of refusals shares a reason, unless an item has its own', async () => {
    const user = someone()
    const ids: string[] = []
    for (const place of ['a', 'b']) {
      await server.provider.script([calls(['remember_note', { text: 'x' }])], `${place} ${user}`)
      const stream = await server.chat(user, { input: `${place} ${user}`, conversationId: `${place}-${user}` })
      ids.push((await stream.waitFor(toolState('awaiting_input'))).json.data.confirmationId)
    }
    const items = [{ id: ids[0] }, { id: ids[1], reason: 'this one is rude' }]

    const { body } = await server.call('POST', '/v1/tool-confirmations/batch/reject', {
      user,
      body: { templateReason: 'not today', items },
    })

    assert.equal(body.succeeded, 2)
    const reasons = await Promise.all(
      ids.map(async (id) => (await server.call('GET', `/v1/tool-confirmations/${id}`, { user })).body.error),
    )
    assert.deepEqual(reasons, ['not today', 'this one is rude'])
  })

  test('a batch holds 1 to 20 items', async () => {
    for (const what of ['confirm', 'reject']) {
      const path = `/v1/tool-confirmations/batch/${what}`
      const user = someone()
      const many = Array.from({ length: 21 }, (_, index) => ({ id: `id-${index}` }))

      const empty = await server.call('POST', path, { user, body: { items: [] } })
      const tooMany = await server.call('POST', path, { user, body: { items: many } })
      const most = await server.call('POST', path, { user, body: { items: many.slice(1) } })

      assert.deepEqual([empty.status, empty.body.code], [400, 'empty_batch_items'])
      assert.deepEqual([tooMany.status, tooMany.body.code], [400, 'batch_size_exceeded'])
      assert.deepEqual([most.status, most.body.failed], [200, 20])
    }
  })
})

describe('expiry', () => {
  test('a question that is not answered in time closes its call as denied, and the run goes on', async () => {
    const short = await startTestServer({ POLYLOG_CONFIRMATION_TTL_MS: '150' }, server.provider)
    try {
      const user = someone()
      await server.provider.script([calls(['remember_note', { text: 'x' }]), says('Never mind.')], user)
      const stream = await short.chat(user, user)
      const { json } = await stream.waitFor(toolState('awaiting_input'))

      await stream.ended()
      const late = await short.call('POST', `/v1/tool-confirmations/${json.data.confirmationId}/confirm`, { user })

      const closed = stream.frames.find(toolState('cancelled'))?.json.data
      assert.equal(closed?.error.code, 'tool_expired')
      assert.deepEqual(toolStatuses(stream.frames), ['queued', 'running', 'awaiting_input', 'cancelled'])
      assert.equal(endOf(stream.frames).output, 'Never mind.')
      assert.equal(late.status, 409)
      assert.equal(late.body.code, 'tool_confirmation_expired')
      assert.equal(late.body.details.confirmation.status, 'expired')
      const messages = messagesOf((await server.asked(user))[1])
      assert.match(messages.at(-1)?.content, /did not allow|in time/)
    } finally {
      await short.close()
    }
  })
})
