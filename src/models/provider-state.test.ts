// What the state of a provider contains, and that it is sent back with the messages that it belongs to.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonValue } from '../journal/event.ts'
import { assistantContent, ProviderStateCollector } from './provider-state.ts'

const identity = { provider: 'anthropic', keyVariable: undefined, secrets: [] }
const call = (callId: string) => ({ callId, name: 'add', input: { a: 1 } })

function collect(fill: (collector: ProviderStateCollector) => void): JsonValue | undefined {
  const collector = new ProviderStateCollector(identity)
  fill(collector)
  return collector.toJson()
}

/** Reasoning, text, redacted reasoning, and two calls of which the first is signed. */
const signed = collect((state) => {
  state.add('reasoning', '0', '', undefined)
  state.add('reasoning', '0', 'Let me ', undefined)
  state.add('reasoning', '0', 'see.', undefined)
  state.add('reasoning', '0', '', { anthropic: { signature: 'sig' } })
  state.add('text', '1', 'I ', undefined)
  state.add('text', '1', 'look.', undefined)
  state.add('reasoning', '2', '', { anthropic: { redactedData: 'xyz' } })
  state.add('call', 'toolu_1', '', { google: { thoughtSignature: 'ts' } })
  state.add('call', 'toolu_2', '', undefined)
})

describe('the state of a provider', () => {
  it('is put back in the order of the answer, with the calls as the journal has them', () => {
    const content = assistantContent({
      role: 'assistant',
      content: 'I look.',
      toolCalls: [call('renamed'), call('toolu_2')],
      providerState: signed ?? null,
    })

    assert.deepEqual(content, [
      { type: 'reasoning', text: 'Let me see.', providerOptions: { anthropic: { signature: 'sig' } } },
      { type: 'text', text: 'I look.' },
      { type: 'reasoning', text: '', providerOptions: { anthropic: { redactedData: 'xyz' } } },
      {
        type: 'tool-call',
        toolCallId: 'renamed',
        toolName: 'add',
        input: { a: 1 },
        providerOptions: { google: { thoughtSignature: 'ts' } },
      },
      { type: 'tool-call', toolCallId: 'toolu_2', toolName: 'add', input: { a: 1 } },
    ])
  })

  it('is undefined for an answer without metadata', () => {
    assert.equal(
      collect((state) => {
        state.add('reasoning', '0', 'hm', undefined)
        state.add('text', '1', 'so', undefined)
        state.add('call', 'c', '', undefined)
      }),
      undefined,
    )
  })

  it('keeps the last value of a field, and ignores nulls', () => {
    const state = collect((collector) => {
      collector.add('reasoning', 'rs:0', '', { openai: { itemId: 'rs', reasoningEncryptedContent: null } })
      collector.add('text', 'msg', 'Hi', undefined)
      collector.add('reasoning', 'rs:0', '', { openai: { itemId: 'rs', reasoningEncryptedContent: 'enc' } })
    })

    assert.deepEqual(state, [
      { type: 'reasoning', text: '', options: { openai: { itemId: 'rs', reasoningEncryptedContent: 'enc' } } },
      { type: 'text', chars: 2 },
    ])
  })

  it('keeps its reasoning if the text is not that of the answer any more', () => {
    const content = assistantContent({
      role: 'assistant',
      content: 'Shortened',
      toolCalls: [call('c')],
      providerState: signed ?? null,
    })

    assert.deepEqual(
      content.map((part) => part.type),
      ['reasoning', 'text', 'reasoning', 'tool-call'],
    )
    assert.deepEqual(content[1], { type: 'text', text: 'Shortened' })
  })

  it('is ignored if it does not have the known form', () => {
    const content = assistantContent({ role: 'assistant', content: 'Hi', providerState: { from: 'the future' } })

    assert.deepEqual(content, [{ type: 'text', text: 'Hi' }])
  })

  it('has a limit', () => {
    const megabyte = 'x'.repeat(1024 * 1024)

    assert.throws(
      () =>
        collect((state) => {
          for (let block = 0; block < 9; block += 1)
            state.add('reasoning', String(block), '', { anthropic: { redactedData: `${block}${megabyte}` } })
        }),
      { code: 'model_error' },
    )
    assert.throws(
      () =>
        collect((state) => {
          for (let block = 0; block < 3000; block += 1) state.add('text', String(block), '', undefined)
        }),
      { code: 'model_error' },
    )
  })
})
