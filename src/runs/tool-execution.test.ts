// Whatever a tool does, its call gets exactly one outcome that fits the journal and states the
// effect correctly.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { manualClock, type ManualClock } from '../../test/support/manual-clock.ts'
import { AppError } from '../errors/app-error.ts'
import { checkEvent } from '../journal/event-codec.ts'
import type { EventData, JsonValue, ToolEffect } from '../journal/event.ts'
import type { CallState } from '../journal/run-state.ts'
import type { Tool, ToolContext, ToolResult } from '../tools/tool.ts'
import { executeCall } from './tool-execution.ts'
import { resultForModel } from '../journal/tool-outcome.ts'

const call = { callId: 'call-1', name: 'work' } as CallState

type Setup = {
  run: Tool['run']
  effect?: ToolEffect
  outputCharsMax?: number
  clock?: ManualClock
  signal?: AbortSignal
  putBlob?: (id: string, body: string) => Promise<void>
  putFile?: Parameters<typeof executeCall>[3]['putFile']
  progress?: (message: string) => void
}

async function execute({
  run,
  effect = 'read',
  outputCharsMax = 100,
  clock = manualClock(),
  signal = new AbortController().signal,
  putBlob,
  putFile = () => assert.fail('no files here'),
  progress = () => {},
}: Setup): Promise<EventData<'tool.done'>> {
  const tool: Tool = {
    name: 'work',
    description: '',
    effect,
    confirm: 'never',
    inputSchema: {},
    timeoutMs: 5000,
    outputCharsMax,
    describe: () => '',
    run,
  }
  const done = await executeCall(
    tool,
    call,
    { n: 1 },
    {
      clock,
      ids: () => 'id-1',
      owner: 'ada',
      runId: 'run-1',
      conversationId: null,
      idempotencyKey: 'key-1',
      signal,
      progress,
      putBlob: putBlob ?? (() => Promise.resolve()),
      putFile,
    },
  )
  checkEvent({ type: 'tool.done', data: done })
  return done
}

const says =
  (result: Partial<ToolResult>): Tool['run'] =>
  () =>
    Promise.resolve({ ok: true, output: null, summary: 'Done.', ...result })

