// The FCMP specification, scenario by scenario, over real sockets: the same checks
// for jobs and for runs with an uploaded skill. The rest of the job API is
// tested in the jobs*.test.ts files; heartbeats with a manual clock, and every cursor of
// every scenario, in test/http/fcmp.test.ts.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { violationOf } from '../../src/dialects/fcmp/envelope.ts'
import { writeZip } from '../../src/kit/zip-writer.ts'
import type { Action } from '../support/fake-provider.ts'
import {
  calls,
  hangsAfter,
  type TestServer,
  type Json,
  says,
  someone,
  startTestServer,
  startTestServerProcess,
} from '../support/test-server.ts'
import { openStream, type SseFrame, type SseStream } from '../support/sse.ts'
import { families, type Family, sharedJobServer, writeSkill } from '../support/jobs.ts'
import { changeJournal } from '../support/test-database.ts'

const skill: Readonly<Record<string, string>> = {
  'SKILL.md': '---\nname: errand\ndescription: Runs an errand.\n---\nRun the errand. Ask where you have to.',
  'assets/runner.json': JSON.stringify({
    id: 'errand',
    execution_modes: ['auto', 'interactive'],
    schemas: { input: 'assets/any.json', parameter: 'assets/any.json', output: 'assets/any.json' },
  }),
  'assets/any.json': JSON.stringify({ type: 'object' }),
}
const answer = '{"done":true}'

const { server, folder } = sharedJobServer({ POLYLOG_FCMP_HEARTBEAT_MS: '40' })
const settings = { POLYLOG_SKILLS_DIR: folder, POLYLOG_FCMP_HEARTBEAT_MS: '40' }
writeSkill(folder, 'errand', skill)

type Job = { user: string; id: string; path: string }

/** A run of the errand whose model answers with `script`, step by step. */
async function start(family: Family, script: Action[][], options: Json = {}, where = server): Promise<Job> {
  const user = someone()
  await where.provider.script(script, user)
  const runtime_options = { execution_mode: 'interactive', ...options }
  const common = { input: { what: user }, runtime_options }
  const body = family === 'jobs' ? { skill_id: 'errand', ...common } : common
  const created = await where.call('POST', `/v1/${family}`, { user, body })
  assert.equal(created.status, 200, created.text)
  const id = String(created.body.request_id)
  const job = { user, id, path: `/v1/${family}/${id}` }
  if (family === 'temp-skill-runs') await upload(job, where)
  return job
}

async function upload({ path, user }: Job, where = server): Promise<void> {
  const files = Object.entries(skill).map(([name, text]) => ({ path: `errand/${name}`, body: Buffer.from(text) }))
  const form = new FormData()
  form.set('skill_package', new Blob([new Uint8Array(writeZip(files))], { type: 'application/zip' }), 'errand.zip')
  const url = `${where.polylog.baseUrl}${path}/upload?userId=${user}`
  const response = await fetch(url, { method: 'POST', body: form })
  assert.equal(response.status, 200, await response.text())
}

function follow(
  { path, user }: Job,
  query = '',
  headers: Record<string, string> = {},
  where = server,
): Promise<SseStream> {
  return openStream(`${where.polylog.baseUrl}${path}/events?userId=${user}${query}`, { headers })
}

async function history({ path, user }: Job, query = '', where = server): Promise<Json> {
  return (await where.call('GET', `${path}/events/history${query}`, { user })).body
}

const envelope = (frame: SseFrame): Json => frame.json
const chat = (frames: readonly SseFrame[]) => frames.filter(({ event }) => event === 'chat_event').map(envelope)
const is = (type: string) => (frame: SseFrame) => frame.event === 'chat_event' && envelope(frame).type === type
const reaches = (to: string) => (frame: SseFrame) =>
  is('conversation.state.changed')(frame) && envelope(frame).data.to === to
const asksOnce = [
  calls(['ask_user', { question: 'Which one?', kind: 'choose_one', options: ['a', 'b'] }]),
  says(answer),
]

function told({ type, data }: Json): string {
  if (type === 'conversation.state.changed') return `${data.from}>${data.to} (${data.trigger})`
  return String(type)
}

function assertGapless(events: readonly Json[]): void {
  assert.deepEqual(
    events.map(({ seq }) => seq),
    events.map((_, index) => index + 1),
  )
}

