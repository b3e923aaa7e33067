// Lists: every reply is bounded in bytes and says with a Link header if it was cut, and following
// the links gives every entry once. The format of the bodies did not change.

import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { type Answer, calls, endOf, type Json, says, someone } from '../support/test-server.ts'
import { startJob, sharedJobServer } from '../support/jobs.ts'

const { server } = sharedJobServer()

/** No reply needs more than this for the bodies below; all of one list is several times as much. */
const replyBytesMax = 6 * 1024 * 1024
const megabyte = 'x'.repeat(1024 * 1024)

function nextOf(answer: Answer): string | undefined {
  return /<([^>]*)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1]
}

/** All pages, following the links. */
async function pagesOf(path: string): Promise<Answer[]> {
  const pages: Answer[] = []
  let at: string | undefined = path
  while (at !== undefined) {
    const page: Answer = await server.call('GET', at)
    assert.equal(page.status, 200, `${at}: ${page.text.slice(0, 500)}`)
    assert.ok(page.text.length < replyBytesMax, `${at}: ${page.text.length} bytes`)
    pages.push(page)
    assert.ok(pages.length < 100, 'the pages never end')
    at = nextOf(page)
  }
  return pages
}

const rows = (pages: Answer[]) => pages.map(({ body }) => body as unknown as Json[])

describe('a conversation of large messages', () => {
  const user = someone('ann')
  const conversationId = `conv-${user}`
  const count = 12

  before(async () => {
    for (let turn = 0; turn < count; turn++) {
      const frames = await server.chatToEnd(user, { input: `${turn} ${megabyte}`, conversationId })
      assert.equal(endOf(frames).status, 'succeeded')
    }
  })

  const numbersOf = (messages: Json[]) =>
    messages.filter(({ role }) => role === 'user').map(({ content }) => Number(String(content).split(' ', 1)[0]))
  const all = Array.from({ length: count }, (_, at) => at)

  test('its messages come in pages, oldest last, and every other parameter is kept', async () => {
    const pages = await pagesOf(`/v1/conversations/${conversationId}/messages?userId=${user}&limit=150`)

    assert.ok(pages.length > 2)
    assert.deepEqual(rows(pages).toReversed().flatMap(numbersOf), all)
    assert.match(nextOf(pages[0]!) ?? '', /limit=150/)
    assert.match(nextOf(pages[0]!) ?? '', new RegExp(`userId=${user}`))
    assert.ok(Array.isArray(pages[0]?.body), 'a list is a list')
  })

  test('the messages under a key do, too', async () => {
    const pages = await pagesOf(`/v1/agent/messages?userId=${user}&conversationId=${conversationId}`)

    assert.ok(pages.length > 2)
    assert.deepEqual(rows(pages).toReversed().flatMap(numbersOf), all)
  })

  test('the chat API loads the newest, and the older ones on request', async () => {
    const seen: number[] = []
    let before: string | undefined
    let loads = 0
    for (;;) {
      const answer = await server.call('POST', '/api/load_conversation', {
        body: { client_id: user, conversation_id: conversationId, ...(before === undefined ? {} : { before }) },
      })
      assert.equal(answer.status, 200, answer.text.slice(0, 300))
      assert.ok(answer.text.length < replyBytesMax)
      loads += 1
      const messages = answer.body.messages as Json[]
      seen.unshift(
        ...messages
          .filter(({ sender }) => sender === 'User')
          .map(({ content }) => Number(String(content).split(' ', 1)[0])),
      )
      before = String(messages[0]?.message_id)
      const next = nextOf(answer)
      if (next === undefined) break
      const linked = await server.call('GET', next)
      assert.equal(linked.status, 200, 'the link leads to older messages')
      assert.ok((linked.body as unknown as Json[]).length > 0)
    }

    assert.ok(loads > 2)
    assert.deepEqual(seen, all)
  })

  test('a list that ends with its page has no link', async () => {
    const answer = await server.call('GET', `/v1/conversations/${conversationId}/messages?limit=1`, { user })
    const other = await server.call('GET', '/v1/agent/messages', { user: someone() })

    assert.match(answer.headers.get('link') ?? '', /rel="next"/)
    assert.equal(other.headers.get('link'), null)
  })
})

