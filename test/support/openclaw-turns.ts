// Turns of the OpenClaw engine against a stand-in gateway in its own process, one gateway for each test file.

import { after, before } from 'node:test'
import { createOpenclawEngine, openclawUrl } from '../../src/engines/openclaw/openclaw-engine.ts'
import type { TurnDecision, TurnEngine, TurnPart, TurnRequest } from '../../src/engines/engine.ts'
import { AppError } from '../../src/errors/app-error.ts'
import type { JsonValue } from '../../src/journal/event.ts'
import { type Clock, systemClock } from '../../src/kit/clock.ts'
import { ulidIds } from '../../src/kit/ids.ts'
import type { ModelMessage } from '../../src/models/model.ts'
import { createOpenAiClient } from '../../src/models/openai-client.ts'
import type { GatewayAction } from '../fakes/openclaw-script.ts'
import { type FakeOpenclaw, startFakeOpenclaw } from './fake-openclaw.ts'
import { someone } from './test-server.ts'

type Turn = {
  engine?: TurnEngine
  runId?: string
  conversationId?: string
  input?: string
  earlier?: ModelMessage[]
  handle?: JsonValue
  decisions?: Record<string, TurnDecision>
  signal?: AbortSignal
  onPart?(part: TurnPart): void
}

export type TurnResult = { parts: TurnPart[]; error: AppError | undefined; handle: JsonValue | undefined }

export function openclawTurns() {
  let gateway: FakeOpenclaw
  before(async () => {
    gateway = await startFakeOpenclaw()
  })
  after(async () => {
    await gateway.stop()
  })

  function engineAt(url: string, options: { clock?: Clock; token?: string } = {}): TurnEngine {
    const { clock = systemClock, token = gateway.token } = options
    return createOpenclawEngine({
      url,
      token,
      version: '1.0.0',
      clock,
      chatCompletions: createOpenAiClient({
        baseUrl: `${openclawUrl(url, 'http')}/v1`,
        apiKey: token,
        provider: 'openclaw',
        keyVariable: 'OPENCLAW_TOKEN',
        ids: ulidIds(() => 0),
        clock,
      }),
    })
  }

  /** Runs a turn as the run loop does: it stops at an approval without a decision. */
  async function take(turn: Turn): Promise<TurnResult> {
    const { engine = engineAt(gateway.baseUrl), runId = someone('run'), decisions = {} } = turn
    const parts: TurnPart[] = []
    let handle = turn.handle
    const request: TurnRequest = {
      runId,
      owner: 'ada',
      conversationId: turn.conversationId ?? `of-${runId}`,
      messages: [...(turn.earlier ?? []), { role: 'user', content: turn.input ?? runId }],
      spec: {} as TurnRequest['spec'],
    }
    const signal = turn.signal ?? new AbortController().signal
    try {
      for await (const batch of engine.turn(request, turn.handle, { of: (key) => decisions[key] }, signal)) {
        for (const part of batch) {
          parts.push(part)
          turn.onPart?.(part)
          if (part.type === 'handle') handle = part.handle
          if (part.type === 'approval' && decisions[part.key] === undefined) return { parts, error: undefined, handle }
        }
      }
      return { parts, error: undefined, handle }
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      return { parts, error, handle }
    }
  }

  /** The run id is the marker that selects the script. */
  async function scripted(actions: GatewayAction[], turn: Turn = {}): Promise<TurnResult & { runId: string }> {
    const runId = turn.runId ?? someone('run')
    await gateway.script(runId, actions)
    return { runId, ...(await take({ ...turn, runId })) }
  }

  /** How often the gateway started the run. */
  const startsOf = async (runId: string) => (await gateway.state()).started.filter((run) => run.runId === runId).length

  return {
    get gateway() {
      return gateway
    },
    engineAt,
    take,
    scripted,
    startsOf,
  }
}

export const textOf = (parts: TurnPart[]) => parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
export const visible = (parts: TurnPart[]) => parts.filter(({ type }) => type !== 'handle' && type !== 'attached')

/** A run with text, a call and its result. */
export const story: GatewayAction[] = [
  { text: ['Let ', 'me ', 'look.\n'] },
  { call: { id: 'c1', name: 'search', args: { q: 'x' } } },
  { progress: { id: 'c1', text: 'half' } },
  { result: { id: 'c1', text: '{"hits":2}' } },
  { text: ['Two ', 'hits.'] },
]
/** The parts of a turn that `story` becomes. */
export const storyParts: TurnPart[] = [
  { type: 'text', text: 'Let' },
  { type: 'text', text: ' me' },
  { type: 'text', text: ' look.' },
  { type: 'tool-called', callId: 'c1', name: 'search', input: { q: 'x' } },
  { type: 'tool-progress', callId: 'c1', message: 'half' },
  { type: 'tool-done', callId: 'c1', outcome: 'succeeded', output: { hits: 2 } },
  { type: 'text', text: 'Two' },
  { type: 'text', text: ' hits.' },
  { type: 'finish', reason: 'stop', usage: { inputTokens: 11, outputTokens: 7 } },
]
