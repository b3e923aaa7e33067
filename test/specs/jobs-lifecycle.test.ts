// Jobs from admission to their end: a full queue, cancelling in every state, and restarts of
// the server; over real sockets.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  asks,
  blobCount,
  errand,
  errandResult,
  type Job,
  jobOf,
  startJob,
  statusAndCode,
  upload,
  zipped,
  sharedJobServer,
} from '../support/jobs.ts'
import {
  hangsAfter,
  type Json,
  says,
  someone,
  startTestServer,
  startTestServerProcess,
} from '../support/test-server.ts'

const { server, folder } = sharedJobServer()

describe('cancelling', () => {
  test('from queued, running and waiting says where the job stood, and a second time is not accepted', async () => {
    const small = await startTestServer({ POLYLOG_SKILLS_DIR: folder, POLYLOG_CONCURRENCY: '1' }, server.provider)
    try {
      const running = someone('running')
      await server.provider.script([hangsAfter('{')], running)
      const first = await startJob(small, 'jobs', running)
      await small.askedTimes(running, 1)
      const queued = await startJob(small, 'jobs', someone('queued'))
      await cancels(queued, 'queued')
      await cancels(first, 'running')
      const asking = someone('asking')
      await server.provider.script([asks({ question: 'Go on?' })], asking)
      const parked = await startJob(small, 'jobs', asking)
      await parked.reaches('waiting_user')
      await cancels(parked, 'waiting_user')
    } finally {
      await small.close()
    }
  })

  async function cancels(job: Job, from: string): Promise<void> {
    assert.equal((await job.get()).body.status, from)
    const { body } = await job.post('/cancel')
    const again = await job.post('/cancel')
    const events = (await job.get('/events/history')).body.events as Json[]

    assert.deepEqual([body.request_id, body.run_id, body.status, body.accepted], [job.id, job.id, 'canceled', true])
    assert.deepEqual([again.status, again.body.status, again.body.accepted], [200, 'canceled', false])
    assert.deepEqual(
      events.slice(-2).map(({ type, data }) => [type, data.from, data.to, data.trigger, data.error?.code]),
      [
        ['conversation.state.changed', from, 'canceled', 'run.canceled', undefined],
        ['conversation.failed', undefined, undefined, undefined, 'CANCELED'],
      ],
    )
    assert.deepEqual((await job.get()).body.error.code, 'CANCELED_BY_USER')
    assert.equal((await job.get('/interaction/pending')).body.pending, null)
  }
})

