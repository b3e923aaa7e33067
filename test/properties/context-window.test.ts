// For any sizes of questions, answers and tool outputs, and for both strategies: a prompt never
// exceeds the window of the model, and begins like the one before unless the journal says why not.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { StepRequest } from '../../src/engines/engine.ts'
import type { ModelMessage } from '../../src/models/model.ts'
import { messageTokens } from '../../src/runs/prompt-blocks.ts'
import { calls, openRig, says, toolOf } from '../support/run-rig.ts'

/** A text of about so many tokens. */
const text = (tokens: number) => 'abc '.repeat(tokens)
const isSummary = ({ messages }: StepRequest) => messages[0]?.content.startsWith('You write the memory') === true

const size = fc.oneof(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 900 }))
const anyTurn = fc.record({
  question: size,
  /** The sizes of the outputs of each step that calls tools. */
  steps: fc.array(fc.array(size, { minLength: 1, maxLength: 3 }), { maxLength: 3 }),
  answer: size,
})
const anyTalk = fc.record({
  strategy: fc.constantFrom('sliding_window' as const, 'summary' as const),
  contextTokens: fc.integer({ min: 1200, max: 4000 }),
  maxTokens: fc.option(fc.integer({ min: 200, max: 4000 }), { nil: undefined }),
  turns: fc.array(anyTurn, { minLength: 4, maxLength: 14 }),
})

test('any conversation fits the window, and its prompts change their beginning only at journaled places', async () => {
  await fc.assert(
    fc.asyncProperty(anyTalk, async ({ strategy, contextTokens, maxTokens, turns }) => {
      /** The requests for answers, each with the number of context events before it. */
      const requests: StepRequest[] = []
      const firstOfTurn: number[] = []
      let due: { step: number; turn: (typeof turns)[number] } | undefined
      const look = toolOf({
        name: 'look',
        outputCharsMax: 100_000,
        run: (input) => Promise.resolve({ ok: true, output: text((input as { size: number }).size), summary: 'seen' }),
      })
      const rig = await openRig({
        tools: [look],
        limits: { contextTokens },
        memory: { strategy, ...(maxTokens === undefined ? {} : { maxTokens }) },
        answer: (request) => {
          if (isSummary(request)) {
            assert.ok(tokensOf(request.messages) <= contextTokens)
            return says('What was said.')
          }
          requests.push(request)
          const outputs = due?.turn.steps[due.step]
          if (due === undefined || outputs === undefined) return says(text(due?.turn.answer ?? 1) || 'ok')
          due.step += 1
          const step = due.step
          return calls(...outputs.map((one, at) => ({ callId: `c${step}-${at}`, name: 'look', input: { size: one } })))
        },
      })
      try {
        const cuts = new Set<number>()
        for (const turn of turns) {
          due = { step: 0, turn }
          firstOfTurn.push(requests.length)
          const { run } = await rig.start({ input: `?${text(turn.question)}`, conversationId: 'talk' })
          await rig.until(run.id, ({ endedAt }) => endedAt !== null)
          let asked = firstOfTurn.at(-1) ?? 0
          for (const event of await rig.events(run.id)) {
            if (event.type === 'context.cut' || event.type === 'context.summarised') cuts.add(asked)
            if (event.type === 'step.started') asked += 1
          }
          assert.equal(asked, requests.length)
        }
        for (const [index, request] of requests.entries()) {
          const given = talkOf(request)
          // A quarter of the window is for the answer, a tenth is the margin, and the tool takes a little.
          const room = contextTokens * 0.65
          assert.ok(tokensOf(request.messages) <= Math.max(room, unavoidable(given)), `request ${index}`)
          assert.equal(given[0]?.role, 'user')
          const before = index === 0 ? [] : talkOf(requests[index - 1] as StepRequest)
          if (!cuts.has(index)) assert.deepEqual(given.slice(0, before.length), before, `request ${index}`)
        }
      } finally {
        await rig.close()
      }
    }),
    { numRuns: 15 },
  )
})

const talkOf = ({ messages }: StepRequest) => messages.filter(({ role }) => role !== 'system')
const tokensOf = (messages: readonly ModelMessage[]) =>
  messages.reduce((sum, message) => sum + messageTokens(message), 0)

/** The summary, the question and the newest step always stay, but of each result only a little. */
function unavoidable(given: readonly ModelMessage[]): number {
  const asked = given.findLast(({ role }) => role === 'user')
  const newest = given.slice(given.findLastIndex(({ role }) => role === 'assistant' || role === 'user'))
  const step = newest[0]?.role === 'user' ? [] : newest
  const results = step.filter(({ role }) => role === 'tool').length
  const summary = given.filter(({ content }) => content.startsWith('(Summary of'))
  const instructions = 60
  return (
    instructions +
    tokensOf([...summary, ...(asked === undefined ? [] : [asked])]) +
    tokensOf(step.slice(0, 1)) +
    results * 64
  )
}
