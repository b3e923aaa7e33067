import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CallState, newRunState } from '../journal/run-state.ts'
import { cacheKeyOf, type CachedRequest, isReusable, mayReuse } from './result-reuse.ts'

const request: CachedRequest = {
  skill: { id: 's', name: 'S', version: '1', text: 'Run.', outputSchema: { type: 'object' } },
  engine: 'local',
  model: 'demo/demo',
  job: { input: { a: 1, b: { c: 2, d: 3 } }, parameter: {} },
  files: [
    { path: 'a', sha256: '1' },
    { path: 'b', sha256: '2' },
  ],
}

test('equal requests have equal keys, whatever the order of names and files', () => {
  const same: CachedRequest = {
    ...request,
    job: { parameter: {}, input: { b: { d: 3, c: 2 }, a: 1 } },
    files: request.files.toReversed(),
  }

  assert.equal(cacheKeyOf(same), cacheKeyOf(request))
})

test('a request that differs in any part has another key', () => {
  const { skill, job } = request
  const others: CachedRequest[] = [
    { ...request, skill: { ...skill, id: 't' } },
    { ...request, skill: { ...skill, version: '2' } },
    { ...request, skill: { ...skill, text: 'Walk.' } },
    { ...request, skill: { ...skill, outputSchema: { type: 'array' } } },
    { ...request, engine: 'other' },
    { ...request, model: 'demo/other' },
    { ...request, job: { ...job, input: {} } },
    { ...request, job: { ...job, parameter: { a: 1 } } },
    { ...request, job: { input: {}, parameter: job.input } },
    { ...request, files: request.files.slice(1) },
    { ...request, files: [{ path: 'a', sha256: '2' }, ...request.files.slice(1)] },
    { ...request, files: [{ path: 'c', sha256: '1' }, ...request.files.slice(1)] },
  ]
  const keys = [request, ...others].map(cacheKeyOf)

  assert.equal(new Set(keys).size, keys.length)
})

test('only a job of an installed skill that asks no person and does not opt out is looked up', () => {
  const job = { source: 'installed', mode: 'auto', options: {} } as const
  assert.equal(mayReuse(job), true)
  assert.equal(mayReuse({ ...job, options: { no_cache: false } }), true)
  assert.equal(mayReuse({ ...job, options: { no_cache: true } }), false)
  assert.equal(mayReuse({ ...job, mode: 'interactive' }), false)
  assert.equal(mayReuse({ ...job, source: 'temp_upload' }), false)
})

test('a run that changed something outside itself, or asked a person, is not reusable', () => {
  const after = (...calls: [name: string, effect: CallState['effect']][]) => {
    const state = newRunState()
    for (const [index, [name, effect]] of calls.entries())
      state.calls = new Map(state.calls).set(String(index), { name, effect } as unknown as CallState)
    return state
  }
  assert.equal(isReusable(after()), true)
  assert.equal(isReusable(after(['search_notes', 'read'], ['save_artifact', 'idempotent'])), true)
  assert.equal(isReusable(after(['search_notes', 'read'], ['send', 'unsafe'])), false)
  assert.equal(isReusable(after(['remember_note', 'idempotent'])), false)
  const asked = after()
  asked.interactions = new Map([['i', {} as never]])
  assert.equal(isReusable(asked), false)
})
