// The comparisons of the chat API, over real sockets: the two scenarios of the specification
// by their headings, then blindness, metrics and the rest of the contract.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type AbTestServer, arms, calm, sideOf, startAbTestServer, textOfArm, wild } from '../support/comparisons.ts'
import { type Json, says, someone } from '../support/test-server.ts'

let server: AbTestServer
before(async () => {
  server = await startAbTestServer()
})
after(async () => {
  await server.close()
})

describe('Requirement: A/B Comparison Management', () => {
  describe('Scenario: Create A/B comparison', () => {
    it('runs both configurations on one question, in one conversation, and returns the comparison_id', async () => {
      const user = someone()
      await server.script(user, says('Calm ', 'answer.'), says('Wild ', 'answer!'))

      const { stream, frames, id, conversationId } = await server.compareToEnd(user, `Which one? ${user}`)

      assert.match(stream.headers['content-type'] ?? '', /^text\/event-stream/)
      for (const { json } of frames) assert.ok(json.arm === 'a' || json.arm === 'b')
      assert.deepEqual(arms.map((arm) => textOfArm(frames, arm)).toSorted(), ['Calm answer.', 'Wild answer!'])
      const ends = frames.slice(-2)
      assert.deepEqual(
        ends.map(({ json }) => [json.type, json.arm, json.comparison_id, json.vote_requested]),
        [
          ['done', 'a', id, true],
          ['done', 'b', id, true],
        ],
      )
      assert.deepEqual(frames.filter(({ json }) => json.type !== 'chunk').length, 2)

      const comparison = await server.comparison(user, id)
      assert.deepEqual(
        [comparison.response_a_mid, comparison.response_b_mid],
        ends.map(({ json }) => json.message_id),
      )
      assert.deepEqual(
        [comparison.trace_a, comparison.trace_b],
        ends.map(({ json }) => json.trace_id),
      )
      assert.equal(comparison.conversation_id, conversationId)
      assert.equal(comparison.state, 'ready')

      const { body } = await server.call('GET', `/api/list_conversations?client_id=${user}`)
      assert.equal(body.conversations.length, 1)
      const messages = await server.load(user, conversationId)
      assert.deepEqual(
        messages.map((message) => message.sender),
        ['User', 'Assistant'],
      )
      assert.equal(messages[0]?.message_id, comparison.user_prompt_mid)
    })

    it('asks both with the same context', async () => {
      const user = someone()
      const first = await server.compareToEnd(user, `One. ${user}`)
      await server.vote(user, first.id, 'tie')

      await server.compareToEnd(user, { message: `Two. ${user}`, conversation_id: first.conversationId })

      const asked = (await server.asked(`Two. ${user}`)).map(({ body }) =>
        body.messages?.filter((message) => message.role !== 'system'),
      )
      assert.equal(asked.length, 2)
      assert.deepEqual(asked[0], asked[1])
      assert.deepEqual(
        asked[0]?.map((message) => message.role),
        ['user', 'assistant', 'user'],
      )
      assert.deepEqual(
        new Set((await server.asked(`Two. ${user}`)).map(({ body }) => body.model)),
        new Set([calm.model, wild.model]),
      )
    })

    it('compares two answers that are there already, as a client with two streams does', async () => {
      const user = someone()
      const ask = async (more: Json) =>
        await server.call('POST', '/api/get_chat_response', {
          body: { client_id: user, message: `Client side. ${user}`, ...more },
        })
      await server.script(user, says('From calm.'), says('From wild.'))
      const first = await ask({ config_name: calm.name })
      assert.equal(first.status, 200, first.text)
      const conversationId = String(first.body.conversation_id)
      const [question, answer] = await server.load(user, conversationId)
      const second = await ask({ config_name: wild.name, conversation_id: conversationId, is_refresh: true })
      assert.equal(second.status, 200, second.text)
      const other = (await server.load(user, conversationId)).at(-1)

      const body = {
        client_id: user,
        conversation_id: conversationId,
        user_prompt_mid: question?.message_id,
        response_a_mid: answer?.message_id,
        response_b_mid: other?.message_id,
        config_a_id: calm.name,
        config_b_id: wild.name,
        is_config_a_first: true,
      }
      const created = await server.call('POST', '/api/ab/create', { body })
      assert.equal(created.status, 200, created.text)
      assert.equal(created.body.success, true)
      const id = String(created.body.comparison_id)
      assert.deepEqual(
        await server.contents(user, conversationId),
        [`Client side. ${user}`, 'From calm.'],
        'the first side is the history',
      )

      assert.equal((await server.pendingComparison(user, conversationId))?.comparison_id, id)
      assert.equal((await server.vote(user, id, 'B')).status, 200)
      assert.deepEqual(await server.contents(user, conversationId), [`Client side. ${user}`, 'From wild.'])
      assert.equal((await server.comparison(user, id)).side_b_config, wild.name)

      const again = await server.call('POST', '/api/ab/create', { body })
      assert.equal(again.body.comparison_id, id, 'the same two answers are one comparison')
    })

    it('names every field that is missing', async () => {
      const { status, body } = await server.call('POST', '/api/ab/create', { body: { client_id: someone() } })

      assert.equal(status, 400)
      for (const field of [
        'conversation_id',
        'user_prompt_mid',
        'response_a_mid',
        'response_b_mid',
        'config_a_id',
        'config_b_id',
      ]) {
        assert.match(body.error, new RegExp(`"${field}" is missing; it must be a string or a number\\.`))
      }
    })
  })

  describe('Scenario: Record preference vote', () => {
    for (const [said, stored] of [
      ['A', 'a'],
      ['B', 'b'],
      ['tie', 'tie'],
      ['Both_Bad', 'both_bad'],
    ] as const) {
      it(`records ${said} with its time and confirms it`, async () => {
        const user = someone()
        const { id } = await server.compareToEnd(user, 'Vote.')

        const { status, body, text } = await server.vote(user, id, said)

        assert.equal(status, 200, text)
        assert.deepEqual([body.success, body.comparison_id, body.preference], [true, id, stored])
        const comparison = await server.comparison(user, id)
        assert.equal(comparison.preference, stored)
        assert.ok(Number.isFinite(Date.parse(comparison.preference_ts)))
      })
    }

    it('refuses anything else', async () => {
      const user = someone()
      const { id } = await server.compareToEnd(user, 'Vote.')

      assert.equal((await server.vote(user, id, 'c')).status, 400)
      assert.equal(
        (await server.call('POST', '/api/ab/preference', { body: { client_id: user, comparison_id: id } })).status,
        400,
      )
      assert.equal((await server.vote(user, 'no-such-id', 'a')).status, 404)
      assert.equal((await server.comparison(user, id)).preference, null)
    })

    it('makes the preferred answer the history, and keeps the other', async () => {
      const user = someone()
      await server.script(user, says('Calm.'), says('Wild!'))
      const { id, conversationId, frames } = await server.compareToEnd(user, `First. ${user}`)
      assert.deepEqual(
        await server.contents(user, conversationId),
        [`First. ${user}`, textOfArm(frames, 'a')],
        'before the vote it is the first',
      )

      await server.vote(user, id, 'b')

      const chosen = textOfArm(frames, 'b')
      assert.deepEqual(await server.contents(user, conversationId), [`First. ${user}`, chosen])
      const next = someone('next')
      await server.call('POST', '/api/get_chat_response', {
        body: { client_id: user, conversation_id: conversationId, message: next },
      })
      const [asked] = await server.asked(next)
      assert.deepEqual(
        asked?.body.messages?.filter(({ role }) => role !== 'system').map(({ content }) => content),
        [`First. ${user}`, chosen, next],
      )

      const comparison = await server.comparison(user, id)
      for (const [arm, messageId] of [
        ['a', comparison.response_a_mid],
        ['b', comparison.response_b_mid],
      ] as const) {
        const { body } = await server.call('GET', `/api/trace/by_message/${messageId}?client_id=${user}`)
        const told = body.trace.events
          .filter((event: Json) => event.type === 'text')
          .map((event: Json) => event.content)
          .join('')
        assert.equal(told, textOfArm(frames, arm))
      }
    })

    it('keeps the first answer after tie and both_bad', async () => {
      for (const preference of ['tie', 'both_bad']) {
        const user = someone()
        await server.script(user, says('Calm.'), says('Wild!'))
        const { id, conversationId, frames } = await server.compareToEnd(user, `First. ${user}`)

        await server.vote(user, id, preference)

        assert.deepEqual(await server.contents(user, conversationId), [`First. ${user}`, textOfArm(frames, 'a')])
      }
    })

    it('takes one vote; another only as a revision, which is recorded', async () => {
      const user = someone()
      await server.script(user, says('Calm.'), says('Wild!'))
      const { id, conversationId, frames } = await server.compareToEnd(user, `First. ${user}`)
      await server.vote(user, id, 'b')

      const refused = await server.vote(user, id, 'a')
      assert.equal(refused.status, 409)
      assert.equal(refused.body.code, 'comparison_voted')
      assert.equal((await server.vote(user, id, 'b')).status, 409)

      const revised = await server.vote(user, id, 'a', { revise: true })
      assert.equal(revised.status, 200, revised.text)
      const comparison = await server.comparison(user, id)
      assert.equal(comparison.preference, 'a')
      assert.deepEqual(
        comparison.revisions.map((vote: Json) => vote.preference),
        ['b'],
      )
      assert.deepEqual(await server.contents(user, conversationId), [`First. ${user}`, textOfArm(frames, 'a')])

      const same = await server.vote(user, id, 'a', { revise: true })
      assert.deepEqual([same.status, same.body.changed, same.body.revisions.length], [200, false, 1])
    })

    it('counts exactly one of many votes that come at once', async () => {
      const user = someone()
      const { id } = await server.compareToEnd(user, 'Race.')

      const votes = await Promise.all(
        ['a', 'b', 'tie', 'both_bad', 'a', 'b', 'tie', 'both_bad'].map((preference) =>
          server.vote(user, id, preference),
        ),
      )

      const counted = votes.filter(({ status }) => status === 200)
      assert.equal(counted.length, 1)
      assert.deepEqual(votes.filter(({ status }) => status === 409).length, 7)
      const comparison = await server.comparison(user, id)
      assert.equal(comparison.preference, counted[0]?.body.preference)
      assert.deepEqual(comparison.revisions, [])
    })
  })
})

