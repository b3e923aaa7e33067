// The reducer of @polylog/client: whatever happens to the frames on their way, the state is that of the whole run, and it
// says what the journal says.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { foldRun, type RunFrame, type RunState } from '../../client/src/index.ts'
import { sseReader } from '../../client/src/sse.ts'
import { agentDialect } from '../../src/dialects/agent/agent.ts'
import { encodeEvents } from '../../src/dialects/dialect.ts'
import { beginning } from '../../src/dialects/cursor.ts'
import { anyEvent } from '../support/event-arbitraries.ts'
import type { Scenario } from '../scenarios/journal-builder.ts'
import { scenarios } from '../scenarios/scenarios.ts'

/** The bytes that the server sends for a journal, with a keep-alive at the end of each part. */
function bytesOf({ runId, events }: Scenario): Buffer {
  const { text } = encodeEvents(agentDialect, agentDialect.open({ runId }), events, beginning)
  return Buffer.from(text + (agentDialect.keepAlive(0, 1) ?? ''))
}

function framesOf(chunks: readonly Uint8Array[]): RunFrame[] {
  const decoder = new TextDecoder()
  const read = sseReader()
  return chunks
    .flatMap((chunk) => read(decoder.decode(chunk, { stream: true })))
    .flatMap(({ id, data }) => (id === undefined ? [] : [{ ...(JSON.parse(data) as RunFrame), id }]))
}

function cutAt(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const sorted = [0, ...places.map((place) => place % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b)
  return sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end))
}

const anyScenario = fc.constantFrom(...scenarios)

describe('foldRun', () => {
  test('gives the same state for any division of the bytes into chunks', () => {
    fc.assert(
      fc.property(anyScenario, fc.array(fc.nat(), { maxLength: 40 }), (scenario, places) => {
        const bytes = bytesOf(scenario)
        assert.deepEqual(foldRun(framesOf(cutAt(bytes, places))), foldRun(framesOf([bytes])))
      }),
    )
  })

  test('reads the other line ends of event streams, cut between CR and LF too', () => {
    fc.assert(
      fc.property(
        anyScenario,
        fc.constantFrom('\r\n', '\r'),
        fc.array(fc.nat(), { maxLength: 40 }),
        (scenario, lineEnd, places) => {
          const bytes = bytesOf(scenario)
          const other = Buffer.from(`${bytes.toString().replaceAll('\n', lineEnd)}: comment`)
          assert.deepEqual(framesOf(cutAt(other, places)), framesOf([bytes]))
        },
      ),
    )
  })

  test('gives the same state if a reconnect repeats frames, from any place', () => {
    fc.assert(
      fc.property(anyScenario, fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 8 }), (scenario, resumes) => {
        const frames = framesOf([bytesOf(scenario)])
        let read = 0
        let state: RunState | undefined
        for (const [from, count] of [...resumes, [0, frames.length] as const]) {
          // A resumed stream starts at or before the first frame that is missing.
          const start = from % (read + 1)
          const end = Math.min(frames.length, start + count)
          state = foldRun(frames.slice(start, end), state)
          read = Math.max(read, end)
        }
        assert.deepEqual(state, foldRun(frames))
      }),
    )
  })

  test('ignores frames that are out of date, and keeps the same object', () => {
    fc.assert(
      fc.property(anyScenario, fc.nat(), fc.array(fc.nat(), { maxLength: 8 }), (scenario, place, stale) => {
        const frames = framesOf([bytesOf(scenario)])
        const read = frames.slice(0, 1 + (place % frames.length))
        const state = foldRun(read)
        const old = stale.flatMap((index) => read[index % read.length] ?? [])
        assert.equal(foldRun(old, state), state)
      }),
    )
  })

  test('never changes a state that it has returned', () => {
    for (const scenario of scenarios) {
      const states: { state: RunState; text: string }[] = []
      let state: RunState | undefined
      for (const frame of framesOf([bytesOf(scenario)])) {
        state = foldRun([frame], state)
        states.push({ state, text: JSON.stringify(state) })
      }
      for (const before of states) assert.equal(JSON.stringify(before.state), before.text)
    }
  })

  test('bears frames in an order that no run has, and frames that it does not know', () => {
    const events = fc.sample(anyEvent, { seed: 1, numRuns: 400 }).map((event, index) => ({ ...event, seq: index + 1 }))
    const frames = framesOf([bytesOf({ name: 'anything', runId: 'run', events })])
    const unknown = { id: '9000', event: 'from.the.future', data: { x: 1 } } as unknown as RunFrame
    const state = foldRun([...frames, unknown])
    assert.equal(state.cursor, '9000')
  })

  for (const scenario of scenarios) {
    test(`says what the journal of “${scenario.name}” says`, () => {
      const { blocks, status, input, error } = foldRun(framesOf([bytesOf(scenario)]))
      const { events } = scenario
      const ended = events.findLast((event) => event.type === 'run.ended')
      for (const event of events) {
        if (event.type === 'run.accepted') assert.equal(input, event.data.input)
        if (event.type === 'message.done' && event.data.role === 'assistant') {
          const block = blocks.find((candidate) => candidate.type === 'text' && candidate.id === event.data.messageId)
          const words = { active: 'done', superseded: 'superseded', abandoned: 'abandoned' } as const
          // A message that was abandoned before its first delta has no frame at all.
          if (block === undefined) assert.equal(event.data.text, '')
          else assert.deepEqual(block, { ...block, text: event.data.text, state: words[event.data.state] })
        }
        if (event.type === 'source.found') {
          const block = blocks.find((candidate) => candidate.type === 'text' && candidate.id === event.data.messageId)
          assert.ok(block?.type === 'text' && block.sources.some(({ id }) => id === event.data.sourceId))
        }
        if (event.type === 'tool.called') {
          const block = blocks.find((candidate) => candidate.type === 'tool' && candidate.id === event.data.callId)
          const done = events.find((other) => other.type === 'tool.done' && other.data.callId === event.data.callId)
          assert.equal(
            block?.type === 'tool' && /^(succeeded|failed|cancelled)$/.test(block.status),
            done !== undefined,
          )
        }
      }
      if (ended?.type !== 'run.ended') assert.match(status, /^(queued|running|awaiting_input)$/)
      else {
        assert.equal(status, ended.data.status === 'canceled' ? 'cancelled' : ended.data.status)
        assert.deepEqual(error, ended.data.error)
        assert.deepEqual(
          blocks.filter((block) => block.type === 'question' && block.open),
          [],
        )
      }
    })
  }
})
