// The message that a turn sends to the gateway. The gateway's session has the earlier turns,
// so usually only the new question is sent. If the session is new and the conversation is not
// (another engine answered before), the earlier turns are put in front of it.

import type { ModelMessage } from '../../models/model.ts'

const earlierCharsMax = 32_000

export function newInput(messages: readonly ModelMessage[], sessionHasHistory: boolean): string {
  const at = messages.findLastIndex(({ role }) => role === 'user')
  const input = messages[at]?.content ?? ''
  if (sessionHasHistory) return input
  const earlier = messages
    .slice(0, Math.max(at, 0))
    .filter(({ role, content }) => (role === 'user' || role === 'assistant') && content !== '')
    .map(({ role, content }) => `${role === 'user' ? 'User' : 'Assistant'}: ${content}`)
    .join('\n\n')
  if (earlier === '') return input
  return `The conversation so far:\n\n${earlier.slice(-earlierCharsMax)}\n\nThe new message:\n\n${input}`
}
