// What a provider does by itself while it answers: its calls and its sources in the journal, what
// the rows have of them, and what a crash leaves.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Answer, countingIds, openRig, type Rig, silence } from '../../test/support/run-rig.ts'
import type { EventData, JsonValue, RunEvent } from '../journal/event.ts'
import type { ModelPart } from '../models/model.ts'

const finish: ModelPart = { type: 'finish', reason: 'stop' }
const search = (callId: string): ModelPart => ({ type: 'provider-call', callId, name: 'web_search', input: { q: 'x' } })
const found = (callId: string, output: JsonValue): ModelPart => ({
  type: 'provider-result',
  callId,
  output,
  isError: false,
})

function answering(...batches: ModelPart[][]): Answer {
  return async function* () {
    for (const batch of batches) yield batch
  }
}

async function ended(rig: Rig, request = {}): Promise<RunEvent[]> {
  const { run } = await rig.start(request)
  await rig.until(run.id, ({ endedAt }) => endedAt !== null)
  return await rig.events(run.id)
}

function dataOf<T extends RunEvent['type']>(events: readonly RunEvent[], type: T): EventData<T>[] {
  return events.flatMap((event) => (event.type === type ? [event.data as EventData<T>] : []))
}

test('a call of the provider is journaled with its result, and the run does not execute it', async (t) => {
  let steps = 0
  const rig = await openRig({
    answer: (request, signal) => {
      steps += 1
      return answering(
        [{ type: 'text', text: 'I search. ' }, search('s1')],
        [found('s1', [{ url: 'https://a.example/' }])],
        [{ type: 'source', url: 'https://a.example/', title: 'A' }],
        // The same page once more, under another title.
        [{ type: 'source', url: 'https://a.example/', title: 'Again' }, { type: 'text', text: 'Done.' }, finish],
      )(request, signal)
    },
  })
  t.after(() => rig.close())

  const events = await ended(rig, { conversationId: 'c-1' })

  assert.equal(steps, 1)
  assert.equal(dataOf(events, 'run.ended')[0]?.output, 'I search. Done.')
  const [called] = dataOf(events, 'tool.called')
  assert.deepEqual(
    [called?.callId, called?.name, called?.effect, called?.source, called?.step],
    ['s1', 'web_search', 'read', 'provider:scripted', 1],
  )
  const [done] = dataOf(events, 'tool.done')
  assert.deepEqual([done?.outcome, done?.output], ['succeeded', [{ url: 'https://a.example/' }]])
  const sources = dataOf(events, 'source.found')
  assert.deepEqual(
    sources.map(({ url, title }) => [url, title]),
    [['https://a.example/', 'A']],
  )
  assert.equal(dataOf(events, 'step.done')[0]?.toolCalls, 0)

  const { conversationId } = dataOf(events, 'run.accepted')[0] ?? {}
  const rows = await rig.store.allMessages(String(conversationId), { limit: 10 })
  assert.deepEqual(
    rows.map(({ role, content }) => [role, content]),
    [
      ['user', 'Hello?'],
      ['assistant', 'I search. Done.'],
    ],
  )
  assert.deepEqual(rows[1]?.metadata.sources, [
    { sourceId: sources[0]?.sourceId, url: 'https://a.example/', title: 'A' },
  ])
  assert.equal(rows[1]?.metadata.toolCalls, undefined)
})

test('a call without a result, one that failed and one whose result is long have one result each', async (t) => {
  const long = 'x'.repeat(300 * 1024)
  const rig = await openRig({
    answer: answering([
      search('s1'),
      search('s2'),
      { type: 'provider-result', callId: 's2', output: { error: 'too many searches' }, isError: true },
      search('s3'),
      found('s3', long),
      { type: 'text', text: 'Well.' },
      finish,
    ]),
  })
  t.after(() => rig.close())

  const done = dataOf(await ended(rig), 'tool.done')

  assert.deepEqual(
    done.map(({ callId, outcome, truncated, fullLength }) => [callId, outcome, truncated, fullLength]),
    [
      ['s2', 'failed', false, 29],
      ['s3', 'succeeded', true, long.length],
      ['s1', 'unknown', false, 0],
    ],
  )
  assert.equal((await rig.store.readBlob(String(done[1]?.outputRef)))?.body, long)
})

test('a provider that searches without an end is stopped at the limit of calls', async (t) => {
  const rig = await openRig({
    answer: async function* () {
      for (let call = 0; ; call += 1) yield [search(`s${call}`), found(`s${call}`, 'nothing')]
    },
  })
  t.after(() => rig.close())

  const events = await ended(rig)

  assert.equal(dataOf(events, 'run.ended')[0]?.error?.code, 'tool_calls_too_many')
  assert.ok(dataOf(events, 'tool.called').length <= 129)
})

test('too many sources, and addresses that are too long, are left out', async (t) => {
  const rig = await openRig({
    answer: async function* () {
      yield [{ type: 'source', url: `https://a.example/${'x'.repeat(10_000)}` }]
      for (let page = 0; page < 300; page += 1) yield [{ type: 'source', url: `https://a.example/${page}` }]
      yield [{ type: 'text', text: 'So.' }, finish]
    },
  })
  t.after(() => rig.close())

  const sources = dataOf(await ended(rig), 'source.found')

  assert.equal(sources.length, 256)
  assert.equal(sources[0]?.url, 'https://a.example/0')
})

test('a step that is asked again closes the call that a crash left open, and does not repeat its sources', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-provider-run-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'polylog.db')
  const first = await openRig({
    file,
    answer: async function* (_request, signal) {
      yield [{ type: 'text', text: 'I search. ' }, { type: 'source', url: 'https://a.example/' }, search('s1')]
      yield* silence(signal)
    },
  })
  const { run } = await first.start()
  await first.until(run.id, ({ lastSeq }) => lastSeq >= 6)
  await first.close()
  const second = await openRig({
    file,
    ids: countingIds('second'),
    answer: answering([
      { type: 'text', text: 'I search. ' },
      { type: 'source', url: 'https://a.example/' },
      search('s1'),
      found('s1', 'a page'),
      { type: 'text', text: 'Done.' },
      finish,
    ]),
  })
  t.after(() => second.close())
  second.scheduler.start()

  await second.until(run.id, ({ endedAt }) => endedAt !== null)
  const events = await second.events(run.id)

  assert.deepEqual(
    dataOf(events, 'tool.done').map(({ callId, outcome }) => [callId === 's1', outcome]),
    [
      [true, 'cancelled'],
      [false, 'succeeded'],
    ],
  )
  assert.equal(dataOf(events, 'source.found').length, 1)
  assert.equal(dataOf(events, 'run.ended')[0]?.output, 'I search. Done.')
})
