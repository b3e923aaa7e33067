// What the log holds in memory stays as it is until the database has it: readers and the writer thread look at the memory itself,
// and new records take the place of old ones.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LoggedQueue } from '../../../test/support/logged-queue.ts'
import { applyMs } from './logged-commits.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Some ten records, so that the two files are swapped all the time. */
const fileBytes = 4096
const runs = ['r1', 'r2', 'r3']

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ run: fc.constantFrom(...runs), chars: fc.integer({ min: 0, max: 600 }) }),
  },
  { weight: 3, arbitrary: fc.constantFrom('turn' as const) },
  { weight: 2, arbitrary: fc.constantFrom('later' as const, 'done' as const) },
  { weight: 1, arbitrary: fc.constantFrom('failed' as const) },
)

test('readers and the writer find what was logged, however often the files are swapped', async () => {
  let used = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 80, maxLength: 160 }), async (steps) => {
      const given = new LoggedQueue(fileBytes)
      const { queue, writer, clock } = given
      /** What each batch held when it was sent. */
      const sent: string[] = []
      let answered = 0
      const executed: string[] = []
      const written: string[] = []
      const appends: Promise<void>[] = []
      let settled = 0
      let loggedChars = 0
      const contentOf = (index: number) => JSON.stringify([writer.loggedAt(index), writer.batchAt(index).values])

      const look = () => {
        for (let index = sent.length; index < writer.sent.length; index += 1) sent.push(contentOf(index))
        for (let index = answered; index < sent.length; index += 1) assert.equal(contentOf(index), sent[index])
        for (const [{ id, runId, lastSeq }] of given.stored) {
          const body = queue.loggedBody(id)
          if (body !== undefined) assert.equal(nameIn(body), `${runId} ${lastSeq}`)
          else assert.ok(executed.includes(`${runId} ${lastSeq}`), 'what the log does not have, the database has')
        }
      }
      const answer = async (isDone: boolean) => {
        look()
        if (answered === writer.sent.length) return
        const { values } = writer.batchAt(answered)
        // After a failure the writer would refuse what is already on its way to it.
        const mayFail = values.length === 0 && answered === writer.sent.length - 1
        if (isDone || !mayFail) {
          const logged = writer.loggedAt(answered).flat()
          executed.push(...bodiesIn(logged), ...bodiesIn(values))
          loggedChars += logged.join('').length
          answered += 1
          writer.done()
        } else {
          answered += 1
          given.failed()
        }
        await turn()
      }

      try {
        await Promise.all(runs.map((run) => given.accept(run)))
        const seqs = new Map(runs.map((run) => [run, 1]))
        for (const next of steps) {
          if (typeof next === 'object') {
            const seq = (seqs.get(next.run) as number) + 1
            seqs.set(next.run, seq)
            written.push(`${next.run} ${seq}`)
            const body = `${next.run} ${seq}${'x'.repeat(next.chars)}`
            appends.push(given.delta(next.run, seq, 1, body).then(() => void (settled += 1)))
          } else if (next === 'turn') await turn()
          else if (next === 'later') await clock.advance(applyMs)
          else await answer(next === 'done')
          look()
        }
        const isOver = () => settled === appends.length && answered === writer.sent.length && queue.isApplied
        for (let round = 0; round < 200 && !isOver(); round += 1) {
          await turn()
          await clock.advance(applyMs)
          await answer(true)
        }
        await Promise.all(appends)
        for (const run of runs) {
          const of = (names: readonly string[]) => names.filter((name) => name.startsWith(`${run} `))
          assert.deepEqual(of(executed), [`${run} 1`, ...of(written)], 'each once, in order')
        }
        if (loggedChars > 3 * fileBytes) used += 1
      } finally {
        given.remove()
      }
    }),
    { numRuns: 60 },
  )
  assert.ok(used > 10, `in ${used} of them the log got more than its files hold`)
})

/** The run and the seq of an event, without what makes it long. */
const nameIn = (body: string): string | undefined => /^r\d \d+/.exec(body)?.[0]

const bodiesIn = (values: readonly (string | number)[]): string[] =>
  values
    .flatMap((value) => String(value).split('\n'))
    .flatMap((value) => (/^r\d \d+x*$/.test(value) ? [nameIn(value) as string] : []))