describe('a comparison is blind', () => {
  it('until the vote no byte that the client can get names a configuration or its model', async () => {
    const user = someone()
    const { stream, id, conversationId, frames } = await server.compareToEnd(user, 'Who is who?')
    const seen = [stream.text(), JSON.stringify(stream.headers)]
    const comparison = await server.comparison(user, id)
    const paths = [
      `/api/ab/comparison/${id}`,
      `/api/ab/pending?conversation_id=${conversationId}`,
      '/api/ab/metrics',
      ...[comparison.trace_a, comparison.trace_b].flatMap((run) => [
        `/api/trace/${run}`,
        `/v1/agent/runs/${run}`,
        `/v1/agent/runs/${run}/timeline`,
        `/v1/agent/runs/${run}/stream`,
        `/v1/agent/runs/${run}/stream?format=vercel-ai`,
        `/v1/agent/runs/${run}/stream?format=chunks`,
      ]),
      ...[comparison.response_a_mid, comparison.response_b_mid].map((message) => `/api/trace/by_message/${message}`),
      `/v1/conversations/${conversationId}/messages`,
      '/v1/agent/runs',
    ]
    for (const path of paths) {
      const { status, text } = await server.call('GET', path, { user })
      assert.equal(status, 200, path)
      seen.push(text)
    }
    seen.push(JSON.stringify(await server.load(user, conversationId)))

    for (const text of seen) assert.doesNotMatch(text, /calm-|wild-|Be wild/)
    assert.equal(comparison.is_config_a_first, null)
    assert.ok(frames.length > 2)

    await server.vote(user, id, 'a')
    const open = await server.comparison(user, id)
    assert.deepEqual(new Set([open.side_a_config, open.side_b_config]), new Set([calm.name, wild.name]))
    assert.deepEqual([open.config_a_id, open.config_b_id], [calm.name, wild.name])
    assert.equal(open.is_config_a_first, sideOf(open, calm.name) === 'a')
    const { body } = await server.call('GET', `/api/trace/${open.trace_a}?client_id=${user}`)
    assert.equal(body.trace.config_id, open.side_a_config)
  })

  it('the server shuffles the sides, and the shown side is the one that is revealed', async () => {
    const sides = new Set<string>()
    for (let round = 0; round < 40 && sides.size < 2; round++) {
      const user = someone()
      await server.script(user, says('Calm.'), says('Wild!'))
      const { id, frames } = await server.compareToEnd(user, `Side? ${user}`)
      await server.vote(user, id, 'tie')
      const side = sideOf(await server.comparison(user, id), calm.name)
      assert.equal(textOfArm(frames, side), 'Calm.')
      sides.add(side)
    }

    assert.equal(sides.size, 2)
  })
})

