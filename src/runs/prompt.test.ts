// The window of history that a model is given: bounded, with every call together with its
// result, and always with the user's message.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { JournalBuilder } from '../../test/scenarios/journal-builder.ts'
import type { AgentDefinition } from '../agents/agent-definition.ts'
import { foldRun } from '../journal/run-state.ts'
import type { ModelMessage } from '../models/model.ts'
import type { MessageRow } from '../stores/message-store.ts'
import { estimateTokens } from '../kit/token-estimate.ts'
import { historyToDrop, stepsToDrop, withFittingResults } from './context-fit.ts'
import { type PromptInput, promptMessages, promptParts } from './prompt.ts'

/** The prompt for a run whose agent has a memory of `definition.card.memory.maxTokens`, and whose model has a large window. */
function buildPrompt(input: PromptInput): ModelMessage[] {
  const memory = input.definition.card.memory.maxTokens ?? 0
  const room = { window: 1_000_000, memory, portion: Math.ceil(memory / 2) }
  const whole = promptParts(input)
  const cut = { ...whole, history: whole.history.slice(historyToDrop(whole, room)) }
  const parts = { ...cut, steps: cut.steps.slice(stepsToDrop(cut, room)) }
  return promptMessages(withFittingResults(parts, room))
}

function agentWith(maxTokens: number): AgentDefinition {
  const card = { memory: { strategy: 'sliding_window', maxTokens } } as AgentDefinition['card']
  const prompt = { systemTemplate: 'You are {{{name}}}.', userTemplate: '', defaults: { name: 'helpful & kind' } }
  return { card, ...prompt, operations: [] }
}

let position = 0
function row(parts: Partial<MessageRow>): MessageRow {
  position += 1
  return {
    id: `row-${position}`,
    conversationId: 'c',
    runId: 'run-0',
    parentId: null,
    role: 'user',
    content: '',
    state: 'active',
    toolCallId: null,
    metadata: {},
    createdAt: position,
    ...parts,
  }
}

/** One earlier turn: a question, some calls with their results, an answer. Providers count call ids anew in every turn. */
function turn(runId: string, question: string, calls: { output: string }[], answer: string): MessageRow[] {
  const toolCalls = calls.map((_, index) => ({ callId: `call_${index}`, name: 'look', input: { of: runId } }))
  const results = calls.map(({ output }, index) =>
    row({ runId, role: 'tool', content: output, toolCallId: `call_${index}`, metadata: { outcome: 'succeeded' } }),
  )
  return [
    row({ runId, role: 'user', content: question }),
    ...(calls.length === 0
      ? []
      : [row({ runId, role: 'assistant', content: '', metadata: { toolCalls } }), ...results]),
    row({ runId, role: 'assistant', content: answer }),
  ]
}

function stateWith(steps: { text: string; outputs: string[] }[]) {
  const journal = new JournalBuilder().accepted('now').running()
  for (const [index, { text, outputs }] of steps.entries()) {
    const step = index + 1
    journal.asks(step, `message-${step}`)
    if (text !== '') journal.says(`message-${step}`, text).message(`message-${step}`, text, step)
    outputs.forEach((_, call) => journal.calls(`now-${step}-${call}`, 'look', { step }, { step, index: call }))
    journal.stepDone(step, `message-${step}`, outputs.length)
    outputs.forEach((output, call) =>
      journal.starts(`now-${step}-${call}`, { step }).returns(`now-${step}-${call}`, output),
    )
  }
  return foldRun(journal.events)
}

function tokensOf(messages: ModelMessage[]): number {
  return messages.reduce((sum, message) => {
    const calls = message.role === 'assistant' ? (message.toolCalls ?? []) : []
    return (
      sum +
      4 +
      estimateTokens(message.content) +
      calls.reduce((more, call) => more + 8 + estimateTokens(JSON.stringify(call.input)), 0)
    )
  }, 0)
}

/** What a provider insists on: after a message with calls come exactly their results, and results come nowhere else. */
function checkPairs(messages: ModelMessage[]): void {
  let due: string[] = []
  for (const message of messages) {
    if (message.role === 'tool') {
      assert.equal(message.callId, due.shift())
      continue
    }
    assert.deepEqual(due, [], 'a call was parted from its result')
    if (message.role === 'assistant') due = (message.toolCalls ?? []).map(({ callId }) => callId)
  }
  assert.deepEqual(due, [])
}

