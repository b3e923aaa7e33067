// The envelopes of FCMP, scenario by scenario: their order, their pairs, their numbers, and
// what the schema refuses.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { dialectContract, framesOf, textOf } from '../../../test/contracts/dialect-contract.ts'
import { type JournalBuilder, type Scenario, scenario } from '../../../test/scenarios/journal-builder.ts'
import { type ScenarioName, scenarioNamed, scenarios } from '../../../test/scenarios/scenarios.ts'
import type { RunEvent } from '../../journal/event.ts'
import { checkInvariants } from './check-invariants.ts'
import { type FcmpEnvelope, violationOf } from './envelope.ts'
import schema from './fcmp-event-envelope.schema.json' with { type: 'json' }
import { fcmpDialect, type FcmpOptions, snapshotFrame } from './fcmp.ts'

dialectContract(fcmpDialect())
dialectContract(fcmpDialect({ ids: 'fcmp' }))

function told(story: ScenarioName | Scenario, options: FcmpOptions = {}): FcmpEnvelope[] {
  const found = typeof story === 'string' ? scenarioNamed(story) : story
  return framesOf(fcmpDialect(options), found).map(({ frame }) => frame.data as FcmpEnvelope)
}

function short({ type, data }: FcmpEnvelope): string {
  switch (type) {
    case 'conversation.state.changed':
      return `${String(data.from)}>${String(data.to)}`
    case 'conversation.failed':
      return `failed:${(data.error as { code: string }).code}`
    case 'diagnostic.warning':
      return `!${String(data.code)}`
    case 'user.input.required':
      return `?${String(data.interaction_id)}`
    case 'interaction.reply.accepted':
      return `reply${String(data.interaction_id)}`
    case 'interaction.auto_decide.timeout':
      return `timeout${String(data.interaction_id)}`
    case 'assistant.message.final':
      return 'final'
    case 'conversation.started':
      return 'started'
    case 'conversation.completed':
      return 'completed'
  }
}

const line = (story: ScenarioName | Scenario) => told(story).map(short).join(' ')

const begun = 'queued>running started'
const done = 'running>succeeded completed'
const waits = (number: number) => `running>waiting_user ?${number}`
const goesOn = 'waiting_user>queued queued>running'

const sequences: Readonly<Record<ScenarioName, string>> = {
  'plain answer': `${begun} final ${done}`,
  reasoning: `${begun} final ${done}`,
  'queued behind another run': `!CONVERSATION_BUSY ${begun} final ${done}`,
  'state of a remote agent': `${begun} final ${done}`,
  'answer rejected and repaired': `${begun} final !OUTPUT_INVALID final ${done}`,
  'older messages cut and summarised': `${begun} !CONTEXT_CUT !CONTEXT_SUMMARISED final ${done}`,
  'large truncated output': `${begun} final ${done}`,
  'one tool': `${begun} final final ${done}`,
  'parallel tools': `${begun} final ${done}`,
  'remote turn': `${begun} final final final ${done}`,
  'provider-run search': `${begun} final ${done}`,
  files: `${begun} final ${done}`,
  'tool threw': `${begun} !TOOL_FAILED final ${done}`,
  'tool failed politely': `${begun} !TOOL_FAILED final ${done}`,
  'tool with bare arguments': `${begun} !TOOL_INPUT_INVALID final ${done}`,
  'tool confirmed': `${begun} ${waits(1)} reply1 ${goesOn} final ${done}`,
  'edited while confirming': `${begun} ${waits(1)} reply1 ${goesOn} final ${done}`,
  'tool denied': `${begun} ${waits(1)} reply1 ${goesOn} final ${done}`,
  'confirmation expired': `${begun} ${waits(1)} timeout1 ${goesOn} final ${done}`,
  'cancelled while a person is awaited': `${begun} ${waits(1)} waiting_user>canceled failed:CANCELED`,
  'unknown outcome': `${begun} ${waits(1)} reply1 ${goesOn} running>queued queued>running ${waits(2)} reply2 ${goesOn} !TOOL_OUTCOME_UNKNOWN final ${done}`,
  'one confirmed beside one that runs': `${begun} ${waits(1)} reply1 ${goesOn} final ${done}`,
  question: `${begun} final ${waits(1)} reply1 ${goesOn} final ${done}`,
  'tool of the client': `${begun} final ${waits(1)} reply1 ${goesOn} final ${done}`,
  'failed tool of the client': `${begun} final ${waits(1)} reply1 ${goesOn} !TOOL_FAILED final ${done}`,
  'tool of the client beside one that runs': `${begun} ${waits(1)} reply1 ${goesOn} final ${done}`,
  'cancelled while the client is awaited': `${begun} final ${waits(1)} waiting_user>canceled failed:CANCELED`,
  'cancelled mid sentence': `${begun} running>canceled failed:CANCELED`,
  'cancelled before it began': 'queued>canceled failed:CANCELED',
  'cancelled during a tool': `${begun} running>canceled failed:CANCELED`,
  'model down': `${begun} running>failed failed:MODEL_FAILED`,
  'out of steps after a tool': `${begun} running>failed failed:MAX_STEPS`,
  'timed out': `${begun} running>failed failed:TIMEOUT`,
  'resumed after restart with the same text': `${begun} running>queued queued>running final ${done}`,
  'superseded after restart': `${begun} running>queued queued>running final ${done}`,
  'superseded by a tool call': `${begun} running>queued queued>running final ${done}`,
}

