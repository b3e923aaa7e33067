// Jobs whose first stored row can no longer be read: damage on disk, an old version, another
// program. Every route still shows what the other rows and tables contain.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { calls, type Json, says, someone } from '../support/test-server.ts'
import { errand, families, type Job, jobOf, startJob, upload, zipped, sharedJobServer } from '../support/jobs.ts'
import { changeJournal } from '../support/test-database.ts'

const { server } = sharedJobServer()

const reads = [
  '',
  '/events/history',
  '/logs',
  '/logs/range?stream=pty&byte_to=9999',
  '/artifacts',
  '/artifacts/a.md',
  '/interaction/pending',
  '/invariants',
  '/result',
  '/bundle',
]

test('a job whose first row is damaged is still readable on every route, and only what is lost is missing', async () => {
  const jobs: Record<'ended' | 'waiting' | 'held', Job[]> = { ended: [], waiting: [], held: [] }
  for (const family of families) {
    const saves = someone('ended')
    await server.provider.script(
      [calls(['save_artifact', { path: 'a.md', content: 'a' }]), says('{"done":true}')],
      saves,
    )
    jobs.ended.push(await startJob(server, family, saves, { execution_mode: 'auto' }))
    const asks = someone('waiting')
    await server.provider.script([calls(['ask_user', { question: 'Which?' }])], asks)
    jobs.waiting.push(await startJob(server, family, asks))
    const user = someone('held')
    const body = family === 'jobs' ? { skill_id: 'needs-file', input: { what: user } } : {}
    const created = await server.call('POST', `/v1/${family}`, { user, body })
    jobs.held.push(jobOf(server, family, user, String(created.body.request_id)))
  }
  for (const job of jobs.ended) await job.reaches('succeeded')
  for (const job of jobs.waiting) await job.reaches('waiting_user')
  await server.polylog.stop()
  for (const job of Object.values(jobs).flat()) await damageFirstRow(server.polylog.dataDir, job.id)
  await server.restart()

  for (const [kind, list] of Object.entries(jobs)) {
    for (const { path, user, id } of list) {
      for (const rest of reads) {
        const answer = await server.call('GET', path + rest, { user })
        const early = kind !== 'ended' && ['/result', '/bundle', '/artifacts/a.md'].includes(rest)
        assert.equal(answer.status, early ? 404 : 200, `${kind} ${rest}: ${answer.text}`)
      }
      const { body } = await server.call('GET', path, { user })
      assert.deepEqual([body.request_id, body.engine], [id, 'unknown'])
      const stream = await jobOf(server, path.includes('temp') ? 'temp-skill-runs' : 'jobs', user, id).events()
      await stream.waitFor(({ event }) => event === 'snapshot')
      stream.leave()
    }
  }
  for (const { path, user } of jobs.ended) {
    const { result } = (await server.call('GET', `${path}/result`, { user })).body
    assert.deepEqual([result.status, result.artifacts], ['succeeded', ['artifacts/a.md']])
    const { events, diagnostics } = (await server.call('GET', `${path}/events/history`, { user })).body
    assert.equal((events as Json[]).at(-1)?.type, 'conversation.completed')
    assert.deepEqual([diagnostics[0].code, diagnostics[0].count], ['HISTORY_ROW_UNREADABLE', 1])
  }
  for (const { path, user } of jobs.held) {
    const parts = path.includes('temp')
      ? { skill_package: zipped(errand()) }
      : { file: zipped({ 'notes.txt': 'x' }, '') }
    const answer = await upload(server, path, user, parts)
    assert.deepEqual([answer.status, answer.body.code], [409, 'job_unreadable'])
    assert.equal((await server.call('POST', `${path}/cancel`, { user })).body.accepted, true)
  }
  for (const { path, user } of jobs.waiting) {
    const { body } = await server.call('GET', `${path}/interaction/pending`, { user })
    assert.deepEqual([body.status, body.pending.prompt], ['waiting_user', 'Which?'])
    assert.equal((await server.call('POST', `${path}/cancel`, { user })).body.accepted, true)
  }
})

/** Cuts the stored text of `run.accepted`. The server must be stopped. */
async function damageFirstRow(dataDir: string, runId: string): Promise<void> {
  await changeJournal(dataDir, runId, (line) => (line.includes('"type":"run.accepted"') ? line.slice(0, 40) : line))
}
