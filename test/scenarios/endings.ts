// Runs that fail or are cancelled, and runs that a restart interrupts.

import { scenario } from './journal-builder.ts'
import { startsTwoCalls } from './tools.ts'

export const endings = [
  scenario('cancelled mid sentence', (journal) =>
    journal
      .accepted('Tell me a story.')
      .running()
      .asks(1, 'message-1')
      .says('message-1', 'Once ', 'upon a')
      .message('message-1', 'Once upon a', 1, 'abandoned')
      .cancelled('running'),
  ),

  scenario('cancelled before it began', (journal) =>
    journal.accepted('Tell me a story.', { isNew: true }).cancelled('queued'),
  ),

  scenario('cancelled during a tool', (journal) =>
    startsTwoCalls(journal)
      .returns('call-1', { time: '04:04' })
      .done('call-2', 'cancelled', 'Cancelled with its run.', {
        error: { code: 'tool_cancelled', message: 'The run ended before this call finished.' },
      })
      .cancelled('running'),
  ),

  scenario('model down', (journal) =>
    journal
      .accepted('Hello?', { isNew: true })
      .running()
      .asks(1, 'message-1')
      .fails('model_failed', 'The model could not be reached. Try again.', true),
  ),

  scenario('out of steps after a tool', (journal) =>
    journal
      .accepted('What time is it?')
      .running()
      .asks(1, 'message-1')
      .calls('call-1', 'current_time', {})
      .stepDone(1, 'message-1', 1)
      .starts('call-1', {})
      .returns('call-1', { time: '03:04' })
      // The limit of steps is reached, so the model is not asked again.
      .fails('max_steps', 'The run reached its limit of 1 steps without a final answer.'),
  ),

  scenario('timed out', (journal) =>
    journal
      .accepted('Count to a million.')
      .running()
      .asks(1, 'message-1')
      .says('message-1', 'One, ', 'two, ')
      .add('answer.discarded', { step: 1, model: 'demo/demo', usage: { inputTokens: 12, outputTokens: 3 } })
      .message('message-1', 'One, two, ', 1, 'abandoned')
      .fails('run_timed_out', 'The run took longer than 600 s and was stopped.'),
  ),

  scenario('resumed after restart with the same text', (journal) =>
    journal
      .accepted('Recite.')
      .running()
      .asks(1, 'message-1')
      .says('message-1', 'Roses ', 'are ')
      .restarted()
      .asks(1, 'message-1')
      // What the model repeats word for word was shown already.
      .says('message-1', 'red.')
      .message('message-1', 'Roses are red.', 1)
      .stepDone(1, 'message-1')
      .succeeds('message-1', 'Roses are red.'),
  ),

  scenario('superseded after restart', (journal) =>
    journal
      .accepted('Recite.')
      .running()
      .asks(1, 'message-1')
      .thinks('reasoning-1', 'A poem about roses.')
      .says('message-1', 'Roses ', 'are ')
      .restarted()
      .asks(1, 'message-1')
      .thinks('reasoning-2', 'Perhaps violets.')
      .message('message-1', 'Roses are ', 1, 'superseded')
      .says('message-2', 'Violets ', 'are blue.')
      .message('message-2', 'Violets are blue.', 1)
      .stepDone(1, 'message-2')
      .succeeds('message-2', 'Violets are blue.'),
  ),

  // After the restart the model calls a tool without a word; the next text still has to stand apart.
  scenario('superseded by a tool call', (journal) =>
    journal
      .accepted('What time is it?')
      .running()
      .asks(1, 'message-1')
      .says('message-1', 'I think ')
      .restarted()
      .asks(1, 'message-1')
      .message('message-1', 'I think ', 1, 'superseded')
      .calls('call-1', 'current_time', {})
      .stepDone(1, 'message-2', 1)
      .starts('call-1', {})
      .returns('call-1', { time: '03:04' })
      .answers(2, 'message-3', 'It is 03:04.')
      .succeeds('message-3', 'It is 03:04.'),
  ),
] as const
