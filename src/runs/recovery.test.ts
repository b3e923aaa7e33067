// A crash after every single commit of a run: the files are copied as a kill would leave them,
// and a new scheduler continues from each copy. The tests that kill real servers cover some
// moments; this one covers all of them.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'
import fc from 'fast-check'
import {
  allEvents,
  type Answer,
  calls,
  countingIds,
  openRig,
  type Rig,
  type RigOptions,
  says,
  silence,
  toolOf,
} from '../../test/support/run-rig.ts'
import { crashImage } from '../../test/support/test-database.ts'
import type { RunEvent } from '../journal/event.ts'
import { foldRun } from '../journal/run-state.ts'
import type { ModelPart } from '../models/model.ts'
import type { Store } from '../stores/store.ts'
import type { Tool } from '../tools/tool.ts'
import type { ProcessDeath, ProcessDeaths } from './run-dependencies.ts'

type World = { asked: number[]; done: string[]; answer: Answer; tools: Tool[] }

/**
 * Talk, a look and a letter (which a person allows); then talk. `words` go before the text of every step; between two
 * pieces of it the model waits for `pace`.
 */
function newWorld(words = '', pace = async () => {}): World {
  const world: World = {
    asked: [],
    done: [],
    answer({ messages }) {
      const step =
        1 + messages.filter((message) => message.role === 'assistant' && message.toolCalls !== undefined).length
      world.asked.push(step)
      if (step === 2) return paced(says(`${words}It `, 'is ', 's', 'e', 'n', 't.'), pace)
      return paced(
        calls({ callId: 'look', name: 'look', text: `${words}Let ` }, { callId: 'send', name: 'send', text: 'me.' }),
        pace,
      )
    },
    tools: [
      toolOf({ name: 'look', run: () => act('look') }),
      toolOf({ name: 'send', effect: 'unsafe', confirm: 'always', run: () => act('send') }),
    ],
  }
  const act = async (name: string) => {
    world.done.push(name)
    return { ok: true, output: name, summary: `${name} is done` }
  }
  return world
}

const sendsOf = (world: World) => world.done.filter((tool) => tool === 'send').length

async function* paced(parts: AsyncIterable<ModelPart[]>, pace: () => Promise<void>): AsyncGenerator<ModelPart[]> {
  for await (const batch of parts) {
    yield batch
    await pace()
  }
}

/** Decides whatever is asked, until the run has ended. */
async function seeThrough(rig: Rig, runId: string, unknown: 'confirm' | 'reject'): Promise<{ unknownAsked: number }> {
  let unknownAsked = 0
  for (;;) {
    await rig.until(runId, ({ status, endedAt }) => endedAt !== null || status === 'waiting_user')
    if ((await rig.store.readRun(runId))?.endedAt != null) return { unknownAsked }
    for (const row of await rig.store.interactionsOf(runId)) {
      if (row.status !== 'pending') continue
      if (row.outcome === 'unknown') unknownAsked += 1
      await (row.outcome === 'unknown' && unknown === 'reject'
        ? rig.reject('ada', row.id, undefined)
        : rig.confirm('ada', row.id, undefined))
    }
    await rig.until(runId, ({ status }) => status !== 'waiting_user')
  }
}

