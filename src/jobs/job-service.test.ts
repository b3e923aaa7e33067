// Jobs under a clock that is moved: deadlines of questions, who wins, and what a restart
// makes of them. The real scheduler, loop and store; only the model is scripted.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { calls, openRig, type Rig, type RigOptions, says, toolOf } from '../../test/support/run-rig.ts'
import { crashImage } from '../../test/support/test-database.ts'
import type { StepRequest } from '../engines/engine.ts'
import type { JsonValue } from '../journal/event.ts'
import type { Skill } from '../skills/skill.ts'
import { createJobTools, type JobFiles } from '../tools/job-tools.ts'
import type { RunRow } from '../stores/run-store.ts'
import { JobAcceptance } from './job-acceptance.ts'
import { jobFilesOf } from './job-files.ts'
import { JobService } from './job-service.ts'
import { ended } from '../../test/support/run-helpers.ts'

const skill: Skill = {
  id: 'errand',
  name: 'Errand',
  description: '',
  version: undefined,
  text: 'Run the errand.',
  modes: ['auto', 'interactive'],
  engines: null,
  unsupportedEngines: [],
  schemas: { input: undefined, parameter: undefined, output: undefined },
  fileInputs: [],
  files: [],
}
const timeoutMs = 60_000
const uploadTtlMs = 50_000

/** Asks once, then repeats the reply. */
function asksOnce(request: StepRequest) {
  const told = request.messages.findLast((message) => message.role === 'tool')
  return told === undefined ? calls({ callId: 'c1', name: 'ask_user', input: { question: 'Go?' } }) : says(told.content)
}

async function rigged(
  context: TestContext,
  options: RigOptions = {},
): Promise<{ rig: Rig; jobs: JobService; acceptance: JobAcceptance }> {
  const lateStore: { store?: Rig['store'] } = {}
  const files = () => jobFilesOf(lateStore.store!, () => Promise.resolve(undefined))
  const jobFiles: JobFiles = {
    readInput: (...given) => files().readInput(...given),
    putArtifact: (...given) => files().putArtifact(...given),
    listSkillFiles: (...given) => files().listSkillFiles(...given),
    readSkillFile: (...given) => files().readSkillFile(...given),
  }
  const rig = await openRig({
    answer: asksOnce,
    ...options,
    tools: [...createJobTools(jobFiles), ...(options.tools ?? [])],
  })
  lateStore.store = rig.store
  context.after(() => rig.close())
  const jobs = new JobService({
    store: rig.store,
    runs: rig.service,
    skills: { list: () => [], get: () => skill, readFile: () => Promise.resolve(undefined) },
    clock: rig.clock,
    models: rig.dependencies.models,
    catalogue: rig.dependencies.catalogue,
    engineName: 'scripted',
    uploadTtlMs,
  })
  return {
    rig,
    jobs,
    acceptance: new JobAcceptance({ ...rig.dependencies, engineName: 'scripted', runs: rig.service, uploadTtlMs }),
  }
}

const body = {
  skillId: 'errand',
  engine: 'scripted',
  input: {},
  parameter: {},
  model: undefined,
  runtimeOptions: {},
}

async function waiting(rig: Rig, jobs: JobService, options: Record<string, JsonValue>): Promise<RunRow> {
  const { run } = await jobs.create(
    'ada',
    'jobs',
    { ...body, runtimeOptions: { execution_mode: 'interactive', ...options } },
    null,
  )
  await rig.until(run.id, ({ status }) => status === 'waiting_user')
  return (await rig.store.readRun(run.id)) as RunRow
}

const alone = { interactive_require_user_reply: false, session_timeout_sec: timeoutMs / 1000 }

