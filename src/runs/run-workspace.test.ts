// Runs with a working directory: which tools they are offered, who is asked before
// a command runs, and what a crash in the middle of one leaves to a person.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { calls, openRig, type Rig, says, toolOf } from '../../test/support/run-rig.ts'
import { type Bench, openBench } from '../../test/support/workspace.ts'
import type { RunEvent } from '../journal/event.ts'
import type { StartRequest } from './start-request.ts'

let bench: Bench
let rig: Rig
const offered: string[][] = []
let wanted: { callId: string; name: string; input: object }[] = []

async function open(bash: 'off' | 'confirm' | 'allow' = 'confirm'): Promise<void> {
  bench = openBench({ bash })
  const other = toolOf({ name: 'other_read', run: () => Promise.resolve({ ok: true, output: null, summary: 'Read.' }) })
  const writes = toolOf({ ...other, name: 'other_write', effect: 'unsafe' })
  rig = await openRig({
    tools: [...bench.registry.available(), other, writes],
    answer(request) {
      offered.push(request.tools.map(({ name }) => name))
      const done = request.messages.some(({ role }) => role === 'tool')
      return done || wanted.length === 0 ? says('Done.') : calls(...wanted)
    },
  })
}

beforeEach(() => {
  offered.length = 0
  wanted = []
})
afterEach(async () => {
  await rig.close()
  await bench.close()
})

async function runTo(
  request: Partial<StartRequest>,
  status = 'succeeded',
): Promise<{ runId: string; events: RunEvent[] }> {
  const { run } = await rig.start(request)
  const runId = run.id
  await rig.until(runId, (row) => row.status === status)
  return { runId, events: await rig.events(runId) }
}

const done = (events: RunEvent[]) => events.flatMap((event) => (event.type === 'tool.done' ? [event.data] : []))
const edit = { workspace: { dir: 'mine', mode: 'edit' as const } }
const ask = { workspace: { dir: 'mine', mode: 'ask' as const } }

describe('the tools that a run is offered', () => {
  it('without a workspace: none that needs one', async () => {
    await open()
    await runTo({})
    assert.deepEqual(offered, [['other_read', 'other_write']])
  })

  it('in mode ask: only those that read, from any source', async () => {
    await open()
    await runTo(ask)
    assert.deepEqual(offered, [['fs_read', 'fs_glob', 'fs_grep', 'bash_logs', 'todo_read', 'other_read']])
  })

  it('in mode edit: all of them', async () => {
    await open()
    await runTo(edit)
    assert.ok(
      ['fs_write', 'fs_edit', 'fs_multi_edit', 'bash_run', 'todo_write', 'other_write'].every((name) =>
        offered[0]?.includes(name),
      ),
    )
  })
})

it('a tool that was not offered is not run, also when the model names it', async () => {
  await open('allow')
  wanted = [
    { callId: 'a', name: 'fs_write', input: { path: 'a.txt', content: 'x' } },
    { callId: 'b', name: 'bash_run', input: { cmd: 'touch b.txt' } },
  ]
  for (const request of [ask, {}]) {
    const { events } = await runTo(request)
    assert.deepEqual(
      done(events).map(({ outcome, error }) => [outcome, error?.code]),
      [
        ['failed', 'tool_not_found'],
        ['failed', 'tool_not_found'],
      ],
    )
  }
  assert.deepEqual(readdirSync(bench.directory), [])
})

it('in mode edit files and lists are changed without asking, and the journal names what was', async () => {
  await open()
  wanted = [
    { callId: 'w', name: 'fs_write', input: { path: 'a.txt', content: 'x' } },
    { callId: 't', name: 'todo_write', input: { todos: [{ id: '1', title: 'Go on', status: 'pending' }] } },
  ]
  const { events } = await runTo(edit)
  const written = done(events).find(({ callId }) => callId === 'w')
  assert.deepEqual([written?.outcome, written?.modified, written?.paths], ['succeeded', true, ['a.txt']])
  assert.equal(bench.read('a.txt'), 'x')
  const called = events.find((event) => event.type === 'tool.called')
  assert.equal(called?.type === 'tool.called' && called.data.note, 'File operation write, path a.txt')
  const accepted = events[0]
  assert.deepEqual(accepted?.type === 'run.accepted' && accepted.data.spec.workspace, edit.workspace)
})

it('a command waits for a person, and runs when they agree', async () => {
  await open('confirm')
  wanted = [{ callId: 'b', name: 'bash_run', input: { cmd: 'echo hi | tee b.txt' } }]
  const { runId } = await runTo(edit, 'waiting_user')
  assert.equal(bench.has('b.txt'), false)
  const [question] = await rig.store.interactionsOf(runId)
  assert.equal(question?.prompt, 'Run Bash: echo hi | tee b.txt')
  await rig.confirm('ada', question?.id ?? '', undefined)
  await rig.until(runId, (row) => row.status === 'succeeded')
  assert.equal(bench.read('b.txt'), 'hi\n')
})

it('a command that is allowed runs at once, and its lines are in the journal while it runs', async () => {
  await open('allow')
  wanted = [{ callId: 'b', name: 'bash_run', input: { cmd: 'echo one; echo two' } }]
  const { events } = await runTo(edit)
  const lines = events.flatMap((event) => (event.type === 'tool.progress' ? [event.data.message] : []))
  assert.deepEqual(lines.join('\n'), 'one\ntwo')
  assert.deepEqual(
    done(events).map(({ outcome, output }) => [outcome, output]),
    [['succeeded', { background: false, code: 0, output: 'one\ntwo\n' }]],
  )
})

it('an exit code is an answer; a time limit is an exception', async () => {
  await open('allow')
  wanted = [
    { callId: 'no', name: 'bash_run', input: { cmd: 'exit 2' } },
    { callId: 'late', name: 'bash_run', input: { cmd: 'sleep 100', timeout_ms: 50 } },
  ]
  const { events } = await runTo(edit)
  const outcomes = Object.fromEntries(
    done(events).map(({ callId, outcome, error }) => [callId, [outcome, error?.code]]),
  )
  assert.deepEqual(outcomes, { no: ['failed', 'tool_failed'], late: ['threw', 'tool_timed_out'] })
})

it('a cancel ends the command that runs', async () => {
  await open('allow')
  wanted = [{ callId: 'b', name: 'bash_run', input: { cmd: 'echo > begun; sleep 100; echo > late' } }]
  const { run } = await rig.start(edit)
  const runId = run.id
  while (!bench.has('begun')) await new Promise((resolve) => setTimeout(resolve, 5))
  await rig.service.cancel('ada', runId, null)
  await rig.until(runId, (row) => row.status === 'canceled')
  assert.deepEqual(
    done(await rig.events(runId)).map(({ outcome }) => outcome),
    ['unknown'],
    'what it did until then is not known',
  )
  assert.equal(bench.has('late'), false)
})