describe('another user', () => {
  it('finds no comparison of yours on any route', async () => {
    const user = someone()
    const stranger = someone('stranger')
    const { id, conversationId } = await server.compareToEnd(user, 'Mine.')
    const comparison = await server.comparison(user, id)
    const as = { client_id: stranger }
    const create = {
      ...as,
      conversation_id: conversationId,
      user_prompt_mid: comparison.user_prompt_mid,
      response_a_mid: comparison.response_a_mid,
      response_b_mid: comparison.response_b_mid,
      config_a_id: 'default',
      config_b_id: 'default',
    }

    const answers = [
      await server.call('GET', `/api/ab/comparison/${id}?client_id=${stranger}`),
      await server.call('GET', `/api/ab/${id}/stream?client_id=${stranger}`),
      await server.call('GET', `/api/ab/pending?client_id=${stranger}&conversation_id=${conversationId}`),
      await server.vote(stranger, id, 'a'),
      await server.vote(stranger, id, 'a', { revise: true }),
      await server.call('POST', '/api/ab/create', { body: create }),
      await server.call('POST', '/api/ab/compare', {
        body: { ...as, message: 'Mine too?', conversation_id: conversationId },
      }),
    ]

    for (const { status, body } of answers) {
      assert.equal(status, 404)
      assert.deepEqual(Object.keys(body).toSorted(), ['code', 'error'])
    }
    assert.equal((await server.comparison(user, id)).preference, null)
    const mine = await server.call('GET', `/api/ab/metrics?client_id=${stranger}`)
    assert.equal(mine.body.votes, 0)
    const list = await server.call('GET', `/api/ab/comparisons?client_id=${stranger}`)
    assert.deepEqual(list.body, { success: true, comparisons: [] })
  })

  it('has to say who they are, unless they address one comparison by its id', async () => {
    for (const [method, path, body] of [
      ['POST', '/api/ab/compare', { message: 'Hi' }],
      ['GET', '/api/ab/pending?conversation_id=x', undefined],
      ['GET', '/api/ab/comparisons', undefined],
      ['GET', '/api/ab/metrics?scope=mine', undefined],
    ] as const) {
      const answer = await server.call(method, path, body === undefined ? {} : { body })
      assert.deepEqual([answer.status, answer.body.code], [400, 'client_id_missing'], path)
      assert.match(answer.body.error, /^client_id missing: send client_id /)
    }
  })
})