/** Two calls that both need a person. */
function asksTwice(journal: JournalBuilder): JournalBuilder {
  const input = { to: 'bob' }
  return journal
    .accepted('Tell Bob and Eve.')
    .running()
    .asks(1, 'message-1')
    .calls('call-1', 'send_message', input, { effect: 'unsafe' })
    .calls('call-2', 'send_message', input, { effect: 'unsafe', index: 1 })
    .stepDone(1, 'message-1', 2)
    .confirmation('confirmation-1', 'call-1', input)
    .confirmation('confirmation-2', 'call-2', input)
}

function bothDone(journal: JournalBuilder): JournalBuilder {
  return journal
    .done('call-1', 'denied', 'No.')
    .done('call-2', 'denied', 'No.')
    .answers(2, 'message-2', 'Then not.')
    .succeeds('message-2', 'Then not.')
}

const several = {
  answered: scenario('two answered', (journal) =>
    bothDone(
      asksTwice(journal)
        .parks()
        .resolved('confirmation-1', 'rejected')
        .resolved('confirmation-2', 'rejected')
        .unparks(),
    ),
  ),
  higherFirst: scenario('the second answered first', (journal) =>
    bothDone(
      asksTwice(journal)
        .parks()
        .resolved('confirmation-2', 'rejected')
        .resolved('confirmation-1', 'rejected')
        .unparks(),
    ),
  ),
  mixed: scenario('one answered, one expired', (journal) =>
    bothDone(
      asksTwice(journal)
        .parks()
        .resolved('confirmation-1', 'rejected')
        .resolved('confirmation-2', 'expired')
        .unparks('interaction.auto_decide.timeout'),
    ),
  ),
  early: scenario('one answered before the run waits', (journal) =>
    bothDone(
      asksTwice(journal)
        .resolved('confirmation-1', 'rejected')
        .parks()
        .resolved('confirmation-2', 'rejected')
        .unparks(),
    ),
  ),
  left: scenario('one answered, then cancelled', (journal) =>
    asksTwice(journal)
      .parks()
      .resolved('confirmation-1', 'rejected')
      .resolved('confirmation-2', 'closed')
      .done('call-1', 'cancelled', 'Cancelled.')
      .done('call-2', 'cancelled', 'Cancelled.')
      .cancelled('waiting_user'),
  ),
}

