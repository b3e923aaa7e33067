// How the answer of the archive agent is read, for any answer that a model may write.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ArchivePayload } from '../stores/archive-store.ts'
import { archiveLimits, checkRefs, payloadOf } from './archive-payload.ts'
import { contactLimits } from './contact-limits.ts'

const citations = [{ messageId: 'm' }]
const ann = { ref: 'c1', name: 'Ann', citations }
const nothing: ArchivePayload = {
  contacts: [],
  events: [],
  facts: [],
  todos: [],
  keyPoints: [],
  decisions: [],
  actionItems: [],
  participants: [],
}

test('an answer without lists, or of another form, is an empty payload', () => {
  for (const answer of [
    undefined,
    null,
    'text',
    7,
    [],
    {},
    { contacts: 'x', facts: { content: 'x' }, keyPoints: [7] },
  ]) {
    assert.deepEqual(payloadOf(answer, 'c'), nothing)
  }
})

test('an entry is about the contact of its ref, else about the contact of the conversation, and an unknown ref is no contact', () => {
  const facts = [
    { contactRef: 'c1', content: 'a', citations },
    { content: 'b', citations },
    { contactRef: '  ', content: 'c', citations },
    { contactRef: 'c9', content: 'd', citations },
  ]
  const who = (contactId: string | null) =>
    payloadOf({ contacts: [ann], facts }, contactId).facts.map((fact) => [fact.contactRef, fact.contactId])

  assert.deepEqual(who('k'), [
    ['c1', null],
    [null, 'k'],
    [null, 'k'],
    [null, null],
  ])
  assert.deepEqual(who(null)[1], [null, null])
})

test('texts are trimmed and cut to what a contact can hold, and entries without their text are left out', () => {
  const long = `${'x'.repeat(contactLimits.contentChars - 1)}😀`
  const { contacts, events, facts, todos, participants } = payloadOf(
    {
      contacts: [
        { ref: 'c1', name: ' Ann ', email: 'no address', phone: ' ', company: 'y'.repeat(999), citations },
        { ref: 'c2', name: ' ', citations },
        { name: 'without a ref', citations },
      ],
      events: [{ title: '', citations }],
      facts: [
        { content: long, citations },
        { content: ' ', citations },
      ],
      todos: [{ citations }],
      participants: [' Ann ', ''],
    },
    null,
  )

  assert.deepEqual(
    contacts.map(({ name, email, phone, company }) => [name, email, phone, company?.length]),
    [['Ann', null, null, contactLimits.nameChars]],
  )
  assert.deepEqual([events, todos, participants], [[], [], ['Ann']])
  assert.deepEqual(
    facts.map(({ content }) => content),
    ['x'.repeat(contactLimits.contentChars - 1)],
    'not cut inside a character',
  )
})

test('times are epoch milliseconds, UTC without a zone, and what is no time is none', () => {
  const times = ['2026-11-20', '2026-11-20T10:00', '2026-11-20T10:00:00+02:00', '2026-13-45', 'tomorrow', true, null]
  const { todos } = payloadOf({ todos: times.map((dueAt) => ({ content: 'x', dueAt, citations })) }, null)

  assert.deepEqual(
    todos.map(({ dueAt }) => dueAt),
    [Date.UTC(2026, 10, 20), Date.UTC(2026, 10, 20, 10), Date.UTC(2026, 10, 20, 8), null, null, null, null],
  )
})

test('a citation keeps its message, and its positions only if they are a range', () => {
  const given = [
    { messageId: 'm', start: 1, end: 3 },
    { messageId: 'm', start: 3, end: 3 },
    { messageId: 'm', start: -1, end: 3 },
    { messageId: 'm', start: 0.5, end: 3 },
    { messageId: 'm', end: 3 },
    { start: 1, end: 3 },
    'm',
  ]
  const [fact] = payloadOf({ facts: [{ content: 'x', citations: given }] }, null).facts
  const bare = { messageId: 'm' }

  assert.deepEqual(fact?.citations, [{ messageId: 'm', start: 1, end: 3 }, bare, bare, bare, bare])
})

test('no list is longer than its limit', () => {
  const many = Array.from({ length: 500 }, () => ({ messageId: 'm' }))
  const facts = Array.from({ length: 500 }, () => ({ content: 'x', citations: many }))
  const payload = payloadOf({ facts, keyPoints: facts.map(() => 'x') }, null)

  assert.equal(payload.facts.length, archiveLimits.entries)
  assert.equal(payload.facts[0]?.citations.length, archiveLimits.citations)
  assert.equal(payload.keyPoints.length, archiveLimits.entries)
})

test('a ref is unique, and an entry names one that exists', () => {
  const { contacts } = payloadOf({ contacts: [ann] }, null)
  const fact = { contactRef: 'c1', contactId: null, recordId: null, citations, content: 'x' }
  const lists = { ...nothing, contacts, facts: [fact] }
  const refusal = (field: string) => (error: Error & { code?: string; details?: { field: string } }) => {
    assert.deepEqual([error.code, error.details?.field], ['archive_entry_invalid', field])
    return true
  }

  checkRefs(lists)
  assert.throws(
    () => checkRefs({ ...lists, facts: [fact, { ...fact, contactRef: 'c2' }] }),
    refusal('payload.facts.1.contactRef'),
  )
  assert.throws(() => checkRefs({ ...lists, contacts: [...contacts, ...contacts] }), refusal('payload.contacts.1.ref'))
})