describe('the list of comparisons', () => {
  it('has the newest first, with the beginning of each question, page by page', async () => {
    const user = someone()
    const ids: string[] = []
    for (const question of ['One.', 'Two.', `Three. ${'x'.repeat(400)}`]) {
      ids.unshift((await server.compareToEnd(user, question)).id)
    }
    await server.vote(user, ids[1] ?? '', 'tie')
    const read = async (query: string) => {
      const { body, headers } = await server.call('GET', `/api/ab/comparisons?client_id=${user}${query}`)
      return { rows: body.comparisons as Json[], next: /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1] }
    }

    const first = await read('&limit=2')
    assert.deepEqual(
      first.rows.map((row) => [row.comparison_id, row.state, row.preference]),
      [
        [ids[0], 'ready', null],
        [ids[1], 'ready', 'tie'],
      ],
    )
    assert.equal(first.rows[0]?.question, `Three. ${'x'.repeat(293)}`)
    assert.deepEqual([first.rows[0]?.side_a_config, first.rows[0]?.config_a_id], [null, null], 'hidden before the vote')
    assert.equal(first.rows[1]?.config_a_id, calm.name)
    const { body } = await server.call('GET', first.next ?? '')
    assert.deepEqual(
      body.comparisons.map((row: Json) => row.question),
      ['One.'],
    )
    assert.equal((await read('&limit=3')).next, undefined)
    assert.deepEqual(
      (await read('&unvoted=true')).rows.map((row) => row.comparison_id),
      [ids[0], ids[2]],
    )
    assert.equal((await server.call('GET', `/api/ab/comparisons?client_id=${user}&limit=101`)).status, 400)
  })
})

