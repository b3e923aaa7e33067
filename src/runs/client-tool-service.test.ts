// Tools of the client: a call waits for its result, which counts once, comes from the owner, and
// survives restarts, deadlines and cancels.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { ended } from '../../test/support/run-helpers.ts'
import { calls, countingIds, openRig, type Rig, type RigOptions, says, toolOf } from '../../test/support/run-rig.ts'
import { asUser } from '../kit/caller.ts'
import type { StepRequest } from '../engines/engine.ts'
import { ClientToolService, clientErrorCharsMax, clientOutputCharsMax } from './client-tool-service.ts'
import { ConfirmationService } from './confirmation-service.ts'

const locate = { name: 'locate', inputSchema: { type: 'object', properties: { unit: { type: 'string' } } } }
const call = (callId: string, input: object = {}) => ({ callId, name: 'locate', input })

/** Makes these calls, then says what came back. */
function answering(...wanted: Parameters<typeof calls>): NonNullable<RigOptions['answer']> {
  return ({ messages }) => {
    const results = messages.flatMap((message) => (message.role === 'tool' ? [message.content] : []))
    return results.length === 0 ? calls(...wanted) : says(results.join(' | '))
  }
}

type Scene = Rig & { clients: ClientToolService }

async function withRig(options: RigOptions, body: (rig: Scene) => Promise<void>): Promise<void> {
  const rig = await openRig(options)
  try {
    await body({ ...rig, clients: new ClientToolService(rig.dependencies, rig.scheduler) })
  } finally {
    await rig.close()
  }
}

const waits = ({ status }: { status: string }) => status === 'waiting_user'
const ada = asUser('ada')

async function waiting(rig: Rig): Promise<string> {
  const { run } = await rig.start({ clientTools: [locate] })
  await rig.until(run.id, waits)
  return run.id
}

async function outputOf(rig: Rig, runId: string): Promise<string | undefined> {
  await rig.until(runId, ended)
  const end = (await rig.events(runId)).at(-1)
  return end?.type === 'run.ended' ? end.data.output : undefined
}

