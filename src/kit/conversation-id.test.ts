import assert from 'node:assert/strict'
import { test } from 'node:test'
import { namedConversationId, shownConversationId, shownConversationIdOrNull } from './conversation-id.ts'

test('a name comes back exactly, whatever characters it holds', () => {
  for (const name of ['conv_123', '~', '~a~b', 'a~b~c', '对话', 'line\nbreak', ' ', '01J0000000000000000000000'])
    assert.equal(shownConversationId(namedConversationId('01K5', name)), name)
})

test('the same name with another unique part is another conversation', () => {
  assert.notEqual(namedConversationId('1', 'x'), namedConversationId('2', 'x'))
})

test('ids that no client named are shown as they are', () => {
  for (const id of ['01J', 'agt-01J', 'conv_123', 'a~b', '~a', '~~a', '~a~']) assert.equal(shownConversationId(id), id)
  assert.equal(shownConversationIdOrNull(null), null)
})