describe('the rest of the contract', () => {
  it('compares the default with itself if no configuration is named', async () => {
    const user = someone()
    const { id, frames } = await server.compareToEnd(user, { message: 'Alone.', config_a: null, config_b: 'default' })

    assert.deepEqual(
      arms.map((arm) => textOfArm(frames, arm)),
      ['Hello from the fake provider.', 'Hello from the fake provider.'],
    )
    await server.vote(user, id, 'a')
    const comparison = await server.comparison(user, id)
    assert.deepEqual([comparison.config_a_id, comparison.config_b_id], ['default', 'default'])
  })

  it('takes the question in the form of the chat client too', async () => {
    const user = someone()
    const { frames } = await server.compareToEnd(user, { last_message: [['User', `Pairs. ${user}`]] })

    assert.equal((await server.asked(`Pairs. ${user}`)).length, 2)
    assert.equal(frames.at(-1)?.json.type, 'done')
  })

  it('refuses an unknown configuration and an empty question before anything is stored', async () => {
    const user = someone()
    const unknown = await server.call('POST', '/api/ab/compare', {
      body: { client_id: user, message: 'Hi', config_a: 'nobody', config_b: 'default' },
    })
    const empty = await server.call('POST', '/api/ab/compare', {
      body: { client_id: user, message: ' ', config_a: 'default', config_b: 'default' },
    })

    assert.deepEqual([unknown.status, unknown.body.code], [400, 'unknown_config'])
    assert.equal(empty.status, 400)
    const { body } = await server.call('GET', `/api/list_conversations?client_id=${user}`)
    assert.deepEqual(body.conversations, [])
  })

  it('refuses fields that would choose how an arm answers, and names every one of them', async () => {
    const user = someone()
    const question = { client_id: user, message: 'Hi', config_a: 'default', config_b: 'default' }
    for (const fields of [
      { model_a: 'x', model_b: 'y' },
      { config_name: calm.name },
      { configA: calm.name, configB: wild.name },
      { config_a_id: calm.name },
      { provider: 'openai', model: 'other' },
      { models: ['x', 'y'] },
      { temperature: 0.9 },
      { system_prompt: 'Be brief.' },
      { is_refresh: true },
    ]) {
      const { status, body } = await server.call('POST', '/api/ab/compare', { body: { ...question, ...fields } })
      assert.deepEqual([status, body.code], [400, 'invalid_request'], JSON.stringify(fields))
      for (const name of Object.keys(fields)) assert.ok(body.error.includes(name), body.error)
    }
    const { body } = await server.call('GET', `/api/list_conversations?client_id=${user}`)
    assert.deepEqual(body.conversations, [])

    const nothing = { config_name: null, is_refresh: false, provider: null, model: '', page: 'chat' }
    const { frames } = await server.compareToEnd(user, { message: 'Hi', ...nothing })
    assert.equal(frames.at(-1)?.json.vote_requested, true, 'fields that say nothing do no harm')
  })

  it('streams one JSON object per line if the request asks for it', async () => {
    const user = someone()
    const response = await fetch(`${server.polylog.baseUrl}/api/ab/compare`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/x-ndjson' },
      body: JSON.stringify({ client_id: user, message: 'Lines.', config_a: 'default', config_b: 'default' }),
    })
    const text = await response.text()

    assert.match(response.headers.get('content-type') ?? '', /^application\/x-ndjson/)
    const frames = text
      .trim()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Json)
    assert.deepEqual(
      frames.slice(-2).map((frame) => [frame.type, frame.arm]),
      [
        ['done', 'a'],
        ['done', 'b'],
      ],
    )
  })

  it('forgets a comparison with its conversation', async () => {
    const user = someone()
    const { id, conversationId } = await server.compareToEnd(user, 'Forget.')

    const deleted = await server.call('POST', '/api/delete_conversation', {
      body: { client_id: user, conversation_id: conversationId },
    })

    assert.equal(deleted.status, 200, deleted.text)
    assert.equal((await server.vote(user, id, 'a')).status, 404)
  })

  it('does not change the history if a later answer replaced both', async () => {
    const user = someone()
    await server.script(user, says('Calm.'), says('Wild!'))
    const { id, conversationId } = await server.compareToEnd(user, `Again. ${user}`)
    await server.provider.script([says('Third.')], user)
    await server.call('POST', '/api/get_chat_response', {
      body: { client_id: user, conversation_id: conversationId, is_refresh: true },
    })
    assert.deepEqual(await server.contents(user, conversationId), [`Again. ${user}`, 'Third.'])

    assert.equal((await server.vote(user, id, 'b')).status, 200)

    assert.deepEqual(await server.contents(user, conversationId), [`Again. ${user}`, 'Third.'])
  })
})

