// What is particular about a one-shot run: its rule for the answer, the snapshot that its
// end writes, and the result that is made of the answer.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { kindOf } from '../app/run-kinds.ts'
import type { OneShotSpec, RunEvent, RunSpec } from '../journal/event.ts'
import { foldRun } from '../journal/run-state.ts'
import { oneShotKind } from './one-shot-kind.ts'
import { dataOf, resultOf } from './one-shot-result.ts'

const oneShot: OneShotSpec = {
  operation: 'op',
  promptVersion: '1+a',
  language: 'en',
  outputSchema: { type: 'object', required: ['title'] },
  scope: { type: 'contact', id: 'c1', mustExist: true },
  sourceHash: 'hash',
  snapshot: { id: 's1', ttlMs: 1000 },
  citable: [{ source: 'f1', type: 'fact' }],
  citationsRequired: false,
  computedAnswer: { title: 'computed', computed: true },
}
const spec: RunSpec = { agentId: 'insight', engine: 'local', model: 'demo/demo', systemPrompt: 'Be brief.', oneShot }

function ended(how: Extract<RunEvent, { type: 'run.ended' }>['data'], changes: Partial<OneShotSpec> = {}) {
  const accepted = { owner: 'ada', family: 'one-shot', conversationId: null, userMessageId: null, input: 'x' }
  const events: RunEvent[] = [
    {
      seq: 1,
      at: 100,
      attempt: 1,
      type: 'run.accepted',
      data: { ...accepted, spec: { ...spec, oneShot: { ...oneShot, ...changes } } },
    },
    { seq: 2, at: 200, attempt: 1, type: 'run.ended', data: how },
  ]
  return foldRun(events)
}

describe('a one-shot run', () => {
  it('is a kind of its own, with the prompt and the computed answer of its spec', () => {
    assert.equal(kindOf(spec), oneShotKind)
    assert.equal(oneShotKind.systemPrompt(spec), 'Be brief.')
    assert.deepEqual(oneShotKind.computedAnswer(spec), oneShot.computedAnswer)
  })

  it('has a rule for its answer: the schema, and citations of records that exist', () => {
    const rule = oneShotKind.outputRule(spec)
    assert.deepEqual(rule?.schema, oneShot.outputSchema)
    assert.equal(rule?.mayAsk, false)
    assert.deepEqual(rule?.check?.({ title: 'x', citations: ['f1'] }), [])
    assert.equal(rule?.check?.({ title: 'x', citations: ['f2'] }).length, 1)
    const error = rule?.invalid(['title is missing'], true)
    assert.deepEqual([error?.code, error?.details], ['output_validation_failed', { errors: ['title is missing'] }])
    const free = { ...spec, oneShot: { ...oneShot, outputSchema: undefined } }
    assert.equal(oneShotKind.outputRule(free), undefined, 'any text is an answer')
  })

  it('writes its snapshot when it succeeds, with everything that the key needs', () => {
    const state = ended({ status: 'succeeded', output: '{"title":"x"}' })
    assert.deepEqual(oneShotKind.changesAtEnd('r1', state).snapshot, {
      id: 's1',
      owner: 'ada',
      agentId: 'insight',
      operation: 'op',
      scopeType: 'contact',
      scopeId: 'c1',
      sourceHash: 'hash',
      promptVersion: '1+a',
      model: 'demo/demo',
      runId: 'r1',
      output: { title: 'x' },
      createdAt: 200,
      expiresAt: 1200,
      scopeMustExist: true,
    })
    const lasting = ended({ status: 'succeeded', output: '{}' }, { snapshot: { id: 's', ttlMs: null } })
    assert.equal(oneShotKind.changesAtEnd('r', lasting).snapshot?.expiresAt, null)
  })

  it('writes no snapshot when it fails, is cancelled, or is not to be stored', () => {
    const failed = ended({ status: 'failed', error: { code: 'model_error', message: 'No.' } })
    const canceled = ended({ status: 'canceled', by: 'ada' })
    const unstored = ended({ status: 'succeeded', output: '{"title":"x"}' }, { snapshot: null })
    for (const state of [failed, canceled, unstored]) assert.deepEqual(oneShotKind.changesAtEnd('r', state), {})
  })
})

describe('the result of a one-shot run', () => {
  it('is the answer with the fields that code computed, which win over what the model wrote', () => {
    const result = resultOf({ ...oneShot, fields: { score: 7 } }, '```json\n{"title":"x","score":99}\n```')
    assert.deepEqual(result, { title: 'x', score: 7 })
  })

  it('is marked as computed only if it is the computed answer, whatever the model claims', () => {
    assert.deepEqual(resultOf(oneShot, '{"computed":true,"title":"computed"}'), { title: 'computed', computed: true })
    assert.deepEqual(resultOf(oneShot, '{"computed":true,"title":"invented"}'), { title: 'invented' })
    assert.deepEqual(resultOf({ ...oneShot, computedAnswer: undefined }, '{"computed":true}'), {})
  })

  it('is an object in any case: text and other values become its content', () => {
    assert.deepEqual(resultOf({ ...oneShot, outputSchema: undefined }, 'Hello.'), { content: 'Hello.' })
    assert.deepEqual(resultOf({ ...oneShot, outputSchema: { type: 'array' } }, '[1]'), { content: [1] })
  })

  it('gets the fields that only the server knows, and says whether it was cached', () => {
    const facts = { id: 's1', scopeName: 'contact_1', sourceHash: 'h', generatedAt: 0, cached: true }
    const of = (agentId: string, operation: string | null) => dataOf({ words: 1 }, { ...facts, agentId, operation })
    assert.deepEqual(of('contact_insight', null), { words: 1, sourceHash: 'h', generatedAt: 0 })
    assert.deepEqual(of('network_action', null)['metadata'], { cached: true, sourceHash: 'h', generatedAt: 0 })
    assert.deepEqual(of('archive_brief', 'archive_extract'), {
      operation: 'archive_extract',
      id: 'contact_1',
      status: 'completed',
      words: 1,
    })
    assert.deepEqual(of('archive_brief', 'brief_generate'), {
      operation: 'brief_generate',
      id: 's1',
      contact_id: 'contact_1',
      words: 1,
      generated_at: '1970-01-01T00:00:00.000Z',
      source_hash: 'h',
    })
    assert.deepEqual(of('anything', null), { words: 1 })
  })
})
