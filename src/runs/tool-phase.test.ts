// The calls of a step, on the real loop and store: which calls run at the same time, which ask
// a person, and how a restart continues calls that were interrupted.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { quiet, reached, withRig, ended, isWaiting } from '../../test/support/run-helpers.ts'
import { type Answer, calls, type Rig, says, toolOf } from '../../test/support/run-rig.ts'
import { foldRun } from '../journal/run-state.ts'
import type { Store } from '../stores/store.ts'
import type { Tool, ToolRegistry } from '../tools/tool.ts'
import { Scheduler } from './scheduler.ts'

const fine = { ok: true, output: null, summary: '' }

const asksFor =
  (...wanted: Parameters<typeof calls>): Answer =>
  ({ messages }) =>
    messages.at(-1)?.role === 'tool' ? says('Done.') : calls(...wanted)

/** The next life of the server, with other tools. */
function nextLife(rig: Rig, tools: Partial<ToolRegistry>): Scheduler {
  return new Scheduler({ ...rig.dependencies, tools: { ...rig.dependencies.tools, ...tools } }, 'node-2')
}

async function cutOff(rig: Rig, id: string): Promise<void> {
  await reached(async () => foldRun(await rig.events(id)).calls.get('c')?.started === true)
  const draining = rig.scheduler.drain(0)
  await rig.clock.advance(1)
  await draining
}

describe('a call that was cut off', () => {
  it('and is unsafe is put to a person, also when its tool is gone after the restart', async () => {
    const pay = toolOf({ name: 'pay', source: 'mcp:bank', effect: 'unsafe', run: () => new Promise(() => {}) })
    const answer = asksFor({ callId: 'c', name: 'pay' })
    await withRig({ answer, tools: [pay] }, async (rig) => {
      const { id } = (await rig.start()).run
      await cutOff(rig, id)
      const awaited: (string | undefined)[] = []
      const second = nextLife(rig, {
        available: () => [],
        find: () => undefined,
        awaitSource: async (source) => void awaited.push(source),
      })
      second.start()
      await rig.until(id, isWaiting)
      assert.deepEqual(awaited, ['mcp:bank'])
      const [question] = await rig.store.interactionsOf(id)
      assert.deepEqual([question?.outcome, question?.toolName], ['unknown', 'pay'])

      await rig.store.decide(question?.id ?? '', { status: 'confirmed', by: 'ada', at: rig.clock.now() })
      second.poke()
      await rig.until(id, ended)
      await second.drain()

      // There is nothing to run again, and the outcome is unknown.
      assert.equal(foldRun(await rig.events(id)).calls.get('c')?.done?.outcome, 'unknown')
    })
  })

  it('and only reads runs again as soon as its server is there', async () => {
    let runs = 0
    const look = toolOf({
      name: 'look',
      source: 'mcp:shop',
      run: () => (++runs === 1 ? new Promise(() => {}) : Promise.resolve(fine)),
    })
    await withRig({ answer: asksFor({ callId: 'c', name: 'look' }), tools: [look] }, async (rig) => {
      const { id } = (await rig.start()).run
      await cutOff(rig, id)
      let isUp = false
      let comeUp = () => {}
      const find = (name: string): Tool | undefined => (isUp && name === 'look' ? look : undefined)
      const up = new Promise<void>((resolve) => {
        comeUp = () => {
          isUp = true
          resolve()
        }
      })
      const second = nextLife(rig, { find, awaitSource: () => up })
      second.start()
      await rig.until(id, ({ status }) => status === 'running')
      await quiet()
      assert.equal(foldRun(await rig.events(id)).calls.get('c')?.done, undefined)

      comeUp()
      await rig.until(id, ended)
      await second.drain()

      assert.deepEqual([runs, foldRun(await rig.events(id)).calls.get('c')?.done?.outcome], [2, 'succeeded'])
    })
  })
})

