// Runs that wait for a person.

import { scenario } from './journal-builder.ts'
import type { JournalBuilder } from './journal-builder.ts'

const message = { to: 'bob', text: 'hello' }

/** Up to the moment where the run has parked: one unsafe call, one open confirmation. */
function asksToSend(journal: JournalBuilder): JournalBuilder {
  return journal
    .accepted('Tell Bob hello.', { isNew: true })
    .running()
    .asks(1, 'message-1')
    .calls('call-1', 'send_message', message, { effect: 'unsafe', note: 'Send “hello” to Bob' })
    .stepDone(1, 'message-1', 1)
    .confirmation('confirmation-1', 'call-1', message)
    .parks()
}

export const people = [
  scenario('tool confirmed', (journal) =>
    asksToSend(journal)
      .resolved('confirmation-1', 'confirmed')
      .unparks()
      .starts('call-1', message)
      .returns('call-1', { messageId: 'sent-1' })
      .answers(2, 'message-2', 'I told ', 'him.')
      .succeeds('message-2', 'I told him.'),
  ),

  scenario('edited while confirming', (journal) => {
    const edited = { to: 'bob', text: 'good evening' }
    asksToSend(journal)
      .resolved('confirmation-1', 'confirmed', { input: edited })
      .unparks()
      .starts('call-1', edited)
      .returns('call-1', { messageId: 'sent-1' })
      .answers(2, 'message-2', 'I told him.')
      .succeeds('message-2', 'I told him.')
  }),

  scenario('tool denied', (journal) =>
    asksToSend(journal)
      .resolved('confirmation-1', 'rejected', { reason: 'Not now.' })
      .unparks()
      .done('call-1', 'denied', 'Not now.', { error: { code: 'tool_denied', message: 'Not now.' } })
      .answers(2, 'message-2', 'Then not.')
      .succeeds('message-2', 'Then not.'),
  ),

  scenario('confirmation expired', (journal) =>
    asksToSend(journal)
      .resolved('confirmation-1', 'expired')
      .unparks('interaction.auto_decide.timeout')
      .done('call-1', 'denied', 'Nobody decided in time.', {
        error: { code: 'tool_expired', message: 'Nobody decided in time.' },
      })
      .answers(2, 'message-2', 'Nobody answered.')
      .succeeds('message-2', 'Nobody answered.'),
  ),

  scenario('cancelled while a person is awaited', (journal) =>
    asksToSend(journal)
      .resolved('confirmation-1', 'closed')
      .done('call-1', 'cancelled', 'Cancelled with its run.', {
        error: { code: 'tool_cancelled', message: 'The run ended before this call finished.' },
      })
      .cancelled('waiting_user'),
  ),

  scenario('unknown outcome', (journal) =>
    asksToSend(journal)
      .resolved('confirmation-1', 'confirmed')
      .unparks()
      .starts('call-1', message)
      // The process dies here: it is unknown whether Bob got it, so a person is asked.
      .restarted()
      .confirmation('confirmation-2', 'call-1', message, {
        outcome: 'unknown',
        prompt: 'Send “hello” to Bob (this may already have happened before a restart)',
      })
      .parks()
      .resolved('confirmation-2', 'rejected')
      .unparks()
      .done('call-1', 'unknown', 'Nobody knows whether this call happened; it was not run again.', {
        error: {
          code: 'tool_outcome_unknown',
          message: 'Nobody knows whether this call happened; it was not run again.',
        },
      })
      .answers(2, 'message-2', 'Please check with Bob.')
      .succeeds('message-2', 'Please check with Bob.'),
  ),

  scenario('one confirmed beside one that runs', (journal) =>
    journal
      .accepted('Tell Bob the time.')
      .running()
      .asks(1, 'message-1')
      .calls('call-1', 'send_message', message, { effect: 'unsafe' })
      .calls('call-2', 'current_time', {}, { index: 1 })
      .stepDone(1, 'message-1', 2)
      .confirmation('confirmation-1', 'call-1', message)
      .starts('call-2', {})
      .returns('call-2', { time: '03:04' })
      .parks()
      .resolved('confirmation-1', 'confirmed')
      .unparks()
      .starts('call-1', message)
      .returns('call-1', { messageId: 'sent-1' })
      .answers(2, 'message-2', 'Done.')
      .succeeds('message-2', 'Done.'),
  ),

  scenario('question', (journal) =>
    journal
      .accepted('Book a table.')
      .running()
      .asks(1, 'message-1')
      .says('message-1', 'For when?')
      .message('message-1', 'For when?', 1)
      .stepDone(1, 'message-1')
      .add('input.required', {
        interactionId: 'question-1',
        number: 1,
        kind: 'question',
        prompt: 'For when?',
        style: 'choose_one',
        options: [{ id: 'noon' }, { id: 'evening' }],
        fields: ['time'],
      })
      .parks()
      .resolved('question-1', 'replied', { response: { id: 'noon' } })
      .unparks()
      .answers(2, 'message-2', 'Booked.')
      .succeeds('message-2', 'Booked.'),
  ),
] as const
