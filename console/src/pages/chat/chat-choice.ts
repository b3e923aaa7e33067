// Which agent answers in the chat, and with which model. The choice holds for this tab, also when the page is loaded again.

import { createStore } from '../../app/store.ts'

/** Empty: the server's default. */
export type ChatChoice = { agentId: string; model: string }

const key = 'polylog.chat-choice'

export const chatChoice = createStore<ChatChoice>(stored())

chatChoice.subscribe(() => {
  try {
    sessionStorage.setItem(key, JSON.stringify(chatChoice.get()))
  } catch {
    // Without storage the choice lasts until the page is loaded again.
  }
})

/** Goes back to the default if the server no longer offers the choice: its field shows the default then, and would not show what is sent. */
export function keepOffered(agentIds: readonly string[], models: readonly string[]): void {
  const { agentId, model } = chatChoice.get()
  const offered = { agentId: agentIds.includes(agentId) ? agentId : '', model: models.includes(model) ? model : '' }
  if (offered.agentId !== agentId || offered.model !== model) chatChoice.set(offered)
}

function stored(): ChatChoice {
  let saved: Partial<Record<keyof ChatChoice, unknown>> = {}
  try {
    saved = (JSON.parse(sessionStorage.getItem(key) ?? '{}') ?? {}) as typeof saved
  } catch {
    // Not readable: the defaults.
  }
  const { agentId, model } = saved
  return { agentId: typeof agentId === 'string' ? agentId : '', model: typeof model === 'string' ? model : '' }
}
