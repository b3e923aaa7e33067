// Starts the stand-in gateway as a process of its own and talks to its control routes.

import type { GatewayAction, GatewayBehaviour, GatewayState, Restart } from '../fakes/openclaw-script.ts'
import { spawnFake } from './spawn-fake.ts'

export type FakeOpenclaw = {
  baseUrl: string
  token: string
  /** What the next run does whose message contains `match`. */
  script(match: string, actions: GatewayAction[]): Promise<void>
  behave(behaviour: GatewayBehaviour): Promise<void>
  release(): Promise<void>
  drop(): Promise<void>
  restart(restart?: Restart): Promise<void>
  state(): Promise<GatewayState>
  stop(): Promise<void>
}

export async function startFakeOpenclaw(options: { tickMs?: number } = {}): Promise<FakeOpenclaw> {
  const token = 'gateway-token'
  const environment = { OPENCLAW_FAKE_TOKEN: token, OPENCLAW_FAKE_TICK_MS: String(options.tickMs ?? 1_000) }
  const fake = await spawnFake('openclaw-gateway.ts', { environment })
  const control = async (name: string, body?: unknown): Promise<GatewayState> => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const response = await fetch(`${fake.baseUrl}/control/${name}`, init)
    if (!response.ok) throw new Error(`The fake gateway refused ${name}: ${response.status}`)
    return (await response.json()) as GatewayState
  }
  return {
    baseUrl: fake.baseUrl,
    token,
    script: async (match, actions) => void (await control('script', { match, actions })),
    behave: async (behaviour) => void (await control('behave', behaviour)),
    release: async () => void (await control('release', {})),
    drop: async () => void (await control('drop', {})),
    restart: async (restart = {}) => void (await control('restart', restart)),
    state: () => control('state'),
    stop: () => fake.stop(),
  }
}
