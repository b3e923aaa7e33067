// Runs that wait for a tool of the client.

import { scenario } from './journal-builder.ts'
import type { JournalBuilder } from './journal-builder.ts'

const place = { unit: 'celsius' }
const client = { effect: 'unsafe', source: 'client', note: 'Call get_location of the client' } as const

/** Up to the moment where the run has parked: one call of the client's tool is open. */
function handsOver(journal: JournalBuilder): JournalBuilder {
  return journal
    .accepted('How warm is it here?', { isNew: true })
    .running()
    .asks(1, 'message-1')
    .says('message-1', 'Let me see.')
    .message('message-1', 'Let me see.', 1)
    .calls('call-1', 'get_location', place, client)
    .stepDone(1, 'message-1', 1)
    .handsOver('interaction-1', 'call-1', place)
    .parks()
}

export const clientTools = [
  scenario('tool of the client', (journal) =>
    handsOver(journal)
      .resolved('interaction-1', 'replied', { response: { city: 'Oslo' } })
      .unparks()
      .returns('call-1', { city: 'Oslo' })
      .answers(2, 'message-2', 'It is cold ', 'in Oslo.')
      .succeeds('message-2', 'It is cold in Oslo.'),
  ),

  scenario('failed tool of the client', (journal) =>
    handsOver(journal)
      .resolved('interaction-1', 'rejected', { reason: 'No permission.' })
      .unparks()
      .done('call-1', 'failed', 'No permission.', { error: { code: 'tool_failed', message: 'No permission.' } })
      .answers(2, 'message-2', 'Then I cannot know.')
      .succeeds('message-2', 'Then I cannot know.'),
  ),

  scenario('tool of the client beside one that runs', (journal) =>
    journal
      .accepted('Where and when am I?')
      .running()
      .asks(1, 'message-1')
      .calls('call-1', 'get_location', place, client)
      .calls('call-2', 'current_time', {}, { index: 1 })
      .stepDone(1, 'message-1', 2)
      .handsOver('interaction-1', 'call-1', place)
      .starts('call-2', {})
      .returns('call-2', { time: '03:04' })
      .parks()
      .resolved('interaction-1', 'replied', { response: 'Oslo' })
      .unparks()
      .returns('call-1', 'Oslo')
      .answers(2, 'message-2', 'In Oslo, at night.')
      .succeeds('message-2', 'In Oslo, at night.'),
  ),

  scenario('cancelled while the client is awaited', (journal) =>
    handsOver(journal)
      .resolved('interaction-1', 'closed')
      .done('call-1', 'cancelled', 'Cancelled with its run.', {
        error: { code: 'tool_cancelled', message: 'The run ended before this call finished.' },
      })
      .cancelled('waiting_user'),
  ),
] as const