describe('running a tool', () => {
  it('reports what it answered, and whether the answer was positive or negative', async () => {
    const yes = await execute({ run: says({ output: { a: 1 }, modified: true, paths: ['a.txt'] }) })
    assert.deepEqual(
      [yes.outcome, yes.output, yes.fullLength, yes.truncated, yes.modified, yes.paths],
      ['succeeded', { a: 1 }, 7, false, true, ['a.txt']],
    )
    assert.equal(yes.error, undefined)

    const no = await execute({ run: says({ ok: false, summary: 'Not there.' }) })
    assert.deepEqual([no.outcome, no.error], ['failed', { code: 'tool_failed', message: 'Not there.' }])
  })

  it('stores the files of the result; one that cannot be stored is left out with a note', async () => {
    const files = [{ bytes: Buffer.from('a'), name: 'a.txt' }, { bytes: Buffer.from('b') }]
    const done = await execute({
      run: says({ output: 'two', files }),
      async putFile({ bytes, name }) {
        if (name === undefined) throw new AppError('file_too_large', 'It is too large.')
        const row = { id: 'f1', owner: 'ada', sha256: 'x', mediaType: 'text/plain', createdAt: 0 }
        return { ...row, name, size: bytes.length }
      },
    })

    assert.equal(done.outcome, 'succeeded')
    assert.deepEqual(done.files, [{ fileId: 'f1', mediaType: 'text/plain', name: 'a.txt', size: 1 }])
    assert.equal(done.output, 'two\n[a.txt, text/plain, 1 B]\n[a file of the result is left out: It is too large.]')
    assert.equal(resultForModel(done), done.output)
    assert.equal(resultForModel({ ...done, output: { n: 2 } }), '{"n":2}\n[a.txt, text/plain, 1 B]')
  })

  it('hands over on whose behalf it runs, and the key that stays the same', async () => {
    let seen: ToolContext | undefined
    await execute({
      run: (input, context) => {
        seen = context
        assert.deepEqual(input, { n: 1 })
        return says({})(input, context)
      },
    })

    assert.deepEqual(
      [seen?.owner, seen?.runId, seen?.callId, seen?.idempotencyKey],
      ['ada', 'run-1', 'call-1', 'key-1'],
    )
  })

  it('shows a bounded number of lines of progress, and says that there were more', async () => {
    const shown: string[] = []
    await execute({
      progress: (message) => shown.push(message),
      run: (input, context) => {
        for (let line = 1; line <= 5000; line += 1) context.progress(`line ${line}`)
        return says({})(input, context)
      },
    })

    assert.equal(shown.length, 2000)
    assert.deepEqual(shown.slice(-2), ['line 1999', 'More progress of this call is not shown.'])
  })

  it('that throws gives an outcome, not an exception, however it throws', async () => {
    const inTime: Tool['run'] = () => Promise.reject(new Error('the disk is gone'))
    const atOnce: Tool['run'] = () => {
      throw new Error('the disk is gone')
    }
    for (const run of [inTime, atOnce]) {
      const { outcome, error, summary } = await execute({ run })
      assert.deepEqual([outcome, error?.code, summary], ['threw', 'tool_failed', 'work failed: the disk is gone'])
    }
    const odd = await execute({ run: () => Promise.reject('x'.repeat(10_000)) })
    assert.equal(odd.outcome, 'threw')
    assert.ok(odd.summary.length <= 500)
  })

  it('cuts what is too long between two characters', async () => {
    const long = `a${'\u{1f600}'.repeat(5000)}`
    const threw = await execute({ run: () => Promise.reject(new Error(`x${long}`)) })
    const failed = await execute({ run: says({ ok: false, output: long, summary: long }) })

    for (const text of [threw.summary, threw.error?.message, failed.summary, failed.output]) {
      assert.ok(typeof text === 'string' && text.length < long.length && text.isWellFormed(), String(text))
    }
  })

  it('that runs out of time is stopped; an unsafe one may have happened', async () => {
    for (const [effect, outcome, code] of [
      ['read', 'threw', 'tool_timed_out'],
      ['idempotent', 'threw', 'tool_timed_out'],
      ['unsafe', 'unknown', 'tool_outcome_unknown'],
    ] as const) {
      const clock = manualClock()
      let signal: AbortSignal | undefined
      // It ignores its signal, too: it is left behind.
      const running = execute({
        clock,
        effect,
        run: (_input, context) => {
          signal = context.signal
          return new Promise(() => {})
        },
      })
      await clock.advance(4999)
      assert.equal(signal?.aborted, false)
      await clock.advance(1)

      const done = await running
      assert.deepEqual([done.outcome, done.error?.code, done.durationMs], [outcome, code, 5000])
      assert.equal(signal?.aborted, true)
      assert.equal(clock.pending, 0)
    }
  })

  it('that reports an unknown outcome is unknown if it is unsafe, and otherwise failed', async () => {
    const unsure: Tool['run'] = () =>
      Promise.reject(new AppError('tool_failed', 'No answer came.', { details: { outcome: 'unknown' } }))

    assert.equal((await execute({ run: unsure, effect: 'unsafe' })).outcome, 'unknown')
    assert.equal((await execute({ run: unsure, effect: 'idempotent' })).outcome, 'threw')
  })

  it('of a run that is stopped is left to the run, at once, also when it ignores its signal', async () => {
    const controller = new AbortController()
    const running = execute({ signal: controller.signal, run: () => new Promise(() => {}) })
    const reason = new Error('stopped')
    controller.abort(reason)

    await assert.rejects(running, (error) => error === reason)
    await assert.rejects(
      execute({ signal: controller.signal, run: () => assert.fail('it must not start') }),
      (error) => error === reason,
    )
  })

  it('with an output too long for the journal cuts it and keeps the whole beside it', async () => {
    const blobs = new Map<string, string>()
    const output: JsonValue = { text: 'x'.repeat(2_000_000) }
    const putBlob = async (id: string, body: string) => void blobs.set(id, body)

    const done = await execute({ run: says({ output }), outputCharsMax: 10_000_000, putBlob })

    const whole = JSON.stringify(output)
    assert.deepEqual(
      [done.outcome, done.truncated, done.fullLength, done.outputRef],
      ['succeeded', true, whole.length, 'id-1'],
    )
    assert.ok(String(done.output).length <= 256 * 1024)
    assert.ok(whole.startsWith(String(done.output)))
    assert.equal(blobs.get('id-1'), whole)
  })

  it('that has happened is not called failed because its long output could not be stored', async () => {
    const putBlob = () => Promise.reject(new AppError('store_unavailable', 'The disk is full.'))

    const done = await execute({ run: says({ output: 'y'.repeat(200), summary: 'Sent.' }), effect: 'unsafe', putBlob })

    assert.deepEqual(
      [done.outcome, done.summary, done.truncated, done.fullLength, done.outputRef],
      ['succeeded', 'Sent.', true, 200, undefined],
    )
  })
})