describe('fcmp', () => {
  for (const { name } of scenarios) {
    it(`sends “${name}” in the order in which it happened`, () => {
      assert.equal(line(name), sequences[name])
    })
  }

  for (const story of [...scenarios, ...Object.values(several)]) {
    it(`sends “${story.name}” with seq 1, 2, 3… and only envelopes that fit the schema`, () => {
      const envelopes = told(story)

      assert.deepEqual(
        envelopes.map(({ seq }) => seq),
        envelopes.map((_, index) => index + 1),
      )
      for (const envelope of envelopes) assert.equal(violationOf(envelope), null)
    })

    it(`keeps every rule in “${story.name}”, at every moment of it`, () => {
      for (let cut = 1; cut <= story.events.length; cut++) {
        const part = { ...story, events: story.events.slice(0, cut) }
        const verdicts = checkInvariants(part.events, told(part))
        assert.deepEqual(
          verdicts.filter(({ kept }) => !kept),
          [],
          `after ${cut} events`,
        )
      }
    })
  }

  it('numbers over attempts, and says which attempt speaks', () => {
    const [, , , asked, reply, back, again] = told('tool confirmed')

    assert.deepEqual(
      [asked, reply, back, again].map((envelope) => envelope?.meta.attempt),
      [1, 1, 1, 2],
    )
  })

  it('asks a person after it says that the run waits, with the number of the interaction in both', () => {
    const [, , waiting, asked] = told('tool confirmed')

    assert.equal(waiting?.data.pending_interaction_id, 1)
    assert.deepEqual(asked?.data, { interaction_id: 1, kind: 'confirm', prompt: 'Send “hello” to Bob' })
  })

  it('says how a question wants to be answered', () => {
    const asked = told('question').find(({ type }) => type === 'user.input.required')

    assert.equal(asked?.data.kind, 'choose_one')
  })

  it('says when a reply was accepted, and by which rule the run went on without one', () => {
    const accepted = told('tool confirmed').find(({ type }) => type === 'interaction.reply.accepted')
    const timeout = told('confirmation expired').find(({ type }) => type === 'interaction.auto_decide.timeout')
    const at = scenarioNamed('tool confirmed').events.find(({ type }) => type === 'input.resolved')?.at ?? 0

    assert.deepEqual(accepted?.data, {
      interaction_id: 1,
      resolution_mode: 'user_reply',
      accepted_at: new Date(at).toISOString(),
    })
    assert.equal(timeout?.data.policy, 'deny')
    assert.equal(timeout?.data.timeout_sec, 86_400)
  })

  describe('with several questions at once', () => {
    it('shows the lowest open one, then the next, and accepts both when the run goes on', () => {
      assert.equal(line(several.answered), `${begun} ${waits(1)} ?2 reply1 reply2 ${goesOn} final ${done}`)
    })

    it('does not ask again for the one that is shown when another is answered', () => {
      assert.equal(line(several.higherFirst), `${begun} ${waits(1)} reply2 reply1 ${goesOn} final ${done}`)
    })

    it('closes the pair only of the question for which the run goes on', () => {
      assert.equal(
        line(several.mixed),
        `${begun} ${waits(1)} ?2 !INTERACTION_RESOLVED timeout2 ${goesOn} final ${done}`,
      )
    })

    it('does not mention a question that was decided before the run had to wait', () => {
      assert.equal(line(several.early), `${begun} ${waits(2)} reply2 ${goesOn} final ${done}`)
    })

    it('reports no reply as accepted if the run did not go on with it', () => {
      assert.equal(line(several.left), `${begun} ${waits(1)} ?2 waiting_user>canceled failed:CANCELED`)
    })
  })

  it('says why a run counts as done: a checked output, or the end of the turn', () => {
    const skill = { id: 's', name: 'S', text: 'Run.' }
    const checked = { ...skill, outputSchema: { type: 'object' } }
    const spec = { agentId: 'a', engine: 'local', model: 'demo/demo' }
    const base = { owner: 'ada', family: 'jobs', conversationId: null, userMessageId: null, input: 'Go.' }
    const reasonOf = (accepted: object, prepared?: object) => {
      const story = scenario('a job', (journal) => {
        journal.add('run.accepted', { ...base, spec: { ...spec, ...accepted } })
        if (prepared !== undefined) journal.add('run.prepared', { input: 'Go.', files: [], ...prepared })
        return journal.running().answers(1, 'm', '{}').succeeds('m', '{}')
      })
      return told(story).at(-1)?.data.reason_code
    }

    assert.equal(reasonOf({ skill: checked }), 'OUTPUT_VALIDATED')
    assert.equal(reasonOf({ skill: checked }, {}), 'OUTPUT_VALIDATED')
    assert.equal(reasonOf({}, { skill: checked }), 'OUTPUT_VALIDATED')
    assert.equal(reasonOf({ skill }), 'DONE_SIGNAL_FOUND')
    assert.equal(reasonOf({}, { skill }), 'DONE_SIGNAL_FOUND')
    assert.equal(reasonOf({}), 'DONE_SIGNAL_FOUND')
  })

  it('skips blank texts', () => {
    const blank = scenario('blank', (journal) =>
      journal.accepted('x').running().answers(1, 'message-1', ' ', '\n').succeeds('message-1', ' \n'),
    )

    assert.equal(line(blank), `${begun} ${done}`)
    told(blank, { onViolation: ({ type }) => assert.fail(`${type} was meant to go out`) })
  })

  it('names the stream’s frames chat_event, with seq as id on its own routes and the address elsewhere', () => {
    const own = textOf(fcmpDialect({ ids: 'fcmp' }), scenarioNamed('plain answer'))
      .split('\n\n')
      .slice(0, -1)
    const journal = textOf(fcmpDialect(), scenarioNamed('plain answer')).split('\n\n').slice(0, -1)

    assert.deepEqual(
      own.map((block) => block.split('\n', 2)),
      own.map((_, index) => [`id: ${index + 1}`, 'event: chat_event']),
    )
    assert.match(journal[0] ?? '', /^id: 3\.1\nevent: chat_event\ndata: \{"protocol_version":"fcmp\/1\.0"/)
  })

  it('keeps a connection alive with a heartbeat that says the time', () => {
    assert.equal(
      fcmpDialect().keepAlive(Date.UTC(2026, 0, 1), 1),
      'event: heartbeat\ndata: {"ts":"2026-01-01T00:00:00.000Z"}\n\n',
    )
  })

  it('opens a stream with a snapshot without an id', () => {
    assert.equal(
      snapshotFrame('waiting_user', 4, 1),
      'event: snapshot\ndata: {"status":"waiting_user","cursor":4,"pending_interaction_id":1}\n\n',
    )
    assert.equal(snapshotFrame('queued', 0, undefined), 'event: snapshot\ndata: {"status":"queued","cursor":0}\n\n')
  })

  it('leaves out what does not fit the schema, says so to its owner, and leaves no hole', () => {
    const { runId, events } = scenarioNamed('plain answer')
    const broken = events.map((event): RunEvent => (event.type === 'message.done' ? { ...event, attempt: 0 } : event))
    const complaints: unknown[] = []

    const envelopes = told(
      { name: 'x', runId, events: broken },
      { onViolation: (violation) => complaints.push(violation) },
    )

    assert.deepEqual(
      envelopes.map(({ seq, type }) => [seq, type]),
      [
        [1, 'conversation.state.changed'],
        [2, 'conversation.started'],
        [3, 'conversation.state.changed'],
        [4, 'conversation.completed'],
      ],
    )
    assert.equal(complaints.length, 1)
    assert.deepEqual(Object.keys(complaints[0] as object), ['path', 'message', 'runId', 'journalSeq', 'type'])
  })

  it('still says that a person is awaited if the row with the question is lost', () => {
    const { runId, events } = scenarioNamed('question')
    const kept = events.filter(({ type }) => type !== 'input.required')

    const asked = told({ name: 'x', runId, events: kept }).find(({ type }) => type === 'user.input.required')

    assert.equal(asked?.data.kind, 'open_text')
  })
})

describe('the schema of an envelope', () => {
  it('fits its own meta-schema, which the server does not check at its start', () => {
    const ajv = new Ajv2020()
    assert.equal(ajv.validateSchema(schema), true, ajv.errorsText())
    assert.equal(ajv.validateSchema({ ...schema, type: 'no such type' }), false)
  })

  const whole = () => structuredClone(told('tool confirmed')[2]) as unknown as Record<string, Record<string, unknown>>

  it('has closed objects at every level', () => {
    for (const path of [[], ['data'], ['meta']]) {
      const envelope = whole()
      const target = path.reduce<Record<string, unknown>>(
        (value, key) => value[key] as Record<string, unknown>,
        envelope,
      )
      target.invented = 1
      assert.notEqual(violationOf(envelope), null, path.join('.'))
    }
  })

  it('needs every field that is required, and times with a zone', () => {
    for (const key of ['protocol_version', 'run_id', 'seq', 'ts', 'engine', 'type', 'data', 'meta']) {
      const envelope = whole()
      Reflect.deleteProperty(envelope, key)
      assert.notEqual(violationOf(envelope), null, key)
    }
    assert.notEqual(violationOf({ ...whole(), ts: '2026-01-02T03:04:05' }), null)
    assert.notEqual(violationOf({ ...whole(), seq: 0 }), null)
  })

  it('allows further fields in diagnostics', () => {
    assert.equal(violationOf({ ...whole(), type: 'diagnostic.warning', data: { code: 'X', anything: [1] } }), null)
    assert.notEqual(violationOf({ ...whole(), type: 'diagnostic.warning', data: {} }), null)
  })
})