describe('a call of a tool of the client', () => {
  it('is offered to the model, journaled as the client’s, and waits without being executed', async () => {
    const requests: StepRequest[] = []
    const answer: RigOptions['answer'] = (request, signal) => {
      requests.push(request)
      return answering(call('k', { unit: 'km' }))(request, signal)
    }
    await withRig({ answer }, async (rig) => {
      const runId = await waiting(rig)

      const events = await rig.events(runId)
      const called = events.find(({ type }) => type === 'tool.called')?.data
      const required = events.find(({ type }) => type === 'input.required')?.data
      const parked = events.at(-1)?.data
      assert.deepEqual(requests[0]?.tools, [{ name: 'locate', description: '', inputSchema: locate.inputSchema }])
      assert.partialDeepStrictEqual(called, { callId: 'k', source: 'client', effect: 'unsafe' })
      assert.partialDeepStrictEqual(required, {
        kind: 'client_tool',
        callId: 'k',
        input: { unit: 'km' },
        atDeadline: 'expire',
      })
      assert.partialDeepStrictEqual(parked, { to: 'waiting_user', awaitsClient: true })
      assert.ok(!events.some(({ type }) => type === 'tool.started'))
    })
  })

  it('gets its result, and the model reads it', async () => {
    await withRig({ answer: answering(call('k')) }, async (rig) => {
      const runId = await waiting(rig)

      await rig.clients.resolve(ada, runId, [{ toolCallId: 'k', output: { city: 'Oslo' } }])

      assert.equal(await outputOf(rig, runId), '{"city":"Oslo"}')
      const events = await rig.events(runId)
      assert.partialDeepStrictEqual(events.find(({ type }) => type === 'input.resolved')?.data, {
        resolution: 'replied',
        by: 'ada',
        response: { city: 'Oslo' },
      })
      assert.partialDeepStrictEqual(events.find(({ type }) => type === 'tool.done')?.data, {
        outcome: 'succeeded',
        output: { city: 'Oslo' },
      })
    })
  })

  it('fails with the error that the client sends', async () => {
    await withRig({ answer: answering(call('k')) }, async (rig) => {
      const runId = await waiting(rig)

      await rig.clients.resolve(ada, runId, [{ toolCallId: 'k', error: 'No permission.' }])

      assert.equal(await outputOf(rig, runId), 'The tool failed: No permission.')
      const events = await rig.events(runId)
      assert.partialDeepStrictEqual(events.find(({ type }) => type === 'input.resolved')?.data, {
        resolution: 'rejected',
        reason: 'No permission.',
      })
      assert.partialDeepStrictEqual(events.find(({ type }) => type === 'tool.done')?.data, {
        outcome: 'failed',
        error: { code: 'tool_failed' },
      })
    })
  })

  it('may have null as its result', async () => {
    await withRig({ answer: answering(call('k')) }, async (rig) => {
      const runId = await waiting(rig)

      await rig.clients.resolve(ada, runId, [{ toolCallId: 'k', output: null }])

      assert.equal(await outputOf(rig, runId), 'null')
    })
  })

  it('waits beside others: results come one by one, and the run goes on with the last', async () => {
    await withRig({ answer: answering(call('k1'), call('k2')) }, async (rig) => {
      const runId = await waiting(rig)

      await rig.clients.resolve(ada, runId, [{ toolCallId: 'k2', output: 2 }])
      assert.deepEqual(
        (await rig.clients.openOf({ id: runId })).map(({ callId }) => callId),
        ['k1'],
      )
      await rig.until(runId, waits)
      const [first] = await rig.clients.openOf({ id: runId })
      // The id of the interaction names the call too.
      await rig.clients.resolve(ada, runId, [{ toolCallId: first?.id ?? '', output: 1 }])

      assert.equal(await outputOf(rig, runId), '1 | 2')
    })
  })

  it('does not keep a server tool of the same step from running', async () => {
    const clock = toolOf({ name: 'clock', run: async () => ({ ok: true, output: 'noon', summary: 'noon' }) })
    const answer = answering(call('k'), { callId: 'c', name: 'clock' })
    await withRig({ answer, tools: [clock] }, async (rig) => {
      const runId = await waiting(rig)

      await rig.clients.resolve(ada, runId, [{ toolCallId: 'k', output: 'here' }])

      assert.equal(await outputOf(rig, runId), 'here | noon')
    })
  })

  it('is refused at once if its arguments do not fit the schema of the client', async () => {
    await withRig({ answer: answering(call('k', { unit: 7 })) }, async (rig) => {
      const { run } = await rig.start({ clientTools: [locate] })

      assert.match((await outputOf(rig, run.id)) ?? '', /^The tool failed: The arguments do not fit: unit/)
    })
  })

  it('is no confirmation: it is neither listed nor decided as one', async () => {
    await withRig({ answer: answering(call('k')) }, async (rig) => {
      const runId = await waiting(rig)
      const [row] = await rig.clients.openOf({ id: runId })
      const confirmations = new ConfirmationService(rig.dependencies, rig.scheduler)

      assert.deepEqual((await confirmations.list('ada', { limit: 9 })).rows, [])
      const notFound = { code: 'tool_confirmation_not_found' }
      await assert.rejects(confirmations.confirm(ada, row?.id ?? '', {}), notFound)
      await assert.rejects(confirmations.reject(ada, row?.id ?? '', undefined), notFound)
    })
  })
})