const text = fc.string({ unit: fc.constantFrom('word ', '好', 'x'), maxLength: 60 })
const anyTurn = fc.record({
  question: text,
  calls: fc.array(fc.record({ output: text }), { maxLength: 3 }),
  answer: text,
})
const anyStep = fc.record({ text, outputs: fc.array(text, { minLength: 1, maxLength: 3 }) })

describe('what the model is given', () => {
  it('never parts a call from its result, stays within the memory, and always holds the user’s message', () => {
    fc.assert(
      fc.property(
        fc.array(anyTurn, { maxLength: 6 }),
        fc.array(anyStep, { maxLength: 4 }),
        text,
        fc.integer({ min: 1, max: 400 }),
        (turns, steps, input, maxTokens) => {
          const history = turns.flatMap(({ question, calls, answer }, index) =>
            turn(`run-${index}`, question, calls, answer),
          )

          const messages = buildPrompt({
            definition: agentWith(maxTokens),
            history,
            input,
            context: undefined,
            state: stateWith(steps),
          })

          const told = messages.slice(1)
          checkPairs(told)
          const own = tokensOf([{ role: 'user', content: input }])
          const at = told.findLastIndex((message) => message.role === 'user')
          // The newest step is always shown, because the model has to see its results.
          const newest = tokensOf(
            told.slice(told.findLastIndex(({ role }, index) => role === 'assistant' && index > at)),
          )
          const needed = own + (steps.length === 0 ? 0 : newest)
          assert.ok(tokensOf(told) <= Math.max(maxTokens, needed), `${tokensOf(told)} tokens of ${maxTokens}`)
          assert.equal(told[at]?.content, input)
          assert.equal(told.slice(0, at)[0]?.role ?? 'user', 'user', 'the history begins with a question')
          assert.equal(messages[0]?.role, 'system')
        },
      ),
      { numRuns: 500 },
    )
  })

  it('is the newest part of the history, whole, where it fits', () => {
    const history = [
      ...turn('run-0', 'first', [{ output: 'one' }], 'a'),
      ...turn('run-1', 'second', [{ output: 'two' }], 'b'),
    ]
    const prompt = (maxTokens: number) =>
      buildPrompt({
        definition: agentWith(maxTokens),
        history,
        input: 'third',
        context: undefined,
        state: stateWith([]),
      }).flatMap((message) => (message.role === 'user' ? [message.content] : []))

    assert.deepEqual(prompt(10_000), ['first', 'second', 'third'])
    assert.deepEqual(prompt(50), ['second', 'third'])
    assert.deepEqual(prompt(1), ['third'])
  })

  it('gives each earlier call its own result, also if two turns used the same call id', () => {
    const history = [
      ...turn('run-0', 'q', [{ output: 'the result of run-0' }], 'a'),
      ...turn('run-1', 'q', [{ output: 'the result of run-1' }], 'a'),
    ]

    const messages = buildPrompt({
      definition: agentWith(10_000),
      history,
      input: 'x',
      context: undefined,
      state: stateWith([]),
    })

    const told = messages.flatMap((message) => {
      if (message.role === 'tool') return [message.content]
      return message.role === 'assistant'
        ? (message.toolCalls ?? []).map(({ input }) => `called in ${(input as { of: string }).of}`)
        : []
    })
    assert.deepEqual(told, ['called in run-0', 'the result of run-0', 'called in run-1', 'the result of run-1'])
  })

  it('shows a call of an earlier turn that failed as an error, and one that succeeded as a success', () => {
    const history = turn('run-0', 'q', [{ output: 'fine' }, { output: 'The tool failed: no' }], 'a').map((message) =>
      message.toolCallId === 'call_1' ? { ...message, metadata: { outcome: 'failed' } } : message,
    )

    const messages = buildPrompt({
      definition: agentWith(10_000),
      history,
      input: 'x',
      context: undefined,
      state: stateWith([]),
    })

    assert.deepEqual(
      messages.flatMap((message) => (message.role === 'tool' ? [[message.content, message.isError]] : [])),
      [
        ['fine', false],
        ['The tool failed: no', true],
      ],
    )
  })

  it('shows a message without its call if the result of the call is gone', () => {
    const history = turn('run-0', 'q', [{ output: 'gone' }], 'a').filter(({ role }) => role !== 'tool')

    const messages = buildPrompt({
      definition: agentWith(10_000),
      history,
      input: 'x',
      context: undefined,
      state: stateWith([]),
    })

    checkPairs(messages)
    assert.deepEqual(
      messages.map(({ role }) => role),
      ['system', 'user', 'assistant', 'user'],
    )
  })

  it('has no message without words, because some providers refuse it', () => {
    const messages = buildPrompt({
      definition: { ...agentWith(1000), systemTemplate: ' \n' },
      history: turn('run-1', 'First?', [], '\n\n'),
      input: 'Second?',
      context: undefined,
      state: stateWith([]),
    })

    assert.deepEqual(
      messages.map(({ role, content }) => [role, content]),
      [
        ['user', 'First?'],
        ['user', 'Second?'],
      ],
    )
  })

  it('leaves out a step that is not finished', () => {
    const state = foldRun(
      new JournalBuilder().accepted('now').running().asks(1, 'message-1').says('message-1', 'Torn ').restarted().events,
    )

    assert.deepEqual(
      buildPrompt({ definition: agentWith(100), history: [], input: 'now', context: undefined, state }).map(
        ({ role }) => role,
      ),
      ['system', 'user'],
    )
  })

  it('shows the caller’s context in an order that does not depend on the caller, and renders the system prompt as plain text', () => {
    const prompt = (context: Record<string, unknown>) =>
      buildPrompt({ definition: agentWith(100), history: [], input: 'x', context, state: stateWith([]) })

    assert.deepEqual(prompt({ a: 1, b: { c: 2, d: 3 } }), prompt({ b: { d: 3, c: 2 }, a: 1 }))
    assert.equal(prompt({})[0]?.content, 'You are helpful & kind.')
    assert.deepEqual(
      prompt({}).map(({ role }) => role),
      ['system', 'user'],
    )
  })

  it('puts the caller’s instructions after the agent’s own and before the context', () => {
    const prompt = buildPrompt({
      definition: agentWith(1000),
      instructions: 'Rhyme.',
      history: [],
      input: 'hi',
      context: { a: 1 },
      state: stateWith([]),
    })

    assert.deepEqual(
      prompt.map(({ role, content }) => [role, content.split('\n').at(-1)]),
      [
        ['system', 'You are helpful & kind.'],
        ['system', 'Rhyme.'],
        ['system', '{"a":1}'],
        ['user', 'hi'],
      ],
    )
  })

  it('goes on from the results that the history ends with, which always stand, and adds no question', () => {
    const [question, calling, result] = turn('run-1', 'q'.repeat(400), [{ output: 'r'.repeat(400) }], '')
    const history = [question, calling, result] as MessageRow[]
    const roles = (maxTokens: number) =>
      buildPrompt({ definition: agentWith(maxTokens), history, input: null, context: undefined, state: stateWith([]) })
        .slice(1)
        .map(({ role }) => role)

    assert.deepEqual(roles(10_000), ['user', 'assistant', 'tool'])
    assert.deepEqual(roles(10), ['assistant', 'tool'])
  })

  it('gives a result to the nearest call of its id before it, where one source used an id twice', () => {
    const calling = (of: string) =>
      row({ runId: null, role: 'assistant', metadata: { toolCalls: [{ callId: 'k', name: 'look', input: { of } }] } })
    const answered = (content: string) =>
      row({ runId: null, role: 'tool', toolCallId: 'k', content, metadata: { outcome: 'succeeded' } })
    const history = [
      row({ content: 'a' }),
      calling('a'),
      answered('of a'),
      row({ content: 'b' }),
      calling('never answered'),
      calling('b'),
      answered('of b'),
    ]

    const prompt = buildPrompt({
      definition: agentWith(10_000),
      history,
      input: 'now',
      context: undefined,
      state: stateWith([]),
    })

    assert.deepEqual(
      prompt
        .slice(1)
        .map((message) => (message.role === 'assistant' ? message.toolCalls?.[0]?.input : message.content)),
      ['a', { of: 'a' }, 'of a', 'b', { of: 'b' }, 'of b', 'now'],
    )
  })
})

