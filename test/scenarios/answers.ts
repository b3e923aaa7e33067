// Runs with text only, and one whose tool returns too much.

import { scenario } from './journal-builder.ts'

export const answers = [
  scenario('plain answer', (journal) =>
    journal
      .accepted('Say hello.', { isNew: true })
      .running()
      // Characters of two, three and four bytes, a newline and a quote: what wires and chunks like to break.
      .answers(1, 'message-1', 'Grüße, ', '世界 ', '🙂\n', 'and "bye".')
      .succeeds('message-1', 'Grüße, 世界 🙂\nand "bye".'),
  ),

  scenario('reasoning', (journal) =>
    journal
      .accepted('How many legs have two spiders?')
      .running()
      .asks(1, 'message-1')
      .thinks('reasoning-1', 'A spider has ', 'eight legs.')
      .says('message-1', 'Six', 'teen.')
      .message('message-1', 'Sixteen.', 1)
      .stepDone(1, 'message-1', 0, { inputTokens: 12, outputTokens: 9, reasoningTokens: 6 })
      .succeeds('message-1', 'Sixteen.'),
  ),

  scenario('queued behind another run', (journal) =>
    journal
      .accepted('And then?')
      .add('diagnostic', {
        code: 'conversation_busy',
        message: 'Waiting for the run before this one in the conversation (running).',
        details: { runId: 'run-before', status: 'running', whenBusy: 'queue' },
      })
      // What an upload brings, where a run has to wait for one; no wire has a word for it.
      .add('run.prepared', { input: 'And then?', files: [{ path: 'story.txt', size: 12 }] })
      .running()
      .answers(1, 'message-1', 'Then ', 'it rained.')
      .succeeds('message-1', 'Then it rained.'),
  ),

  scenario('answer rejected and repaired', (journal) =>
    journal
      .accepted('Give me JSON.')
      .running()
      .answers(1, 'message-1', 'Sure: ', 'one.')
      .add('output.rejected', { step: 1, messageId: 'message-1', errors: ['it is not JSON'] })
      .answers(2, 'message-2', '{"count":', '1}')
      .succeeds('message-2', '{"count":1}'),
  ),

  scenario('older messages cut and summarised', (journal) =>
    journal
      .accepted('Where were we?')
      .running()
      .add('context.cut', {
        strategy: 'sliding_window',
        fromMessageId: 'message-old-1',
        throughMessageId: 'message-old-8',
        keptFromMessageId: 'message-old-9',
        messages: 8,
        tokens: 4000,
      })
      .add('context.summarised', {
        summaryMessageId: 'summary-1',
        fromMessageId: 'message-old-9',
        throughMessageId: 'message-old-20',
        keptFromMessageId: 'message-old-21',
        messages: 12,
        tokens: 6000,
        text: 'They planned a trip to Kyoto in May.',
        model: 'demo/demo',
        usage: { inputTokens: 6100, outputTokens: 12 },
        durationMs: 30,
      })
      .answers(1, 'message-1', 'In ', 'Kyoto.')
      .succeeds('message-1', 'In Kyoto.'),
  ),

  scenario('large truncated output', (journal) =>
    journal
      .accepted('Read the whole book.')
      .running()
      .asks(1, 'message-1')
      .calls('call-1', 'read_notes', { id: 'book' })
      .stepDone(1, 'message-1', 1)
      .starts('call-1', { id: 'book' })
      .done('call-1', 'succeeded', 'Read 3,000,000 characters.', {
        output: 'chapter one '.repeat(400),
        fullLength: 3_000_000,
        truncated: true,
        outputRef: 'output-1',
        durationMs: 90,
      })
      .answers(2, 'message-2', 'It is long.')
      .succeeds('message-2', 'It is long.'),
  ),
] as const
