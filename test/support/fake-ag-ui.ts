// Starts the fake AG-UI agent, talks to its control routes, and writes its events.

import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import type { AgUiAction, AgUiSeen, SeenRun } from '../fakes/ag-ui-agent.ts'
import { type FakeProcess, spawnFake } from './spawn-fake.ts'

export type { AgUiAction } from '../fakes/ag-ui-agent.ts'

export type FakeAgUi = {
  /** For `engine.url` of a definition. */
  readonly url: string
  /** Queues answers for the next runs whose last user message contains `match`. */
  script(match: string, ...answers: AgUiAction[][]): Promise<void>
  seen(): Promise<AgUiSeen>
  /** The runs whose last user message contains `match`. */
  runs(match: string): Promise<SeenRun[]>
  /** Ends every stall. */
  release(): Promise<void>
  reset(): Promise<void>
  stop(): Promise<void>
}

export async function startFakeAgUi(): Promise<FakeAgUi> {
  const agent = await spawnFake('ag-ui-agent.ts')
  return fakeAgUiOf(() => agent)
}

/** One agent for all tests of a file: started before the first test, stopped after the last. */
export function sharedFakeAgUi(): FakeAgUi {
  let agent: FakeProcess | undefined
  before(async () => {
    agent = await spawnFake('ag-ui-agent.ts')
  })
  after(() => agent?.stop())
  return fakeAgUiOf(() => {
    assert.ok(agent !== undefined, 'the agent is there only while tests run')
    return agent
  })
}

function fakeAgUiOf(running: () => FakeProcess): FakeAgUi {
  const control = async (name: string, body: unknown = {}): Promise<unknown> => {
    const response = await fetch(`${running().baseUrl}/_control/${name}`, {
      method: 'POST',
      body: JSON.stringify(body),
    })
    return await response.json()
  }
  const seen = async () => (await control('seen')) as AgUiSeen
  return {
    get url() {
      return `${running().baseUrl}/agent`
    },
    async script(match, ...answers) {
      await control('script', { match, answers })
    },
    seen,
    async runs(match) {
      return (await seen()).runs.filter(({ input }) =>
        JSON.stringify(input.messages.findLast(({ role }) => role === 'user')).includes(match),
      )
    },
    async release() {
      await control('release')
    },
    async reset() {
      await control('reset')
    },
    stop: () => running().stop(),
  }
}

/** A message in one piece per text. */
export function message(messageId: string, ...deltas: string[]): AgUiAction[] {
  return [
    { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
    ...deltas.map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })),
    { type: 'TEXT_MESSAGE_END', messageId },
  ]
}

/** A call whose arguments come in two pieces. */
export function call(toolCallId: string, toolCallName: string, input: unknown): AgUiAction[] {
  const text = JSON.stringify(input)
  const half = Math.ceil(text.length / 2)
  return [
    { type: 'TOOL_CALL_START', toolCallId, toolCallName },
    { type: 'TOOL_CALL_ARGS', toolCallId, delta: text.slice(0, half) },
    { type: 'TOOL_CALL_ARGS', toolCallId, delta: text.slice(half) },
    { type: 'TOOL_CALL_END', toolCallId },
  ]
}

export function result(toolCallId: string, content: string): AgUiAction {
  return { type: 'TOOL_CALL_RESULT', messageId: `result-${toolCallId}`, toolCallId, content }
}

export type FakeInterrupt = {
  id: string
  reason: string
  message?: string
  toolCallId?: string
  responseSchema?: Record<string, unknown>
  expiresAt?: string
  metadata?: Record<string, unknown>
}

export function interrupt(...interrupts: FakeInterrupt[]): AgUiAction {
  return { type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts } }
}