describe('a run whose server dies after any commit', () => {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-recovery-'))
  /** With how often the letter had been sent by then. */
  const images: { file: string; what: string; sent: number }[] = []
  let runId = ''

  before(async () => {
    const file = join(folder, 'whole.db')
    const disk = { writing: 0 }
    // Every piece of text gets a commit of its own.
    const world = newWorld('', async () => {
      while (disk.writing > 0) await new Promise((resolve) => setImmediate(resolve))
    })
    const photographed = (store: Store): Store => ({
      ...store,
      accept: async (input) => photograph(await store.accept(input), 'run.accepted'),
      async append(write) {
        disk.writing += 1
        await store.append(write)
        await photograph(null, write.events.map(({ type }) => type).join(', '))
        disk.writing -= 1
      },
      decide: async (id, decision) => photograph(await store.decide(id, decision), 'a decision'),
    })
    async function photograph<T>(result: T, what: string): Promise<T> {
      const image = join(folder, `image-${images.length}.db`)
      images.push({ file: image, what: `${images.length}: ${what}`, sent: sendsOf(world) })
      await crashImage(file, image)
      return result
    }
    const rig = await opened({ ...world, file, wrapStore: photographed, ids: countingIds('first') })
    runId = (await rig.start()).run.id
    await seeThrough(rig, runId, 'reject')
    assert.deepEqual(world.done.toSorted(), ['look', 'send'])
    await rig.close()
    assert.ok(images.length > 18, `only ${images.length} commits`)
  })
  after(() => rmSync(folder, { recursive: true, force: true }))
  // Also after a check that failed: an open store would keep this process alive.
  afterEach(async () => {
    await Promise.all(rigs.splice(0).map((rig) => rig.close()))
  })

  const rigs: Rig[] = []
  async function opened(options: RigOptions): Promise<Rig> {
    const rig = await openRig(options)
    rigs.push(rig)
    return rig
  }

  for (const { name, words, unknown } of [
    { name: 'and whose model says the same again', words: '', unknown: 'reject' },
    { name: 'and whose model says something else', words: 'Well: ', unknown: 'confirm' },
  ] as const) {
    it(`${name} goes on without a hole, asks only for what is unfinished, and does nothing twice`, async () => {
      for (const [index, image] of images.entries()) {
        const file = join(folder, `${unknown}-${index}.db`)
        await crashImage(image.file, file)
        const world = newWorld(words)
        const rig = await opened({ ...world, file, ids: countingIds(`second-${index}`), node: 'node-2' })
        const shown = await rig.events(runId)
        const before = foldRun(shown)
        rig.scheduler.start()

        const { unknownAsked } = await seeThrough(rig, runId, unknown)

        const events = await rig.events(runId)
        const state = foldRun(events)
        assert.deepEqual(events.slice(0, shown.length), shown, `${image.what}: nothing that was stored changes`)
        checkJournal(events, image.what)
        assert.equal(state.ended?.status, 'succeeded', image.what)
        const finished = before.steps.filter((step) => step.finished).map(({ step }) => step)
        assert.deepEqual(
          world.asked,
          before.phase === 'ended' ? [] : [1, 2].filter((step) => !finished.includes(step)),
          image.what,
        )

        const send = before.calls.get('send')
        const interrupted = send?.started === true && send.done === undefined
        assert.equal(unknownAsked, interrupted ? 1 : 0, image.what)
        // Nothing is done before the journal knows that it may be: else it would be done again without a question.
        if (image.sent > 0) assert.ok(send?.started, image.what)
        assert.equal(
          sendsOf(world),
          send?.done !== undefined || (interrupted && unknown === 'reject') ? 0 : 1,
          image.what,
        )
        assert.equal(
          world.done.filter((tool) => tool === 'look').length,
          before.calls.get('look')?.done === undefined ? 1 : 0,
          image.what,
        )
        checkText(events, image.what)

        await rig.close()
        if (unknown === 'confirm') continue
        const again = await opened({ ...newWorld(), file, node: 'node-3' })
        again.scheduler.start()
        await again.scheduler.drain()
        assert.deepEqual(await again.events(runId), events, `${image.what}: a second recovery changes nothing`)
        await again.close()
      }
    })
  }

  it('can be cancelled: it ends once, with every call and question closed, and nothing more is done', async () => {
    for (const [index, image] of images.entries()) {
      const file = join(folder, `cancel-${index}.db`)
      await crashImage(image.file, file)
      const world = newWorld()
      const rig = await opened({ ...world, file, ids: countingIds(`second-${index}`), node: 'node-2' })
      const ended = (await rig.store.readRun(runId))?.endedAt !== null

      const { accepted } = await rig.service.cancel('ada', runId, 'enough')

      assert.equal(accepted, !ended, image.what)
      const events = await allEvents(rig.store, runId)
      checkJournal(events, image.what)
      assert.equal(foldRun(events).ended?.status, ended ? 'succeeded' : 'canceled', image.what)
      assert.deepEqual([world.asked, world.done], [[], []], image.what)
      assert.equal(
        (await rig.store.interactionsOf(runId)).some(({ status }) => status === 'pending'),
        false,
      )
      await rig.close()
    }
  })
})