describe('a call that waits for a person, beside one that is cut off and runs again', () => {
  /** Ends the first life of the server in such a step. The second run of the slow call goes on until the test ends it. */
  async function withWaiting(
    work: (rig: Rig, id: string, question: string, slow: { runs: number; finish(): void }) => Promise<void>,
  ): Promise<void> {
    const slow = { runs: 0, finish: () => {} }
    const look = toolOf({
      name: 'look',
      run: () => {
        slow.runs += 1
        return new Promise((resolve) => (slow.finish = () => resolve(fine)))
      },
    })
    const send = toolOf({ name: 'send', effect: 'unsafe', confirm: 'always', run: async () => fine })
    const answer = asksFor({ callId: 'c', name: 'look' }, { callId: 'send', name: 'send' })
    await withRig({ answer, tools: [look, send] }, async (rig) => {
      const { id } = (await rig.start()).run
      await cutOff(rig, id)
      const [question] = await rig.store.interactionsOf(id)
      await work(rig, id, question?.id ?? '', slow)
    })
  }

  /** No time passes meanwhile: neither the end of the slow call nor a heartbeat helps. */
  async function isSentBesideSlow(rig: Rig, id: string, slow: { runs: number; finish(): void }): Promise<void> {
    await reached(async () => foldRun(await rig.events(id)).calls.get('send')?.done !== undefined)
    assert.deepEqual([slow.runs, foldRun(await rig.events(id)).calls.get('c')?.done], [2, undefined])
    slow.finish()
    await rig.until(id, ended)
  }

  it('runs at once if it was decided on while no server was there', async () => {
    await withWaiting(async (rig, id, question, slow) => {
      await rig.store.decide(question, { status: 'confirmed', by: 'ada', at: rig.clock.now() })
      const second = nextLife(rig, {})
      second.start()
      await isSentBesideSlow(rig, id, slow)
      await second.drain()
    })
  })

  it('runs at once if it is decided on while its run is taken up again', async () => {
    await withWaiting(async (rig, id, question, slow) => {
      const { promise: released, resolve: release } = Promise.withResolvers<void>()
      let isResuming = false
      const store: Store = {
        ...rig.store,
        // The loop is there and has not come to the calls.
        async append(input) {
          isResuming = true
          await released
          await rig.store.append(input)
        },
      }
      const second = new Scheduler({ ...rig.dependencies, store }, 'node-2')
      second.start()
      await reached(() => isResuming)
      await rig.store.decide(question, { status: 'confirmed', by: 'ada', at: rig.clock.now() })
      second.poke(id)
      release()
      await isSentBesideSlow(rig, id, slow)
      await second.drain()
    })
  })
})

describe('a confirmed call', () => {
  it('never runs at another server that has a tool of the same name', async () => {
    const ran: string[] = []
    const send = (source: string) =>
      toolOf({
        name: 'send',
        source,
        effect: 'unsafe',
        confirm: 'always',
        run: async () => {
          ran.push(source)
          return fine
        },
      })
    await withRig({ answer: asksFor({ callId: 'c', name: 'send' }), tools: [send('mcp:a')] }, async (rig) => {
      const { id } = (await rig.start()).run
      await rig.until(id, isWaiting)
      await rig.scheduler.drain()
      const other = send('mcp:b')
      const second = nextLife(rig, {
        available: () => [other],
        get: () => other,
        find: (_name, source) => (source === undefined || source === other.source ? other : undefined),
      })
      const [question] = await rig.store.interactionsOf(id)
      await rig.store.decide(question?.id ?? '', { status: 'confirmed', by: 'ada', at: rig.clock.now() })
      second.start()
      await rig.until(id, ended)
      await second.drain()

      assert.deepEqual(ran, [])
      assert.equal(foldRun(await rig.events(id)).calls.get('c')?.done?.error?.code, 'tool_not_found')
    })
  })
})