/** The scheduler may still be looking up the deadline when time jumps over it; then it wakes a moment later. */
async function endsSoon(rig: Rig, runId: string): Promise<void> {
  for (let tries = 0; tries < 5000; tries += 1) {
    if (((await rig.store.readRun(runId))?.endedAt ?? null) !== null) return
    await rig.clock.advance(1)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  assert.fail('the run did not end')
}

async function resolutions(rig: Rig, runId: string): Promise<unknown[]> {
  return (await rig.events(runId)).flatMap((event) =>
    event.type === 'input.resolved'
      ? [event.data.resolution]
      : event.type === 'run.state' && event.data.from === 'waiting_user'
        ? [event.data.trigger]
        : [],
  )
}

describe('a question that may be left unanswered', () => {
  test('lets the agent go on without a reply at its deadline, once, with a reply that says so', async (context) => {
    const { rig, jobs } = await rigged(context)
    const run = await waiting(rig, jobs, alone)

    await rig.clock.advance(timeoutMs - 1)
    const before = await rig.store.readRun(run.id)
    await rig.clock.advance(1)
    await endsSoon(rig, run.id)

    assert.equal(before?.status, 'waiting_user')
    assert.deepEqual(await resolutions(rig, run.id), ['auto_decided', 'interaction.auto_decide.timeout'])
    await assert.rejects(jobs.reply(run, 'ada', { interactionId: 1, response: 'late', key: undefined }), {
      code: 'interaction_stale',
      message: /^Interaction 1 is no longer open, and was not answered\./,
    })
    const [row] = await rig.store.interactionsOf(run.id)
    assert.equal(row?.reply?.key, 'auto-timeout:1')
    const told = (await rig.events(run.id)).find((event) => event.type === 'tool.done')
    assert.deepEqual(told?.data.output, {
      source: 'auto_decide_timeout',
      interaction_id: 1,
      reason: 'user_no_reply',
      policy: 'engine_judgement',
      instruction: 'Nobody replied in time. Decide by your own judgement, say what you assumed, and go on.',
    })
  })

  test('is answered by a reply that comes first; the deadline then changes nothing', async (context) => {
    const { rig, jobs } = await rigged(context)
    const run = await waiting(rig, jobs, alone)

    await rig.clock.advance(timeoutMs - 1)
    await jobs.reply(run, 'ada', { interactionId: 1, response: 'me first', key: undefined })
    await rig.until(run.id, ended)
    await rig.clock.advance(timeoutMs)

    assert.deepEqual(await resolutions(rig, run.id), ['replied', 'interaction.reply.accepted'])
    await assert.rejects(jobs.reply(run, 'ada', { interactionId: 1, response: 'again', key: undefined }), {
      code: 'interaction_stale',
      message: /^Interaction 1 was answered before\./,
    })
    assert.equal((await rig.events(run.id)).find((event) => event.type === 'run.ended')?.data.output, 'me first')
  })

  test('takes no reply after its deadline, even before the server has acted on the deadline', async (context) => {
    const { rig, jobs } = await rigged(context)
    const run = await waiting(rig, jobs, alone)
    await rig.scheduler.drain()
    await rig.clock.advance(timeoutMs)

    await assert.rejects(jobs.reply(run, 'ada', { interactionId: 1, response: 'late', key: undefined }), {
      code: 'interaction_stale',
    })
  })

  test('goes on without a reply after a crash too: at once if its deadline passed meanwhile, and once', async (context) => {
    const folder = mkdtempSync(join(tmpdir(), 'polylog-job-'))
    context.after(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'first.db')
    const first = await rigged(context, { file })
    const run = await waiting(first.rig, first.jobs, alone)
    await crashImage(file, join(folder, 'second.db'))
    const clock = first.rig.clock
    await first.rig.scheduler.drain()
    await clock.advance(timeoutMs)

    const second = await rigged(context, { file: join(folder, 'second.db'), clock, node: 'node-2' })
    second.rig.scheduler.start()
    await second.rig.until(run.id, ended)

    assert.deepEqual(await resolutions(second.rig, run.id), ['auto_decided', 'interaction.auto_decide.timeout'])
  })

  test('is never treated as consent: a call that waits for it is refused', async (context) => {
    let sent = 0
    const send = toolOf({
      name: 'send',
      effect: 'unsafe',
      confirm: 'always',
      run: () => {
        sent += 1
        return Promise.resolve({ ok: true, output: 'sent', summary: 'sent' })
      },
    })
    const answer = (request: StepRequest) => {
      const told = request.messages.findLast((message) => message.role === 'tool')
      return told === undefined ? calls({ callId: 'c1', name: 'send' }) : says(told.content)
    }
    const { rig, jobs } = await rigged(context, { answer, tools: [send] })
    const run = await waiting(rig, jobs, alone)

    await rig.clock.advance(timeoutMs)
    await endsSoon(rig, run.id)

    assert.equal(sent, 0)
    assert.deepEqual(await resolutions(rig, run.id), ['expired', 'interaction.auto_decide.timeout'])
  })
})

test('a question that must be answered waits for ever', async (context) => {
  const { rig, jobs } = await rigged(context)
  const run = await waiting(rig, jobs, { session_timeout_sec: 1 })

  await rig.clock.advance(365 * 24 * 3_600_000)

  assert.equal((await rig.store.readRun(run.id))?.status, 'waiting_user')
  assert.equal((await rig.store.interactionsOf(run.id))[0]?.deadlineAt, null)
})

describe('a job that waits for its upload', () => {
  const held = async (jobs: JobService) => (await jobs.create('ada', 'temp-skill-runs', body, null)).run
  const endOf = async (rig: Rig, runId: string) =>
    (await rig.events(runId)).flatMap((event) =>
      event.type === 'run.state' ? [event.data.trigger] : event.type === 'run.ended' ? [event.data.error?.code] : [],
    )

  test('fails at its deadline, and not before; the journal says why', async (context) => {
    const { rig, jobs } = await rigged(context)
    const { id } = await held(jobs)

    await rig.clock.advance(uploadTtlMs - 1)
    const before = await rig.store.readRun(id)
    await rig.clock.advance(1)
    await endsSoon(rig, id)

    assert.deepEqual([before?.status, before?.leaseOwner], ['queued', null])
    assert.deepEqual(await endOf(rig, id), ['upload.expired', 'job_upload_expired'])
    await assert.rejects(jobs.upload((await rig.store.readRun(id)) as RunRow, {}), { code: 'job_already_started' })
  })

  test('fails after a restart too, at once if its deadline passed meanwhile', async (context) => {
    const folder = mkdtempSync(join(tmpdir(), 'polylog-job-'))
    context.after(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'first.db')
    const first = await rigged(context, { file })
    const { id } = await held(first.jobs)
    await first.rig.scheduler.drain()
    await crashImage(file, join(folder, 'second.db'))
    await first.rig.clock.advance(uploadTtlMs)

    const second = await rigged(context, { file: join(folder, 'second.db'), clock: first.rig.clock, node: 'node-2' })
    second.rig.scheduler.start()
    await second.rig.until(id, ended)

    assert.deepEqual(await endOf(second.rig, id), ['upload.expired', 'job_upload_expired'])
  })

  test('whose upload came in time runs, and its deadline is over', async (context) => {
    const { rig, jobs, acceptance } = await rigged(context, { answer: () => says('Done.') })
    const run = await held(jobs)
    const prepared = { input: 'x', files: [], skill: { id: 'errand', name: 'Errand', text: 'Run.' } }

    await acceptance.startHeld(run, prepared, [])
    await rig.until(run.id, ended)
    await rig.clock.advance(uploadTtlMs * 2)

    assert.deepEqual(await endOf(rig, run.id), ['turn.started', 'turn.succeeded', undefined])
  })

  test('that brings the result of an equal job ends with it after a crash too, and asks no model', async (context) => {
    const folder = mkdtempSync(join(tmpdir(), 'polylog-job-'))
    context.after(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'first.db')
    const first = await rigged(context, { file })
    const run = await held(first.jobs)
    await first.rig.scheduler.drain()
    const reused = { runId: 'earlier', output: 'As before.', artifacts: [{ path: 'artifacts/a.md', size: 4 }] }
    const skill = { id: 'errand', name: 'Errand', text: 'Run.' }
    await first.acceptance.startHeld(run, { input: 'x', files: [], skill, reused }, [
      { id: `${run.id}:artifact:a.md`, body: 'kept' },
    ])
    await crashImage(file, join(folder, 'second.db'))

    const second = await rigged(context, {
      file: join(folder, 'second.db'),
      clock: first.rig.clock,
      node: 'node-2',
      answer: () => assert.fail('the model was asked'),
    })
    second.rig.scheduler.start()
    await second.rig.until(run.id, ended)

    const end = (await second.rig.events(run.id)).find((event) => event.type === 'run.ended')
    assert.deepEqual([end?.data.status, end?.data.output], ['succeeded', 'As before.'])
    assert.equal((await second.rig.store.readBlob(`${run.id}:artifact:a.md`))?.body, 'kept')
    assert.equal((await second.rig.events(run.id)).filter(({ type }) => type === 'step.started').length, 0)
  })

  test('takes the upload or gives up, never both, when they come at the same instant', async (context) => {
    const { rig, jobs, acceptance } = await rigged(context, { answer: () => says('Done.') })
    const run = await held(jobs)
    const prepared = { input: 'x', files: [], skill: { id: 'errand', name: 'Errand', text: 'Run.' } }

    const [, upload] = await Promise.allSettled([
      rig.clock.advance(uploadTtlMs),
      acceptance.startHeld(run, prepared, []),
    ])
    await endsSoon(rig, run.id)

    const row = await rig.store.readRun(run.id)
    assert.equal(row?.status, upload.status === 'fulfilled' ? 'succeeded' : 'failed')
    if (upload.status === 'rejected') assert.equal((upload.reason as { code: string }).code, 'job_already_started')
    assert.equal((await rig.events(run.id)).filter(({ type }) => type === 'run.ended').length, 1)
  })
})