for (const family of families) {
  describe(`over /v1/${family}`, () => {
    describe('Requirement: 系统 MUST 提供 FCMP 单流 SSE 接口', () => {
      const name = family === 'jobs' ? '建立 Jobs 事件流' : '建立 Temp Skill 事件流'
      test(`Scenario: ${name}`, async () => {
        const job = await start(family, [says(answer)])

        const stream = await follow(job)
        const { cut } = await stream.ended()

        assert.equal(cut, false)
        assert.match(String(stream.headers['content-type']), /^text\/event-stream/)
        assert.equal(stream.headers['x-accel-buffering'], 'no')
        const [first] = stream.frames
        assert.deepEqual(
          [first?.event, first?.id, (first?.json as Json | undefined)?.cursor],
          ['snapshot', undefined, 0],
        )
        assert.deepEqual(
          stream.frames.slice(1).filter(({ event }) => event !== 'chat_event' && event !== 'heartbeat'),
          [],
        )
        assert.deepEqual(chat(stream.frames).map(told), [
          'queued>running (turn.started)',
          'conversation.started',
          'assistant.message.final',
          'running>succeeded (turn.succeeded)',
          'conversation.completed',
        ])
      })
    })

    describe('Requirement: SSE MUST 提供保活且不暴露 legacy 业务事件', () => {
      test('Scenario: heartbeat 保活', async () => {
        const job = await start(family, [hangsAfter('Well')])
        const stream = await follow(job)

        const beat = await stream.waitFor(({ event }) => event === 'heartbeat')

        assert.equal(beat.id, undefined)
        assert.match(String(envelope(beat).ts), /^\d{4}-.*Z$/)
        await server.call('POST', `${job.path}/cancel`, { user: job.user })
        await stream.ended()
        const names = new Set(stream.frames.map(({ event }) => event))
        assert.deepEqual(names, new Set(['snapshot', 'chat_event', 'heartbeat']))
      })
    })

    describe('Requirement: waiting_user 与终态语义 MUST 由 FCMP 表达', () => {
      test('Scenario: waiting_user', async () => {
        const job = await start(family, asksOnce)
        const stream = await follow(job)

        const waiting = envelope(await stream.waitFor(reaches('waiting_user')))
        const asked = envelope(await stream.waitFor(is('user.input.required')))

        assert.equal(waiting.data.pending_interaction_id, 1)
        assert.deepEqual(asked.data, { interaction_id: 1, kind: 'choose_one', prompt: 'Which one?' })
        const pending = (await server.call('GET', `${job.path}/interaction/pending`, { user: job.user })).body.pending
        assert.deepEqual([pending.interaction_id, pending.kind], [1, asked.data.kind])
        const again = await follow(job, `&cursor=${asked.seq}`)
        const snapshot = await again.waitFor(({ event }) => event === 'snapshot')
        assert.deepEqual(envelope(snapshot), { status: 'waiting_user', cursor: asked.seq, pending_interaction_id: 1 })
        // Open, and alive.
        await again.waitFor(({ event }) => event === 'heartbeat')
        again.leave()
        stream.leave()
      })

      for (const from of ['queued', 'running', 'waiting_user'] as const) {
        test(`Scenario: canceled, from ${from}`, async () => {
          const slow =
            from === 'queued'
              ? await startTestServer({ ...settings, POLYLOG_CONCURRENCY: '1' }, server.provider)
              : server
          try {
            if (from === 'queued') {
              const first = await start(family, [hangsAfter('busy')], {}, slow)
              await (await follow(first, '', {}, slow)).waitFor(reaches('running'))
            }
            const job = await start(family, from === 'waiting_user' ? asksOnce : [hangsAfter('Well')], {}, slow)
            const stream = await follow(job, '', {}, slow)
            if (from !== 'queued') await stream.waitFor(reaches(from))
            else await stream.waitFor(({ event }) => event === 'snapshot')

            const cancelled = await slow.call('POST', `${job.path}/cancel`, { user: job.user })
            const again = await slow.call('POST', `${job.path}/cancel`, { user: job.user })
            await stream.ended()

            assert.deepEqual([cancelled.status, cancelled.body.accepted], [200, true])
            assert.deepEqual([again.status, again.body.accepted], [200, false])
            const events = chat(stream.frames)
            assert.equal(told(events.at(-2) as Json), `${from}>canceled (run.canceled)`)
            assert.equal(events.at(-1)?.type, 'conversation.failed')
            assert.deepEqual(events.at(-1)?.data, { error: { category: 'runtime', code: 'CANCELED' } })
            assertGapless(events)
          } finally {
            if (slow !== server) await slow.close()
          }
        })
      }
    })

    describe('Requirement: `chat_event` 输出 MUST 满足 FCMP Schema', () => {
      test('Scenario: chat_event 合法输出', async () => {
        const job = await start(family, asksOnce)
        const stream = await follow(job)
        await stream.waitFor(is('user.input.required'))
        await reply(job, 1, 'a')
        await stream.ended()

        for (const event of chat(stream.frames)) {
          assert.equal(violationOf(event), null)
          assert.equal(event.run_id, job.id)
        }
      })
    })

    describe('Requirement: history 读取 MUST 兼容旧脏数据', () => {
      test('Scenario: 旧事件不合规', async () => {
        const first = await startTestServer(settings, server.provider)
        const job = await start(family, [says(answer)], {}, first)
        await (await follow(job, '', {}, first)).ended()
        const whole = await history(job, '', first)
        await first.polylog.stop()
        await spoil(first.polylog.dataDir, job.id, 'message.done', () => 'not even JSON')
        // Fits the journal, and does not fit FCMP: attempts count from 1.
        await spoil(first.polylog.dataDir, job.id, 'run.ended', (line) => line.replace('"attempt":1', '"attempt":0'))

        const second = await first.restart()
        try {
          const { count, events, diagnostics } = await history(job, '', second)
          const stream = await follow(job, '', {}, second)
          await stream.ended()

          assert.equal(count, whole.count - 2)
          assert.deepEqual(
            events.map(({ type }: Json) => type),
            ['conversation.state.changed', 'conversation.started', 'conversation.state.changed'],
          )
          assertGapless(events)
          assert.deepEqual(
            diagnostics.map((diagnostic: Json) => [diagnostic.code, diagnostic.count]),
            [
              ['HISTORY_ROW_UNREADABLE', 1],
              ['SCHEMA_INTERNAL_INVALID', 1],
            ],
          )
          assert.deepEqual(chat(stream.frames), events)
          assert.match(second.polylog.log(), /does not fit FCMP/)
        } finally {
          await second.close()
        }
      })
    })

    describe('Requirement: 关键 FCMP 事件 MUST 满足配对不变量', () => {
      test('Scenario: waiting_user 配对约束', async () => {
        const job = await start(family, asksOnce)
        await (await follow(job)).waitFor(is('user.input.required'))

        const { events } = await history(job)

        const at = events.findIndex((event: Json) => event.data.to === 'waiting_user')
        assert.equal(events[at + 1].type, 'user.input.required')
        assert.equal((await server.call('GET', `${job.path}/invariants`, { user: job.user })).body.kept, true)
      })

      test('Scenario: reply/timeout 配对约束', async () => {
        const replied = await start(family, asksOnce)
        const timedOut = await start(family, asksOnce, {
          interactive_require_user_reply: false,
          session_timeout_sec: 1,
        })
        const [one, two] = [await follow(replied), await follow(timedOut)]
        await one.waitFor(is('user.input.required'))
        assert.equal((await reply(replied, 1, 'a')).status, 200)
        await one.ended()
        await two.ended()

        for (const [stream, type] of [
          [one, 'interaction.reply.accepted'],
          [two, 'interaction.auto_decide.timeout'],
        ] as const) {
          const events = chat(stream.frames)
          const at = events.findIndex((event) => event.type === type)
          assert.notEqual(at, -1)
          assert.equal(told(events[at + 1] as Json), `waiting_user>queued (${type})`)
          assert.equal(events.filter((event) => event.type === type).length, 1)
          assert.deepEqual([events[at]?.meta.attempt, events.at(-1)?.meta.attempt], [1, 2])
        }
        const timeout = chat(two.frames).find(({ type }) => type === 'interaction.auto_decide.timeout')
        assert.deepEqual([timeout?.data.policy, timeout?.data.timeout_sec], ['engine_judgement', 1])
        for (const job of [replied, timedOut]) {
          const { body } = await server.call('GET', `${job.path}/invariants`, { user: job.user })
          assert.deepEqual(
            body.rules.filter(({ kept }: Json) => kept === false),
            [],
          )
          assert.equal(body.kept, true)
        }
      })
    })

    describe('Requirement: FCMP seq MUST 单调连续', () => {
      test('Scenario: seq 连续', async () => {
        const job = await start(family, asksOnce)
        const stream = await follow(job)
        const asked = envelope(await stream.waitFor(is('user.input.required')))
        const half = await follow(job, `&cursor=2`, { 'last-event-id': String(asked.seq - 1) })
        await reply(job, 1, 'b')
        await stream.ended()
        await half.ended()

        const events = chat(stream.frames)
        assertGapless(events)
        assert.deepEqual((await history(job)).events, events)
        assert.deepEqual(chat(half.frames), events.slice(asked.seq - 1))
        assert.deepEqual((await history(job, `?from_seq=3&to_seq=5`)).events, events.slice(2, 5))
        for (const event of events) {
          const late = await follow(job, `&cursor=${event.seq}`)
          await late.ended()
          assert.deepEqual(chat(late.frames), events.slice(event.seq))
          assert.equal(late.status, 200)
          assert.deepEqual(late.frames.filter(({ event: name }) => name === 'snapshot').map(envelope), [
            { status: 'succeeded', cursor: event.seq },
          ])
        }
        // An EventSource that reconnects after the last event gets 204; a request with an earlier Last-Event-ID gets a snapshot.
        for (const [query, header, status] of [
          ['', String(events.length), 204],
          ['&cursor=1', String(events.length), 204],
          [`&cursor=${events.length}`, String(events.length), 204],
          [`&cursor=${events.length}`, '1', 200],
        ] as const) {
          const end = await follow(job, query, { 'last-event-id': header })
          await end.ended()
          assert.deepEqual([end.status, end.frames.length], [status, status === 204 ? 0 : 1])
        }
        for (const cursor of [events.length + 1, -1, 'x']) {
          const refused = await server.call('GET', `${job.path}/events?cursor=${cursor}`, { user: job.user })
          assert.deepEqual([refused.status, refused.body.code], [400, 'unknown_cursor'])
        }
      })

      test('Scenario: seq 连续, over a kill while a person is awaited and one in mid-sentence', async () => {
        const first = await startTestServerProcess(settings, server.provider)
        const script = [calls(['ask_user', { question: 'Which?' }]), hangsAfter('{"do'), says(answer)]
        const job = await start(family, script, {}, first)
        const seen = await follow(job, '', {}, first)
        const asked = envelope(await seen.waitFor(is('user.input.required')))
        await first.polylog.kill()

        const second = await first.restartProcess()
        const stream = await follow(job, `&cursor=${asked.seq}`, {}, second)
        await reply(job, 1, 'a', second)
        await stream.waitFor(reaches('running'))
        await server.askedTimes(job.user, 2)
        await second.polylog.kill()

        const third = await second.restart()
        try {
          const last = chat(stream.frames).at(-1)?.seq ?? 0
          const rest = await follow(job, '', { 'last-event-id': String(last) }, third)
          await rest.ended()

          const all = [...chat(seen.frames), ...chat(stream.frames), ...chat(rest.frames)]
          assertGapless(all)
          assert.deepEqual(all, (await history(job, '', third)).events)
          assert.ok(all.map(told).includes('running>queued (restart.requeued)'))
          assert.equal(all.at(-1)?.type, 'conversation.completed')
          assert.equal((await third.call('GET', `${job.path}/invariants`, { user: job.user })).body.kept, true)
        } finally {
          await third.close()
        }
      })
    })
  })
}