describe('a result', () => {
  it('counts once: the same again is accepted, another one is refused', async () => {
    await withRig({ answer: answering(call('k')) }, async (rig) => {
      const runId = await waiting(rig)
      const given = { toolCallId: 'k', output: { a: 1, b: 2 } }

      await rig.clients.resolve(ada, runId, [given])
      await rig.clients.resolve(ada, runId, [{ toolCallId: 'k', output: { b: 2, a: 1 } }])
      const refused = { code: 'tool_result_already_given' }
      await assert.rejects(rig.clients.resolve(ada, runId, [{ toolCallId: 'k', output: 'other' }]), refused)
      await assert.rejects(rig.clients.resolve(ada, runId, [{ toolCallId: 'k', error: 'no' }]), refused)
      await rig.until(runId, ended)
      await rig.clients.resolve(ada, runId, [given])

      const resolutions = (await rig.events(runId)).filter(({ type }) => type === 'input.resolved')
      assert.equal(resolutions.length, 1)
    })
  })

  it('is stored with the others of its request or not at all', async () => {
    await withRig({ answer: answering(call('k1'), call('k2')) }, async (rig) => {
      const runId = await waiting(rig)
      const good = { toolCallId: 'k1', output: 1 }

      await assert.rejects(rig.clients.resolve(ada, runId, [good, { toolCallId: 'missing', output: 1 }]), {
        code: 'tool_call_not_found',
      })
      const large = { toolCallId: 'k2', output: 'x'.repeat(clientOutputCharsMax) }
      await assert.rejects(rig.clients.resolve(ada, runId, [good, large]), { code: 'tool_result_too_large' })
      const long = { toolCallId: 'k2', error: 'x'.repeat(clientErrorCharsMax + 1) }
      await assert.rejects(rig.clients.resolve(ada, runId, [good, long]), { code: 'tool_result_too_large' })

      assert.equal((await rig.clients.openOf({ id: runId })).length, 2)
      await rig.clients.resolve(ada, runId, [{ toolCallId: 'k2', output: 2 }])
      await assert.rejects(rig.clients.resolve(ada, runId, [good, { toolCallId: 'k2', output: 'other' }]), {
        code: 'tool_result_already_given',
      })
      assert.equal((await rig.clients.openOf({ id: runId })).length, 1)
    })
  })

  it('is taken from the owner only', async () => {
    await withRig({ answer: answering(call('k')) }, async (rig) => {
      const runId = await waiting(rig)
      const [row] = await rig.clients.openOf({ id: runId })
      const eve = asUser('eve')

      await assert.rejects(rig.clients.resolve(eve, runId, [{ toolCallId: 'k', output: 1 }]), { code: 'run_not_found' })
      await assert.rejects(rig.clients.find(eve, row?.id ?? ''), { code: 'tool_call_not_found' })
      assert.equal((await rig.clients.find(ada, row?.id ?? '')).callId, 'k')
    })
  })

  it('is too late after the deadline: the model learns that none came', async () => {
    await withRig({ answer: answering(call('k')), limits: { confirmationTtlMs: 60_000 } }, async (rig) => {
      const runId = await waiting(rig)

      await rig.clock.advance(60_001)
      rig.scheduler.poke()

      assert.match((await outputOf(rig, runId)) ?? '', /sent no result in time/)
      await assert.rejects(rig.clients.resolve(ada, runId, [{ toolCallId: 'k', output: 1 }]), {
        code: 'tool_result_too_late',
        details: { toolCallId: 'k', status: 'expired' },
      })
    })
  })

  it('is too late after a cancel, which closes the call', async () => {
    await withRig({ answer: answering(call('k')) }, async (rig) => {
      const runId = await waiting(rig)

      await rig.service.cancel('ada', runId, null)

      const done = (await rig.events(runId)).find(({ type }) => type === 'tool.done')
      assert.partialDeepStrictEqual(done?.data, { outcome: 'cancelled' })
      assert.deepEqual(await rig.clients.openOf({ id: runId }), [])
      await assert.rejects(rig.clients.resolve(ada, runId, [{ toolCallId: 'k', output: 1 }]), {
        code: 'tool_result_too_late',
        details: { toolCallId: 'k', status: 'closed' },
      })
    })
  })

  it('is taken by a process that did not ask', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'polylog-client-tools-'))
    const file = join(folder, 'polylog.db')
    try {
      let runId = ''
      await withRig({ file, answer: answering(call('k')), ids: countingIds('a') }, async (rig) => {
        runId = await waiting(rig)
      })
      await withRig({ file, answer: answering(call('k')), ids: countingIds('b'), node: 'node-2' }, async (rig) => {
        rig.scheduler.start()
        await rig.clients.resolve(ada, runId, [{ toolCallId: 'k', output: 'after' }])

        assert.equal(await outputOf(rig, runId), 'after')
      })
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

describe('the tools that a request brings', () => {
  const tool = (name: string, inputSchema: Record<string, never> | object = {}) =>
    ({ name, inputSchema }) as { name: string; inputSchema: Record<string, never> }
  const clock = toolOf({ name: 'clock', run: async () => ({ ok: true, output: 1, summary: '' }) })

  it('are refused if they are too many, too large, doubled, or cannot be checked', async () => {
    await withRig({ tools: [clock] }, async (rig) => {
      const invalid = { code: 'client_tools_invalid' }
      const many = Array.from({ length: 129 }, (_, index) => tool(`t${index}`))
      const wrong = [
        many,
        [{ ...tool('large'), description: 'x'.repeat(256 * 1024) }],
        [tool('same'), tool('same')],
        [tool('list', { type: 'array' })],
        [tool('broken', { type: 'object', properties: 7 })],
      ]
      for (const clientTools of wrong) await assert.rejects(rig.start({ clientTools }), invalid)
      await assert.rejects(rig.start({ clientTools: [locate], consent: 'refuse' }), invalid)
      await assert.rejects(rig.start({ clientTools: [tool('clock')] }), { code: 'client_tool_conflict' })
    })
  })

  it('hide a server tool of the same name that came later', async () => {
    const offered: string[][] = []
    const tools = [clock]
    const answer: RigOptions['answer'] = (request, signal) => {
      offered.push(request.tools.map(({ name }) => name))
      return answering(call('k'))(request, signal)
    }
    await withRig({ answer, tools }, async (rig) => {
      const runId = await waiting(rig)
      tools.push(toolOf({ name: 'locate', run: clock.run }))

      await rig.clients.resolve(ada, runId, [{ toolCallId: 'k', output: 'mine' }])

      assert.equal(await outputOf(rig, runId), 'mine')
      assert.deepEqual(offered, [
        ['clock', 'locate'],
        ['clock', 'locate'],
      ])
    })
  })
})