describe('a run whose server dies again and again', () => {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-lives-'))
  after(() => rmSync(folder, { recursive: true, force: true }))

  /** What the watchdog would have left behind: none for a kill that hits a run which only waits. */
  function deathsOf(deaths: ProcessDeath[]): ProcessDeaths {
    let left = deaths
    return {
      of: (runId) => left.filter((death) => death.runId === runId),
      settled: (runId) => {
        left = left.filter((death) => death.runId !== runId)
      },
    }
  }

  const story = ['One ', 'two ', 'three ', 'four ']

  it('is never ended for it when it was not on the main thread: any number of stops and kills, wherever they hit', async () => {
    let runs = 0
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ words: fc.integer({ min: 0, max: 3 }), kill: fc.boolean() }), {
          minLength: 12,
          maxLength: 16,
        }),
        async (lives) => {
          runs += 1
          const place = (life: number) => join(folder, `${runs}-${life}.db`)
          let runId: string | undefined
          for (const [life, { words, kill }] of [...lives, { words: 4, kill: false }].entries()) {
            const told = { all: false }
            // It begins anew in every life, and has to repeat what was shown before it gets any further.
            const answer: Answer = async function* (_request, signal) {
              for (const text of story.slice(0, words)) yield [{ type: 'text', text }]
              told.all = true
              if (words === story.length) yield [{ type: 'finish', reason: 'stop' }]
              else yield* silence(signal)
            }
            const ids = countingIds(`${runs}-${life}`)
            const rig = await openRig({ answer, file: place(life), ids, node: `node-${life}` })
            if (runId === undefined) runId = (await rig.start()).run.id
            else rig.scheduler.start()
            const id = runId
            if (words === story.length) await rig.until(id, ({ endedAt }) => endedAt !== null)
            else {
              await rig.until(id, ({ status }) => status === 'running')
              while (!told.all) await new Promise((resolve) => setImmediate(resolve))
              if (!kill) await rig.scheduler.drain()
              await crashImage(place(life), place(life + 1))
            }
            await rig.close()
            if (words !== story.length) continue
            const again = await openRig({ file: place(life) })
            const { ended } = foldRun(await again.events(id))
            await again.close()
            assert.deepEqual([ended?.status, ended?.output], ['succeeded', story.join('')])
          }
        },
      ),
      { numRuns: 3 },
    )
  })

  it('is ended by the second crash at one place, and its journal says so; crashes at two different places are not enough', async () => {
    const lives: { places: string[]; ends: boolean }[] = [
      { places: ['step 1', 'step 1'], ends: true },
      { places: ['step 1', 'tool look (look)'], ends: false },
      { places: ['load', 'load'], ends: true },
    ]
    for (const [index, { places, ends }] of lives.entries()) {
      const place = (life: number) => join(folder, `deaths-${index}-${life}.db`)
      let runId = ''
      for (let life = 0; life <= places.length; life += 1) {
        const rig = await openRig({
          answer: (_request, signal) => silence(signal),
          file: place(life),
          ids: countingIds(`d-${index}-${life}`),
          node: `node-${life}`,
        })
        // A death at loading is not journaled: the process dies before it can be.
        const unread = places.slice(0, life).filter((where) => where === 'load')
        const fresh = unread.length > 0 ? unread : places.slice(Math.max(0, life - 1), life)
        rig.dependencies.deaths = deathsOf(
          fresh.map((where, number) => ({ id: `${life}-${number}`, at: 1, runId, place: where, how: 'frozen' })),
        )
        if (life === 0) runId = (await rig.start()).run.id
        else if (unread.length !== 1) rig.scheduler.start()
        const last = life === places.length
        if (last && ends) await rig.until(runId, ({ endedAt }) => endedAt !== null)
        else if (unread.length !== 1)
          await rig.until(runId, ({ status, lastSeq }) => status === 'running' && lastSeq > 3 + 3 * life)
        await crashImage(place(life), place(life + 1))
        const events = await rig.events(runId)
        await rig.close()
        if (!last) continue
        const state = foldRun(events)
        assert.equal(state.ended?.error?.code, ends ? 'run_unrecoverable' : undefined, places.join())
        if (!places.includes('load')) assert.deepEqual([...state.deaths.values()], places)
        if (ends) checkJournal(events, places.join())
      }
    }
  })
})

function checkJournal(events: RunEvent[], what: string): void {
  assert.deepEqual(
    events.map(({ seq }) => seq),
    events.map((_, index) => index + 1),
    what,
  )
  assert.deepEqual(
    events.flatMap(({ type }, index) => (type === 'run.ended' ? [index] : [])),
    [events.length - 1],
    what,
  )
  const attempts = events.map(({ attempt }) => attempt)
  assert.deepEqual(
    attempts,
    attempts.toSorted((left, right) => left - right),
    what,
  )
  const open = new Set<string>()
  for (const event of events) {
    if (event.type === 'tool.called') open.add(event.data.callId)
    if (event.type === 'tool.done') assert.ok(open.delete(event.data.callId), `${what}: one result a call`)
  }
  assert.deepEqual([...open], [], what)
}

/** Under every message id stands exactly the text that its deltas gave, in whatever life of the server. */
function checkText(events: RunEvent[], what: string): void {
  const texts = new Map<string, string>()
  for (const event of events) {
    if (event.type === 'text.delta')
      texts.set(event.data.messageId, (texts.get(event.data.messageId) ?? '') + event.data.text)
    if (event.type === 'message.done') assert.equal(event.data.text, texts.get(event.data.messageId) ?? '', what)
  }
  const active = events.flatMap((event) =>
    event.type === 'message.done' && event.data.state === 'active' ? [event.data.text.replace('Well: ', '')] : [],
  )
  assert.deepEqual(active, ['Let me.', 'It is sent.'], what)
}
