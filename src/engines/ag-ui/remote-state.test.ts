import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RemoteState } from './remote-state.ts'

test('changes are the top-level fields that changed, null for a removed one', () => {
  const state = new RemoteState({ kept: 1, gone: 2 })
  assert.equal(state.takeChanges(false), undefined)
  state.patch([
    { op: 'remove', path: '/gone' },
    { op: 'add', path: '/list', value: [1] },
  ])
  assert.deepEqual(state.takeChanges(false), { gone: null, list: [1] })
  state.patch([{ op: 'move', from: '/list', path: '/kept' }])
  assert.deepEqual(state.takeChanges(false), { kept: [1], list: null })
  state.replace({ fresh: true })
  assert.deepEqual(state.takeChanges(false), { kept: null, fresh: true })
  assert.equal(state.takeChanges(true), undefined)
})

test('a shown change does not change any more', () => {
  const state = new RemoteState({ list: [] })
  state.patch([{ op: 'add', path: '/list/-', value: 1 }])
  const shown = state.takeChanges(false)
  state.patch([{ op: 'add', path: '/list/-', value: 2 }])
  assert.deepEqual(shown, { list: [1] })
})

test('after a patch that does not fit, the state is unknown until the next snapshot', () => {
  const state = new RemoteState({ a: 1 })
  state.patch([{ op: 'replace', path: '/b', value: 1 }])
  state.patch([{ op: 'replace', path: '/a', value: 2 }])
  assert.equal(state.takeChanges(true), undefined)
  assert.equal(state.value, undefined)
  state.replace({ a: 3 })
  assert.deepEqual(state.takeChanges(true), { a: 3 })
  assert.deepEqual(state.value, { a: 3 })
})

test('the ids of the server are not overwritten, and too large a state is not kept', () => {
  const state = new RemoteState()
  state.replace({ conversationId: 'theirs', a: 1 })
  assert.deepEqual(state.takeChanges(false), { a: 1 })
  state.replace({ big: 'x'.repeat(300 * 1024) })
  assert.equal(state.value, undefined)
})

test('when much was shown, further changes are shown only at the end', () => {
  const state = new RemoteState()
  for (let count = 0; count < 30; count += 1) {
    state.replace({ big: `${count}`.repeat(100 * 1024) })
    state.takeChanges(false)
  }
  state.replace({ big: 'last' })
  assert.equal(state.takeChanges(false), undefined)
  assert.deepEqual(state.takeChanges(true), { big: 'last' })
})

test('the value that it starts with is not changed by patches', () => {
  const given = { draft: true, kept: { deep: [1] } }
  const state = new RemoteState(given)

  state.patch([
    { op: 'remove', path: '/draft' },
    { op: 'add', path: '/kept/deep/-', value: 2 },
  ])

  assert.deepEqual(state.value, { kept: { deep: [1, 2] } })
  assert.deepEqual(given, { draft: true, kept: { deep: [1] } })
})
