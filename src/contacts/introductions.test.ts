// Introductions: what two contacts share, how much it counts, and the bounds.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { introductions } from './introductions.ts'

const contact = (id: string, company: string | null, ...tags: string[]) => ({ id, company, tags })

test('contacts that share a company or tags are paired, the most in common first', () => {
  const found = introductions(
    [
      contact('d', null, 'tea', 'go'),
      contact('a', 'Acme', 'tea'),
      contact('b', ' ＡＣＭＥ ', 'Tea'),
      contact('c', null, 'chess'),
    ],
    10,
  )

  assert.deepEqual(found, [
    { contacts: ['a', 'b'], company: 'Acme', tags: ['tea'], confidence: 0.75 },
    { contacts: ['a', 'd'], company: null, tags: ['tea'], confidence: 0.45 },
    { contacts: ['b', 'd'], company: null, tags: ['tea'], confidence: 0.45 },
  ])
})

test('a contact is not paired with itself, and the confidence is at most 0.9', () => {
  const tags = ['t1', 't2', 't3', 't4', 't5']

  assert.deepEqual(introductions([contact('a', null, 'Tea', 'tea')], 10), [])
  assert.equal(introductions([contact('a', 'x', ...tags), contact('b', 'x', ...tags)], 10)[0]?.confidence, 0.9)
})

test('a tag of more than twelve contacts makes no pairs', () => {
  const many = (count: number) => Array.from({ length: count }, (_value, at) => contact(`c${100 + at}`, null, 'friend'))

  assert.equal(introductions(many(12), 1000).length, 66)
  assert.equal(introductions(many(13), 1000).length, 0)
})

test('the number of pairs is bounded however many contacts share something, and only the best are returned', () => {
  // 3,000 groups of 12 would be 198,000 pairs.
  const contacts = Array.from({ length: 36_000 }, (_value, at) => contact(`c${at}`, `company ${Math.floor(at / 12)}`))

  assert.equal(introductions(contacts, 100_000).length, 10_000)
  assert.equal(introductions(contacts, 7).length, 7)
})