describe('the calls of one step', () => {
  it('are each planned once and run side by side up to the limit, also when there are 128', async () => {
    const count = 128
    const release: (() => void)[] = []
    let most = 0
    let working = 0
    const early: string[] = []
    await withRig(
      {
        answer: asksFor(...Array.from({ length: count }, (_, index) => ({ callId: `c${index}`, name: 'look' }))),
        tools: [],
        limits: { toolsAtOnce: 8 },
      },
      async (rig) => {
        let checks = 0
        const look = toolOf({
          name: 'look',
          async run(_input, { runId, callId }) {
            working += 1
            most = Math.max(most, working)
            if (foldRun(await rig.events(runId)).calls.get(callId)?.started !== true) early.push(callId)
            await new Promise<void>((resolve) => release.push(resolve))
            working -= 1
            return fine
          },
        })
        rig.dependencies.tools = {
          ...rig.dependencies.tools,
          available: () => [look],
          find: () => look,
          check: () => {
            checks += 1
            return null
          },
        }
        const { id } = (await rig.start()).run
        for (let done = 0; done < count; done += 1) {
          await reached(() => release.length > 0)
          release.shift()?.()
        }
        await rig.until(id, ended)

        assert.equal(foldRun(await rig.events(id)).ended?.status, 'succeeded')
        assert.deepEqual([checks, most], [count, 8])
        assert.deepEqual(early, [], 'the journal on disk says that a call may happen before it happens')
      },
    )
  })

  it('do not wait for each other: what a person decides is done while others still run', async () => {
    let finish = () => {}
    const slow = toolOf({ name: 'slow', run: () => new Promise((resolve) => (finish = () => resolve(fine))) })
    const send = toolOf({ name: 'send', effect: 'unsafe', confirm: 'always', run: async () => fine })
    const answer = asksFor({ callId: 'slow', name: 'slow' }, { callId: 'send', name: 'send' })
    await withRig({ answer, tools: [slow, send] }, async (rig) => {
      const { id } = (await rig.start()).run
      await reached(async () => (await rig.store.interactionsOf(id)).length === 1)
      const [question] = await rig.store.interactionsOf(id)
      await reached(async () => foldRun(await rig.events(id)).calls.get('slow')?.started === true)

      await rig.confirm('ada', question?.id ?? '', undefined)
      await reached(async () => foldRun(await rig.events(id)).calls.get('send')?.done !== undefined)
      assert.equal(foldRun(await rig.events(id)).calls.get('slow')?.done, undefined)
      finish()
      await rig.until(id, ended)
    })
  })

  it('are stopped with their run, and a result that comes later is not written', async () => {
    let signal: AbortSignal | undefined
    let finish = () => {}
    const slow = toolOf({
      name: 'slow',
      effect: 'unsafe',
      run: (_input, context) => {
        signal = context.signal
        return new Promise((resolve) => (finish = () => resolve(fine)))
      },
    })
    await withRig({ answer: asksFor({ callId: 'c', name: 'slow' }), tools: [slow] }, async (rig) => {
      const { id } = (await rig.start()).run
      await reached(() => signal !== undefined)
      await rig.service.cancel('ada', id, null)
      assert.equal(signal?.aborted, true)
      const events = await rig.events(id)
      finish()
      await quiet()

      assert.deepEqual(await rig.events(id), events)
      assert.equal(foldRun(events).calls.get('c')?.done?.outcome, 'unknown')
    })
  })

  it('that name a tool which the agent does not allow, or that works on files without a workspace, are not run, and it is not offered', async () => {
    const ran: string[] = []
    const offered: string[][] = []
    const tool = (name: string) =>
      toolOf({
        name,
        run: async () => {
          ran.push(name)
          return fine
        },
      })
    const answer: Answer = ({ messages, tools }) => {
      offered.push(tools.map(({ name }) => name))
      return messages.at(-1)?.role === 'tool'
        ? says('Done.')
        : calls(...['denied', 'files', 'fine'].map((name) => ({ callId: name, name })))
    }
    const tools = [tool('denied'), { ...tool('files'), needsWorkspace: true as const }, tool('fine')]
    await withRig({ answer, tools }, async (rig) => {
      const definition = rig.dependencies.catalogue.get('chat_conversation')
      const card = { ...definition.card, tools: { mode: 'denylist' as const, allowedTools: ['denied'] } }
      rig.dependencies.catalogue = { ...rig.dependencies.catalogue, lastWorking: () => ({ ...definition, card }) }
      const { id } = (await rig.start()).run
      await rig.until(id, ended)

      assert.deepEqual([ran, offered[0]], [['fine'], ['fine']])
      const state = foldRun(await rig.events(id))
      for (const name of ['denied', 'files']) {
        const call = state.calls.get(name)
        // A tool that is not known is never taken for one that only reads.
        assert.deepEqual([call?.done?.error?.code, call?.effect], ['tool_not_found', 'unsafe'], name)
      }
    })
  })

  it('that were decided on keep the decision when their run is cancelled before it took effect', async () => {
    const send = toolOf({ name: 'send', effect: 'unsafe', confirm: 'always', run: () => assert.fail('cancelled') })
    const answer = asksFor({ callId: 'one', name: 'send' }, { callId: 'two', name: 'send' })
    await withRig({ answer, tools: [send] }, async (rig) => {
      const { id } = (await rig.start()).run
      await rig.until(id, isWaiting)
      const [first] = await rig.store.interactionsOf(id)
      await rig.store.decide(first?.id ?? '', { status: 'rejected', by: 'ada', at: rig.clock.now(), reason: 'no' })

      await rig.service.cancel('ada', id, null)

      const rows = await rig.store.interactionsOf(id)
      assert.deepEqual(
        rows.map(({ status, decidedBy, reason }) => [status, decidedBy, reason]),
        [
          ['rejected', 'ada', 'no'],
          ['closed', null, null],
        ],
      )
    })
  })
})