describe('the metrics', () => {
  it('count wins of configurations, not of sides, with ratings, intervals and plain words', async () => {
    const user = someone()
    for (let round = 0; round < 12; round++) {
      const marker = someone('round')
      await server.script(marker, says('Calm.'), says('Wild!'))
      const { id, frames } = await server.compareToEnd(user, `Metrics. ${marker}`)
      await server.vote(user, id, round === 11 ? 'both_bad' : textOfArm(frames, 'a') === 'Calm.' ? 'a' : 'b')
    }

    const { status, body, text } = await server.call('GET', `/api/ab/metrics?client_id=${user}`)

    assert.equal(status, 200, text)
    assert.equal(body.scope, 'mine')
    assert.equal(body.votes, 12)
    const [best, other] = body.configs as [Json, Json]
    assert.deepEqual(
      [best.config, best.wins, best.losses, best.ties, best.both_bad, best.verdict],
      [calm.name, 11, 0, 0, 1, 'better'],
    )
    assert.deepEqual([other.config, other.wins, other.losses, other.verdict], [wild.name, 0, 11, 'worse'])
    assert.ok(best.rating_low > other.rating_high, 'the intervals do not touch')
    assert.ok(best.rating_low < best.rating && best.rating < best.rating_high)
    const [pair] = body.pairs as [Json]
    assert.deepEqual(
      [pair.config_a, pair.config_b, pair.wins, pair.losses, pair.both_bad],
      [calm.name, wild.name, 11, 0, 1],
    )
    assert.equal(pair.sentence, `${calm.name} is preferred to ${wild.name}.`)
    assert.equal(body.position_bias.first_side_wins + body.position_bias.second_side_wins, 11)

    const all = await server.call('GET', '/api/ab/metrics')
    assert.equal(all.body.scope, 'all')
    assert.ok(all.body.votes >= 12)
  })

  it('say "too few votes" after one', async () => {
    const user = someone()
    const { id } = await server.compareToEnd(user, 'One vote.')
    await server.vote(user, id, 'a')

    const { body } = await server.call('GET', `/api/ab/metrics?client_id=${user}`)

    assert.equal(body.pairs[0].verdict, 'too_few_votes')
    assert.match(body.pairs[0].sentence, /^Too few votes/)
  })
})