describe('a restart', () => {
  test('finds queued, running, held and waiting jobs where they were; they go on, and seq has no hole', async () => {
    const first = await startTestServerProcess(
      { POLYLOG_SKILLS_DIR: folder, POLYLOG_CONCURRENCY: '1' },
      server.provider,
    )
    const [asking, alone, running, queued, held] = ['asking', 'alone', 'running', 'queued', 'held'].map((name) =>
      someone(name),
    ) as [string, string, string, string, string]
    await server.provider.script([asks({ question: 'Go on?' }), says(errandResult)], asking)
    await server.provider.script([asks({ question: 'Anybody?' }), says(errandResult)], alone)
    await server.provider.script([hangsAfter('{"done"'), says(errandResult)], running)
    await server.provider.script([says(errandResult)], queued)
    await server.provider.script([says(errandResult)], held)
    const jobs = {
      asking: await startJob(first, 'temp-skill-runs', asking),
      alone: await startJob(first, 'jobs', alone, { interactive_require_user_reply: false, session_timeout_sec: 1 }),
    }
    await jobs.asking.reaches('waiting_user')
    await jobs.alone.reaches('waiting_user', 'succeeded')
    const second = { running: await startJob(first, 'jobs', running) }
    await first.askedTimes(running, 1)
    const third = { queued: await startJob(first, 'jobs', queued) }
    const created = await first.call('POST', '/v1/temp-skill-runs', { user: held, body: { input: { what: held } } })
    const all = {
      ...jobs,
      ...second,
      ...third,
      held: jobOf(first, 'temp-skill-runs', held, String(created.body.request_id)),
    }
    await first.polylog.kill()

    const again = await first.restart()
    try {
      const now = (name: keyof typeof all, family: 'jobs' | 'temp-skill-runs' = 'jobs') =>
        jobOf(again, family, all[name].user, all[name].id)
      await now('running').reaches('succeeded')
      await now('queued').reaches('succeeded')
      const status = await now('alone').reaches('succeeded')
      const parked = now('asking', 'temp-skill-runs')
      assert.equal((await parked.get()).body.status, 'waiting_user')
      assert.equal(await blobCount(again, parked), 4)
      assert.equal((await parked.reply(1, 'yes')).status, 200)
      await parked.reaches('succeeded')
      assert.equal(await blobCount(again, parked), 0)
      const waits = now('held', 'temp-skill-runs')
      assert.equal((await waits.get()).body.status, 'queued')
      assert.equal((await upload(again, waits.path, held, { skill_package: zipped(errand()) })).status, 200)
      await waits.reaches('succeeded')

      assert.equal(status.auto_decision_count, 1)
      for (const job of [now('running'), now('queued'), now('alone'), parked, waits]) {
        const events = (await job.get('/events/history')).body.events as Json[]
        assert.deepEqual(
          events.map(({ seq }) => seq),
          events.map((_, index) => index + 1),
        )
        assert.equal(events.at(-1)?.type, 'conversation.completed')
      }
      const alonely = (await now('alone').get('/events/history')).body.events as Json[]
      assert.equal(alonely.filter(({ type }) => type === 'interaction.auto_decide.timeout').length, 1)
    } finally {
      await again.close()
    }
  })
})

describe('admission', () => {
  test('a full queue is 429 and changes nothing, for creating and for uploading; a waiting job holds no slot', async () => {
    const small = await startTestServer(
      { POLYLOG_SKILLS_DIR: folder, POLYLOG_CONCURRENCY: '1', POLYLOG_QUEUE_MAX: '1' },
      server.provider,
    )
    try {
      const asking = someone('asking')
      await server.provider.script([asks({ question: 'Go?' }), says(errandResult)], asking)
      const parked = await startJob(small, 'jobs', asking)
      await parked.reaches('waiting_user')
      const busy = someone('busy')
      await server.provider.script(
        [[{ text: ['{"done"'] }, { stall: true }, { text: [':true}'] }, { finish: 'stop' }]],
        busy,
      )
      const running = await startJob(small, 'jobs', busy)
      await small.askedTimes(busy, 1)
      const held = someone('held')
      const created = await small.call('POST', '/v1/temp-skill-runs', { user: held, body: { input: { what: held } } })
      const waits = jobOf(small, 'temp-skill-runs', held, String(created.body.request_id))
      const queued = await startJob(small, 'jobs', someone('queued'), {})
      const user = someone('refused')

      const refused = await small.call('POST', '/v1/jobs', {
        user,
        body: { skill_id: 'errand', input: { what: user } },
      })
      const late = await upload(small, waits.path, held, { skill_package: zipped(errand()) })

      assert.deepEqual(statusAndCode(refused), [429, 'queue_full'])
      assert.ok(Number(refused.headers.get('retry-after')) >= 1)
      assert.deepEqual((await small.call('GET', '/v1/agent/runs', { user })).body, [])
      assert.deepEqual(statusAndCode(late), [429, 'queue_full'])
      assert.equal(await blobCount(small, waits), 0)
      assert.deepEqual((await waits.get('/events/history')).body.events, [])
      // A reply is never refused for want of room: the job was let in before.
      assert.equal((await parked.reply(1, 'yes')).status, 200)
      assert.equal((await parked.get()).body.status, 'queued')
      await queued.post('/cancel')
      assert.equal((await upload(small, waits.path, held, { skill_package: zipped(errand()) })).status, 200)
      await server.provider.script([says(errandResult)], held)
      await server.provider.release()
      await running.reaches('succeeded')
      await parked.reaches('succeeded')
      await waits.reaches('succeeded', 'failed')
    } finally {
      await small.close()
    }
  })
})