test('a run exists from the first request: it can be streamed, read and cancelled before its upload', async () => {
  const user = someone()
  const { body } = await server.call('POST', '/v1/temp-skill-runs', { user, body: {} })
  const job = { user, id: String(body.request_id), path: `/v1/temp-skill-runs/${body.request_id}` }
  const stream = await follow(job)
  const snapshot = await stream.waitFor(({ event }) => event === 'snapshot')
  const before = await history(job)

  await server.call('POST', `${job.path}/cancel`, { user })
  await stream.ended()

  assert.deepEqual(envelope(snapshot), { status: 'queued', cursor: 0 })
  assert.deepEqual([before.count, before.events], [0, []])
  assert.deepEqual(chat(stream.frames).map(told), ['queued>canceled (run.canceled)', 'conversation.failed'])
})

test('any run can be read as FCMP, with addresses of the journal as cursors', async () => {
  const user = someone()
  const native = await server.chat(user, user)
  await native.ended()
  const path = `/v1/agent/runs/${String(native.headers['x-run-id'])}`

  const url = `${server.polylog.baseUrl}${path}/stream?format=fcmp&userId=${user}`
  const whole = await openStream(url)
  await whole.ended()

  const frames = whole.frames.filter(({ event }) => event === 'chat_event')
  assertGapless(frames.map(envelope))
  for (const [index, frame] of frames.slice(0, -1).entries()) {
    const rest = await openStream(`${url}&after=${frame.id}`)
    await rest.ended()
    assert.deepEqual(chat(rest.frames), frames.slice(index + 1).map(envelope))
  }
  assert.equal((await server.call('GET', `${path}/invariants`, { user })).body.kept, true)
  assert.equal((await server.call('GET', `${path.replace('/agent/runs', '/jobs')}/events`, { user })).status, 404)
})

function reply(
  { path, user }: Job,
  interaction_id: number,
  response: string,
  where = server,
): ReturnType<TestServer['call']> {
  return where.call('POST', `${path}/interaction/reply`, { user, body: { interaction_id, response } })
}

/** Changes the stored line of the first event of a type. The server must be stopped. */
async function spoil(dataDir: string, runId: string, type: string, change: (line: string) => string): Promise<void> {
  await changeJournal(dataDir, runId, (line, index, lines) =>
    index === lines.findIndex((each) => each.includes(`"type":"${type}"`)) ? change(line) : line,
  )
}