describe('the steps of this run', () => {
  const promptOf = (state: ReturnType<typeof foldRun>, maxTokens = 10_000) =>
    buildPrompt({ definition: agentWith(maxTokens), history: [], input: 'now', context: undefined, state }).slice(2)

  it('are shown with their calls and results, and a result that is no success is marked as an error', () => {
    const journal = new JournalBuilder()
      .accepted('now')
      .running()
      .asks(1, 'm1')
      .calls('a', 'look', { of: 1 })
      .calls('b', 'look', { of: 2 }, { index: 1 })
      .calls('c', 'look', { of: 3 }, { index: 2 })
      .stepDone(1, 'm1', 3)
      .starts('a', { of: 1 })
      .returns('a', 'found')
      .starts('b', { of: 2 })
      .done('b', 'failed', 'No.', {})

    assert.deepEqual(promptOf(foldRun(journal.events)), [
      {
        role: 'assistant',
        content: '',
        toolCalls: [
          { callId: 'a', name: 'look', input: { of: 1 } },
          { callId: 'b', name: 'look', input: { of: 2 } },
          { callId: 'c', name: 'look', input: { of: 3 } },
        ],
      },
      { role: 'tool', callId: 'a', name: 'look', content: 'found', isError: false },
      { role: 'tool', callId: 'b', name: 'look', content: 'The tool failed: No.', isError: true },
      { role: 'tool', callId: 'c', name: 'look', content: 'The call has not finished.', isError: false },
    ])
  })

  it('show a call with the arguments as a person changed them', () => {
    const journal = new JournalBuilder()
      .accepted('now')
      .running()
      .asks(1, 'm1')
      .calls('a', 'send', { to: 'bob' }, { effect: 'unsafe' })
      .stepDone(1, 'm1', 1)
      .confirmation('i1', 'a', { to: 'bob' })
      .parks()
      .resolved('i1', 'confirmed', { input: { to: 'eve' } })
      .unparks()
      .starts('a', { to: 'eve' })
      .returns('a', 'sent')

    const [said] = promptOf(foldRun(journal.events))
    assert.deepEqual(said?.role === 'assistant' ? said.toolCalls?.[0]?.input : undefined, { to: 'eve' })
  })

  it('that asked in words are followed by the reply, or by a note that there was no reply', () => {
    const asking = () =>
      new JournalBuilder()
        .accepted('now')
        .running()
        .answers(1, 'm1', 'Which one?')
        .add('input.required', { interactionId: 'q', number: 1, kind: 'question', prompt: 'Which one?' })
        .parks()
    const after = (journal: JournalBuilder) => promptOf(foldRun(journal.events)).map((one) => [one.role, one.content])

    assert.deepEqual(after(asking()), [['assistant', 'Which one?']])
    assert.deepEqual(after(asking().resolved('q', 'replied', { response: 'the first' })).at(-1), ['user', 'the first'])
    assert.deepEqual(after(asking().resolved('q', 'replied', { response: { n: 1 } })).at(-1), ['user', '{"n":1}'])
    assert.match(after(asking().resolved('q', 'auto_decided')).at(-1)?.[1] as string, /^Nobody replied/)
  })

  it('that were rejected are followed by the errors, also if nothing else fits, and a long one is shortened', () => {
    const journal = new JournalBuilder()
      .accepted('now')
      .running()
      .answers(1, 'm1', 'x'.repeat(20_000))
      .add('output.rejected', { step: 1, messageId: 'm1', errors: ['it is not JSON'] })
    const told = buildPrompt({
      definition: agentWith(10),
      history: [],
      input: 'y'.repeat(4000),
      context: undefined,
      state: foldRun(journal.events),
    })

    assert.deepEqual(
      told.map(({ role }) => role),
      ['system', 'user', 'assistant', 'user'],
    )
    assert.ok((told[2]?.content.length ?? 0) < 17_000)
    assert.match(told[3]?.content ?? '', /it is not JSON/)
  })

  it('without text and calls are left out', () => {
    assert.deepEqual(promptOf(stateWith([{ text: '', outputs: [] }])), [])
    assert.deepEqual(promptOf(stateWith([{ text: 'Hm.', outputs: [] }])), [{ role: 'assistant', content: 'Hm.' }])
  })
})

describe('the estimate of tokens', () => {
  it('is one for four letters, rounded up, and one for each character of a script without spaces', () => {
    assert.deepEqual(
      ['', 'a', 'abcd', 'abcde', '对话', '对话a', '\u2e7f', '\u2e80'].map(estimateTokens),
      [0, 1, 1, 2, 2, 3, 1, 1],
    )
    assert.equal(estimateTokens('\u2e7f'.repeat(8)), 2)
    assert.equal(estimateTokens('\u2e80'.repeat(8)), 8)
  })

  it('leaves room for exactly what fits', () => {
    const history = [row({ content: 'a'.repeat(40) }), row({ role: 'assistant', content: 'b'.repeat(40) })]
    const needed = 3 * (4 + 10)
    const count = (maxTokens: number) =>
      buildPrompt({
        definition: agentWith(maxTokens),
        history,
        input: 'c'.repeat(40),
        context: undefined,
        rules: ['Be kind.'],
        state: stateWith([]),
      }).map(({ role }) => role)

    assert.deepEqual(count(needed), ['system', 'system', 'user', 'assistant', 'user'])
    assert.deepEqual(count(needed - 1), ['system', 'system', 'user'])
  })
})
