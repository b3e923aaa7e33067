// Runs with tools that need no consent.

import { type JournalBuilder, scenario } from './journal-builder.ts'

/** Up to the moment at which two calls of one step are running. */
export function startsTwoCalls(journal: JournalBuilder): JournalBuilder {
  return journal
    .accepted('What time is it in Rome and in Lima?')
    .running()
    .asks(1, 'message-1')
    .calls('call-1', 'current_time', { timezone: 'Europe/Rome' })
    .calls('call-2', 'current_time', { timezone: 'America/Lima' }, { index: 1 })
    .stepDone(1, 'message-1', 2)
    .starts('call-1', { timezone: 'Europe/Rome' })
    .starts('call-2', { timezone: 'America/Lima' })
}

export const tools = [
  scenario('one tool', (journal) =>
    journal
      .accepted('What time is it?', { isNew: true })
      .running()
      .asks(1, 'message-1')
      .says('message-1', 'Let me ', 'look.')
      .message('message-1', 'Let me look.', 1)
      .calls('call-1', 'current_time', { timezone: 'UTC' }, { note: 'Look at the clock' })
      .stepDone(1, 'message-1', 1)
      .starts('call-1', { timezone: 'UTC' })
      .add('tool.progress', { callId: 'call-1', message: 'Asking the clock' })
      .returns('call-1', { time: '03:04' })
      .answers(2, 'message-2', 'It is ', '03:04.')
      .succeeds('message-2', 'It is 03:04.'),
  ),

  scenario('parallel tools', (journal) =>
    startsTwoCalls(journal)
      // The second is faster.
      .returns('call-2', { time: '22:04' })
      .returns('call-1', { time: '04:04' })
      .answers(2, 'message-2', '04:04 and 22:04.')
      .succeeds('message-2', '04:04 and 22:04.'),
  ),

  // A turn engine: the remote agent goes on talking while its own call is under way.
  scenario('remote turn', (journal) =>
    journal
      .accepted('Order more paper.')
      .running()
      .add('engine.handle', { engine: 'remote', handle: { run: 'remote-1' } })
      .asks(1, 'message-1')
      .says('message-1', 'One moment.')
      .message('message-1', 'One moment.', 1)
      .calls('call-1', 'order_paper', { sheets: 500 }, { effect: 'unsafe' })
      .stepDone(1, 'message-1', 1)
      .starts('call-1', { sheets: 500 })
      .asks(2, 'message-2')
      .says('message-2', 'The order ', 'is being sent.')
      .message('message-2', 'The order is being sent.', 2)
      .stepDone(2, 'message-2')
      .returns('call-1', { order: 7 })
      .answers(3, 'message-3', 'It is ordered.')
      .succeeds('message-3', 'It is ordered.'),
  ),

  // The provider searches by itself while it answers, and names the pages that the answer is based on.
  scenario('provider-run search', (journal) =>
    journal
      .accepted('Who won?')
      .running()
      .asks(1, 'message-1')
      .says('message-1', 'Let me ', 'search. ')
      .calls('call-1', 'web_search', { query: 'final' }, { source: 'provider:anthropic' })
      .starts('call-1', { query: 'final' })
      .returns('call-1', [{ url: 'https://news.example/final' }])
      .says('message-1', 'The home team')
      .add('source.found', {
        messageId: 'message-1',
        sourceId: 'source-1',
        url: 'https://news.example/final',
        title: 'The final',
      })
      .add('source.found', {
        messageId: 'message-1',
        sourceId: 'source-2',
        title: 'Rules',
        mediaType: 'application/pdf',
      })
      .says('message-1', ' won.')
      .message('message-1', 'Let me search. The home team won.', 1)
      .stepDone(1, 'message-1')
      .succeeds('message-1', 'Let me search. The home team won.'),
  ),

  // A turn engine: the remote agent shares its state, field by field. Null removes a field.
  scenario('state of a remote agent', (journal) =>
    journal
      .accepted('Plan a trip.')
      .running()
      .add('context.patch', { layer: 'session', patch: { city: 'Rome', draft: true } })
      .asks(1, 'message-1')
      .says('message-1', 'To Oslo, ')
      .add('context.patch', { layer: 'session', patch: { city: 'Oslo', draft: null } })
      .says('message-1', 'then.')
      .message('message-1', 'To Oslo, then.', 1)
      .stepDone(1, 'message-1')
      .succeeds('message-1', 'To Oslo, then.'),
  ),

  // A question with a picture, and a tool that returns another one.
  scenario('files', (journal) =>
    journal
      .accepted('Make it brighter.\n[dark.png, image/png, 34.2 KB]', {
        parts: [
          { type: 'text', text: 'Make it brighter.' },
          { type: 'file', fileId: 'file-1', mediaType: 'image/png', name: 'dark.png', size: 34_200 },
        ],
      })
      .running()
      .asks(1, 'message-1')
      .calls('call-1', 'brighten', { by: 2 })
      .stepDone(1, 'message-1', 1)
      .starts('call-1', { by: 2 })
      .returns('call-1', 'Brighter:\n[bright.png, image/png, 35 KB]', {
        files: [{ fileId: 'file-2', mediaType: 'image/png', name: 'bright.png', size: 35_000 }],
      })
      .answers(2, 'message-2', 'Here it is.')
      .succeeds('message-2', 'Here it is.'),
  ),

  scenario('tool threw', (journal) =>
    journal
      .accepted('Look into my notes.')
      .running()
      .asks(1, 'message-1')
      .calls('call-1', 'read_notes', { id: 'missing' })
      .stepDone(1, 'message-1', 1)
      .starts('call-1', { id: 'missing' })
      .done('call-1', 'threw', 'read_notes failed: the disk is gone', {
        error: { code: 'tool_failed', message: 'read_notes failed: the disk is gone' },
        durationMs: 15,
      })
      .answers(2, 'message-2', 'I could not read them.')
      .succeeds('message-2', 'I could not read them.'),
  ),

  scenario('tool failed politely', (journal) =>
    journal
      .accepted('Look into my notes.')
      .running()
      .asks(1, 'message-1')
      .calls('call-1', 'read_notes', { id: 'nothing' })
      .stepDone(1, 'message-1', 1)
      .starts('call-1', { id: 'nothing' })
      .done('call-1', 'failed', 'There is no note “nothing”.', {
        output: { found: false },
        fullLength: 15,
        error: { code: 'tool_failed', message: 'There is no note “nothing”.' },
        durationMs: 15,
      })
      .answers(2, 'message-2', 'There is no such note.')
      .succeeds('message-2', 'There is no such note.'),
  ),

  // The provider sent arguments that are no object; the schema refuses them before anything runs.
  scenario('tool with bare arguments', (journal) =>
    journal
      .accepted('What time is it?')
      .running()
      .asks(1, 'message-1')
      .calls('call-1', 'current_time', 'UTC')
      .stepDone(1, 'message-1', 1)
      .done('call-1', 'failed', 'The arguments do not fit: an object is needed.', {
        error: { code: 'tool_input_invalid', message: 'The arguments do not fit: an object is needed.' },
      })
      .answers(2, 'message-2', 'I do not know.')
      .succeeds('message-2', 'I do not know.'),
  ),
] as const
