// The AG-UI engine on the run rig, against a fake agent in its own process that the tests of a
// file share. Each run asks its own question, which selects the answers scripted for it.

import type { TestContext } from 'node:test'
import { type AgUiOptions, createAgUiEngine } from '../../src/engines/ag-ui/ag-ui-engine.ts'
import type { TurnEngine } from '../../src/engines/engine.ts'
import type { EventOf, RunEvent } from '../../src/journal/event.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { type AgUiAction, call, type FakeAgUi, type FakeInterrupt, message, sharedFakeAgUi } from './fake-ag-ui.ts'
import { ended, eventsOf } from './run-helpers.ts'
import { openRig, type Rig, type RigOptions } from './run-rig.ts'

export type AgUiRig = {
  readonly fake: FakeAgUi
  /** An engine for the agent at `url`, by default the fake. */
  engineAt(url?: string, more?: Partial<AgUiOptions>): TurnEngine
  /** A rig whose runs are answered by the fake; closed when the test ends. */
  rigWith(context: TestContext, options?: RigOptions): Promise<Rig>
  /** A question that selects the answers which are scripted for it. */
  asked(...answers: AgUiAction[][]): Promise<string>
  /** The journal of a run that gets this answer. */
  journalOf(context: TestContext, answer: AgUiAction[], options?: RigOptions): Promise<RunEvent[]>
}

export function sharedAgUiRig(): AgUiRig {
  const fake = sharedFakeAgUi()
  let questions = 0
  const shared: AgUiRig = {
    fake,
    engineAt: (url = fake.url, more = {}) =>
      createAgUiEngine({
        name: 'ag-ui:helper',
        settings: () => ({ url }),
        environment: {},
        clock: systemClock,
        ...more,
      }),
    async rigWith(context, options = {}) {
      const rig = await openRig({ turnEngine: shared.engineAt(), ...options })
      context.after(() => rig.close())
      return rig
    },
    async asked(...answers) {
      questions += 1
      const question = `question-${questions}.`
      await fake.script(question, ...answers)
      return question
    },
    async journalOf(context, answer, options) {
      const rig = await shared.rigWith(context, options)
      const { run } = await rig.start({ input: await shared.asked(answer) })
      await rig.until(run.id, ended)
      return await rig.events(run.id)
    },
  }
  return shared
}

export const shownText = (events: RunEvent[]) => joined(eventsOf(events, 'text.delta'))
export const shownReasoning = (events: RunEvent[]) => joined(eventsOf(events, 'reasoning.delta'))
export const endOf = (events: RunEvent[]) => eventsOf(events, 'run.ended')[0]?.data

function joined(deltas: EventOf<'text.delta' | 'reasoning.delta'>[]): string {
  return deltas.map(({ data }) => data.text).join('')
}

/** An answer with a call that waits for `approval`. */
export const refund: AgUiAction[] = [
  ...message('m1', 'I will refund.'),
  ...call('c1', 'refund', { order: 7 }),
  { type: 'STATE_SNAPSHOT', snapshot: { order: 7 } },
]

/** The interrupt that follows `refund`. */
export const approval: FakeInterrupt = {
  id: 'int_1',
  reason: 'tool_call',
  toolCallId: 'c1',
  message: 'Refund order 7?',
  responseSchema: { type: 'object', properties: { approved: { type: 'boolean' }, editedArgs: { type: 'object' } } },
}
