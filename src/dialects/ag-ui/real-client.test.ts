// The real AG-UI clients read every scenario, cut into pieces of any size, with their check of the
// order of events on.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { textOf } from '../../../test/contracts/dialect-contract.ts'
import type { Scenario } from '../../../test/scenarios/journal-builder.ts'
import { scenarioNamed, scenarios } from '../../../test/scenarios/scenarios.ts'
import { agUiReaders, linesOfAgent } from '../../../test/support/ag-ui-reader.ts'
import type { RunEvent } from '../../journal/event.ts'
import { endsStream } from '../dialect.ts'
import { type AgUiDialectOptions, agUiDialect } from './ag-ui.ts'

const bytesOf = (text: string) => new TextEncoder().encode(text)

function inPieces(bytes: Uint8Array, size: number): Uint8Array[] {
  const pieces: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
  return pieces
}

/** As started by a client of this version. */
function startedBy(of: Scenario, protocolVersion: string | undefined): Scenario {
  const agUi = {
    threadId: 'thread-1',
    runId: 'run-of-client',
    ...(protocolVersion === undefined ? {} : { protocolVersion }),
  }
  const events = of.events.map((event): RunEvent => {
    if (event.type === 'run.accepted') {
      return { ...event, data: { ...event.data, spec: { ...event.data.spec, agUi } } }
    }
    if (event.type !== 'input.required') return event
    // The client looks at its own clock, and the deadlines of the scenarios are long past.
    const { deadlineAt: _deadline, ...data } = event.data
    return { ...event, data }
  })
  return { ...of, events }
}

/** The streams of a run, one for each request of a client that answers whatever it is asked. */
function streamsOf(of: Scenario, options: AgUiDialectOptions): Uint8Array[] {
  const first = agUiDialect()
  const rest = agUiDialect(options)
  const ends = of.events.filter((event) => endsStream(first, event)).map(({ seq }) => seq)
  return ends.map((_end, index) => {
    const before = index === 0 ? 0 : (ends[index - 1] as number)
    return bytesOf(textOf(index === 0 ? first : rest, of, { seq: before, index: null }))
  })
}

for (const reader of agUiReaders) {
  const protocolVersion = reader.name === 'AG-UI 1.0' ? '1.0' : undefined
  const continuedBy = { runId: 'next-run-of-client', protocolVersion }

  describe(`${reader.name} as a reader`, () => {
    for (const each of scenarios) {
      it(`accepts “${each.name}”, and all ways to cut it give the same messages`, async () => {
        const streams = streamsOf(startedBy(each, protocolVersion), { continuedBy })
        const seen: string[][] = []
        for (const size of [1_000_000, 997, 7]) {
          // The long output in small pieces would take seconds, and shows nothing new.
          if (size === 7 && each.name === 'large truncated output') continue
          const agent = reader.open(streams.map((bytes) => inPieces(bytes, size)))
          for (const _stream of streams) {
            const resume = agent.pendingInterrupts.map(({ id }) => ({
              interruptId: id,
              status: 'resolved' as const,
              payload: { approved: true },
            }))
            const read = await reader.read(agent, resume.length === 0 ? {} : { resume })
            assert.equal(read.refused, undefined)
            const ended = each.events.at(-1)
            if (agent.pendingInterrupts.length === 0 && ended?.type === 'run.ended') {
              assert.equal(read.failed !== undefined, ended.data.status === 'failed')
            }
          }
          assert.deepEqual(agent.pendingInterrupts, [])
          seen.push(linesOfAgent(agent))
        }
        for (const lines of seen) assert.deepEqual(lines, seen[0])
      })

      it(`makes the same messages of a replay of “${each.name}” as of its streams`, async () => {
        const asked = startedBy(each, protocolVersion)
        const streams = streamsOf(asked, {})
        const live = reader.open(streams.map((bytes) => [bytes]))
        for (const _stream of streams) {
          const resume = live.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: 'cancelled' as const }))
          await reader.read(live, resume.length === 0 ? {} : { resume })
        }
        const history = [{ id: 'message-user', role: 'user', content: 'Hello' }]
        const replay = agUiDialect({ decidedUpTo: Number.MAX_SAFE_INTEGER, history })
        const fresh = reader.open([[bytesOf(textOf(replay, asked))]])

        assert.equal((await reader.read(fresh)).refused, undefined)

        assert.deepEqual(linesOfAgent(fresh), ['user: Hello', ...linesOfAgent(live)])
      })
    }

    it('has the call and its result in the message of the step', async () => {
      const agent = reader.open([streamsOf(scenarioNamed('one tool'), {})])

      await reader.read(agent)

      assert.deepEqual(linesOfAgent(agent), [
        'assistant: Let me look.',
        'call current_time {"timezone":"UTC"}',
        'tool: {"time":"03:04"}',
        'assistant: It is 03:04.',
      ])
      assert.equal(agent.messages[0]?.id, 'message-1')
    })

    it('tells a cancelled run from one that succeeded, if its version can', async () => {
      const agent = reader.open([streamsOf(startedBy(scenarioNamed('cancelled mid sentence'), protocolVersion), {})])

      assert.equal((await reader.read(agent)).outcome, protocolVersion === undefined ? 'none' : 'cancelled')
    })
  })
}