describe('lists by rows', () => {
  test('conversations and runs link to their next page, in both APIs, with their filters', async () => {
    const user = someone()
    for (let turn = 0; turn < 5; turn++)
      await server.chatToEnd(user, { input: `${turn}`, conversationId: `c${turn}-${user}` })

    const conversations = await pagesOf(`/v1/conversations?userId=${user}&limit=2`)
    const runs = await pagesOf(`/v1/agent/runs?userId=${user}&limit=2&status=succeeded,failed`)
    const chat = await pagesOf(`/api/list_conversations?client_id=${user}&limit=2`)
    const posted = await server.call('POST', '/api/list_conversations', { body: { client_id: user, limit: 2 } })

    const names = [4, 3, 2, 1, 0].map((turn) => `c${turn}-${user}`)
    assert.deepEqual(
      rows(conversations).map((page) => page.map(({ id }) => id)),
      [names.slice(0, 2), names.slice(2, 4), names.slice(4)],
    )
    assert.deepEqual(
      rows(runs).map((page) => page.map(({ conversationId }) => conversationId)),
      [names.slice(0, 2), names.slice(2, 4), names.slice(4)],
    )
    assert.match(nextOf(runs[0]!) ?? '', /status=succeeded%2Cfailed/)
    assert.deepEqual(
      chat.map(({ body }) => (body.conversations as Json[]).map(({ conversation_id }) => conversation_id)),
      [names.slice(0, 2), names.slice(2, 4), names.slice(4)],
    )
    assert.equal((await pagesOf(nextOf(posted) ?? '')).length, 2)
  })

  test('confirmations link to their next page', async () => {
    const user = someone()
    const wanted = 5
    await server.provider.script(
      [calls(...Array.from({ length: wanted }, (_, at): [string, unknown] => ['remember_note', { text: `n${at}` }]))],
      user,
    )
    const stream = await server.chat(user, user)
    await server.reaches(user, String(stream.headers['x-run-id']), 'awaiting_input')
    stream.leave()

    const pages = await pagesOf(`/v1/tool-confirmations?userId=${user}&limit=2&status=pending`)

    assert.deepEqual(
      rows(pages).map((page) => page.length),
      [2, 2, 1],
    )
    assert.equal(new Set(rows(pages).flatMap((page) => page.map(({ id }) => id))).size, wanted)
  })
})

describe('a long run', () => {
  const count = 75
  const piece = 'y'.repeat(64 * 1024)

  test('its timeline and its trace come in pages that together are the whole', async () => {
    const user = someone()
    await server.provider.script([[{ flood: { count, text: piece } }, { finish: 'stop' }]], user)
    const first = await server.chat(user, user)
    first.leave()
    const runId = String(first.headers['x-run-id'])
    await server.reaches(user, runId, 'succeeded')

    const timeline = await pagesOf(`/v1/agent/runs/${runId}/timeline?userId=${user}`)
    const entries = timeline.flatMap(({ body }) => body.events as Json[])
    assert.ok(timeline.length >= 3)
    assert.deepEqual(
      entries.map(({ seq }) => seq),
      entries.map((_, at) => at + 1),
    )
    assert.equal(entries.filter(({ event }) => event === 'agent.delta').length, count)
    assert.deepEqual(
      timeline.map(({ body }) => body.hasMore),
      timeline.map((_, at) => at < timeline.length - 1),
    )

    const trace = await pagesOf(`/api/trace/${runId}?client_id=${user}`)
    const events = trace.flatMap(({ body }) => body.trace.events as Json[])
    assert.ok(trace.length >= 2)
    assert.equal(events.filter(({ type }) => type === 'text').length, count)
    assert.ok(
      trace.every(({ body }) => body.trace.status === 'completed'),
      'each page has the status of the whole',
    )
  })

  test('the history and the log of a job do, too', async () => {
    const user = someone()
    const question = '#'.repeat(900_000)
    await server.provider.script(
      [
        ...Array.from({ length: 8 }, () => [{ text: [question] }, ...calls(['current_time', {}])]),
        says('{"done":true}'),
      ],
      user,
    )
    const job = await startJob(server, 'jobs', user)
    await job.reaches('succeeded')

    const history = await pagesOf(`${job.path}/events/history?userId=${user}`)
    const seqs = history.flatMap(({ body }) => (body.events as Json[]).map(({ seq }) => Number(seq)))
    assert.ok(history.length > 1)
    assert.deepEqual(
      seqs,
      seqs.map((_, at) => at + 1),
    )

    const [log, ...ranges] = await pagesOf(`${job.path}/logs?userId=${user}`)
    const whole = [log?.body.stdout, ...ranges.map(({ body }) => body.chunk)].join('')
    assert.ok(ranges.length >= 6)
    assert.equal(whole.match(/#/g)?.length, 8 * question.length)
    assert.ok([log!, ...ranges].every(({ text }) => text.length < 1.2 * 1024 * 1024))
    const tooMuch = await server.call('GET', `${job.path}/logs/range?stream=pty&byte_from=0&byte_to=99999999`, { user })
    assert.deepEqual([tooMuch.body.byte_from, tooMuch.body.byte_to], [0, 1024 * 1024])
    assert.match(nextOf(tooMuch) ?? '', /byte_from=1048576/)
  })
})
