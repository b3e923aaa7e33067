// Starts the fake Feishu and talks to its control routes.

import type { FeishuBehaviour, SentMessage } from '../fakes/feishu-server.ts'
import { spawnFake } from './spawn-fake.ts'

export type FakeFeishu = {
  baseUrl: string
  appId: string
  appSecret: string
  sent(): Promise<SentMessage[]>
  /** The number of requests so far, refused ones included. */
  requests(): Promise<{ token: number; send: number }>
  /** The behaviour until the next call. */
  behave(behaviour: FeishuBehaviour): Promise<void>
  expireTokens(): Promise<void>
  stop(): Promise<void>
}

export async function startFakeFeishu(): Promise<FakeFeishu> {
  const appId = 'cli_test'
  const appSecret = 'secret'
  const fake = await spawnFake('feishu-server.ts', {
    environment: { FAKE_FEISHU_APP_ID: appId, FAKE_FEISHU_APP_SECRET: appSecret },
  })
  const control = async (name: string, body: unknown = {}) => {
    const response = await fetch(`${fake.baseUrl}/_control/${name}`, { method: 'POST', body: JSON.stringify(body) })
    return (await response.json()) as { sent: SentMessage[]; tokenRequests: number; sendRequests: number }
  }
  return {
    baseUrl: fake.baseUrl,
    appId,
    appSecret,
    sent: async () => (await control('seen')).sent,
    requests: async () => {
      const { tokenRequests, sendRequests } = await control('seen')
      return { token: tokenRequests, send: sendRequests }
    },
    behave: async (behaviour) => {
      await control('behave', behaviour)
    },
    expireTokens: async () => {
      await control('expire-tokens')
    },
    stop: fake.stop,
  }
}
