// The feed of the user: what changes, for every part of the console. All tabs of a browser share one connection: the tab
// that holds the lock reads the feed and passes its frames on. If that tab is closed, another one takes over after the
// last frame that it has seen.

import { useEffect, useRef } from 'react'
import type { FeedFrame } from '@polylog/client'
import { type Api, currentApi, useApi } from '../api/api.ts'
import { session } from '../api/session.ts'
import { createStore } from '../app/store.ts'
import { holdLock } from './tab-lock.ts'

/** `offline`: the server does not let us read the feed, for example without a login. */
export type FeedConnection = 'connecting' | 'live' | 'reconnecting' | 'offline'

export const feedConnection = createStore<FeedConnection>('connecting')

type Listener = (frame: FeedFrame) => void
type TabMessage = { frame: FeedFrame } | { connection: FeedConnection } | { question: 'connection' }

const listeners = new Set<Listener>()
let running: { api: Api; controller: AbortController } | null = null

/**
 * Calls `listener` with every frame while the component is there. After `hello` with `resumed: false`, and after `reset`,
 * read your lists: changes before it are not told.
 */
export function useFeed(listener: Listener): void {
  const latest = useRef(listener)
  latest.current = listener
  const api = useApi()
  useEffect(() => {
    const hear = (frame: FeedFrame) => latest.current(frame)
    listeners.add(hear)
    return () => void listeners.delete(hear)
  }, [])
  useEffect(startFeed, [api])
}

/** Starts the feed of the session, unless it runs already. */
function startFeed(): void {
  const api = currentApi()
  if (running?.api === api) return
  running?.controller.abort()
  running = { api, controller: new AbortController() }
  void follow(api, running.controller.signal)
}

function tell(frame: FeedFrame): void {
  for (const listener of listeners) listener(frame)
}

async function follow(api: Api, signal: AbortSignal): Promise<void> {
  const name = `polylog feed ${sessionKey()}`
  const channel = 'BroadcastChannel' in globalThis ? new BroadcastChannel(name) : null
  let cursor: string | undefined
  let isReader = false
  if (channel !== null) {
    channel.onmessage = ({ data }: MessageEvent<TabMessage>) => {
      if ('question' in data) {
        if (isReader) channel.postMessage({ connection: feedConnection.get() })
      } else if ('connection' in data) feedConnection.set(data.connection)
      else {
        cursor = data.frame.cursor ?? cursor
        tell(data.frame)
      }
    }
    channel.postMessage({ question: 'connection' } satisfies TabMessage)
  }
  const connected = (connection: FeedConnection) => {
    feedConnection.set(connection)
    channel?.postMessage({ connection } satisfies TabMessage)
  }
  try {
    await holdLock(name, signal)
    isReader = true
    const frames = api.client.feed({
      ...(cursor === undefined ? {} : { after: cursor }),
      signal,
      onConnection: ({ state }) => connected(state === 'open' ? 'live' : 'reconnecting'),
    })
    for await (const frame of frames) {
      tell(frame)
      channel?.postMessage({ frame } satisfies TabMessage)
    }
  } catch {
    // A refusal, for example 401: the sign-in dialog is open, and the next session starts again.
    if (!signal.aborted) connected('offline')
  } finally {
    channel?.close()
  }
}

/** Tabs of different users must not share a feed. Not the token itself: other code of this origin could list the locks. */
function sessionKey(): string {
  const { token, user } = session.get()
  const text = token === null ? `user ${user ?? ''}` : `token ${token}`
  let hash = 0x811c9dc5
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0
  return `${hash.toString(16)} ${text.length}`
}
