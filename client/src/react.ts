// The hook for React: a conversation with its runs, and the functions to take part in it.

import { useEffect, useMemo, useSyncExternalStore } from 'react'
import { type Chat, type ChatOptions, type ChatSnapshot, createChat } from './chat.ts'
import type { PolylogClient } from './client.ts'

export type UsePolylogOptions = ChatOptions & {
  /** Made once, outside of the component, or kept with `useMemo`. */
  client: PolylogClient
}

export type UsePolylog = ChatSnapshot & Pick<Chat, 'send' | 'stop' | 'confirm' | 'reject' | 'reply'>

/** Another `client` or `conversationId` is another conversation. Other options may change at any time. */
export function usePolylog({ client, conversationId, ...options }: UsePolylogOptions): UsePolylog {
  const chat = useMemo(
    // With the options of the first render: a page may send before its effects have run.
    () => createChat(client, conversationId === undefined ? options : { ...options, conversationId }),
    [client, conversationId],
  )
  useEffect(() => chat.configure(options))
  useEffect(() => {
    void chat.open()
    return chat.close
  }, [chat])
  const snapshot = useSyncExternalStore(chat.subscribe, chat.getSnapshot, chat.getSnapshot)
  const { send, stop, confirm, reject, reply } = chat
  return { ...snapshot, send, stop, confirm, reject, reply }
}
