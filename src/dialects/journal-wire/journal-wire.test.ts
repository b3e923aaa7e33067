// The journal as a stream: it keeps the promises of every dialect, and the bytes in it are those of the wires themselves.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dialectContract, framesOf } from '../../../test/contracts/dialect-contract.ts'
import { scenarioNamed, scenarios } from '../../../test/scenarios/scenarios.ts'
import { agentDialect } from '../agent/agent.ts'
import { type Dialect, endsStream } from '../dialect.ts'
import { fcmpDialect } from '../fcmp/fcmp.ts'
import { openAiChatDialect } from '../openai-chat/openai-chat.ts'
import { vercelDataDialect } from '../vercel-data/vercel-data.ts'
import { journalWire, type JournalFrame } from './journal-wire.ts'

const wires: Record<string, Dialect> = {
  sse: agentDialect,
  'vercel-ai': vercelDataDialect,
  fcmp: fcmpDialect(),
  'openai-chat': openAiChatDialect(),
}
const dialect = journalWire(wires)

dialectContract(dialect)

describe('the journal as a stream', () => {
  for (const scenario of scenarios) {
    it(`has one message for each event, with the bytes of every wire: ${scenario.name}`, () => {
      const messages = framesOf(dialect, scenario).map(({ frame }) => frame.data as JournalFrame)
      assert.deepEqual(
        messages.map(({ seq, type }) => [seq, type]),
        scenario.events.map(({ seq, type }) => [seq, type]),
      )
      for (const [name, wire] of Object.entries(wires)) {
        const sent = messages.flatMap((message) => (message.wires[name] ?? []).map((text) => [message.seq, text]))
        assert.deepEqual(
          sent,
          framesOf(wire, scenario).map(({ seq, text }) => [seq, text]),
          name,
        )
        assert.deepEqual(
          messages.filter(({ ends }) => ends.includes(name)).map(({ seq }) => seq),
          scenario.events.filter((event) => endsStream(wire, event)).map(({ seq }) => seq),
          name,
        )
      }
    })
  }

  it('hides the system prompt of a configuration and the handle of a remote agent', () => {
    const { events } = scenarioNamed('remote turn')
    const accepted = events[0]
    assert.ok(accepted?.type === 'run.accepted')
    const prompted = {
      ...accepted,
      data: { ...accepted.data, spec: { ...accepted.data.spec, systemPrompt: 'secret' } },
    }
    const handle = {
      seq: 2,
      at: 0,
      attempt: 1,
      type: 'engine.handle',
      data: { engine: 'x', handle: 'secret' },
    } as const
    for (const event of [prompted, handle]) {
      assert.doesNotMatch(JSON.stringify(dialect.step(dialect.open({ runId: 'r' }), event).frames), /secret/)
    }
  })
})
