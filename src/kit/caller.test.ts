import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actsAs, owns } from './caller.ts'

test('a thing is its owner’s; a caller without a name acts as the owner of any one thing', () => {
  const caller = (userId: string, isNamed: boolean) => ({ userId, loggedIn: false, named: isNamed })
  const thing = { owner: 'ann' }

  assert.deepEqual(
    [caller('ann', true), caller('bob', true), caller('anonymous', true), caller('anonymous', false)].map((one) => [
      owns(one, thing),
      actsAs(one, thing),
      actsAs(one, undefined),
    ]),
    [
      [true, 'ann', 'ann'],
      [false, 'bob', 'bob'],
      [false, 'anonymous', 'anonymous'],
      [true, 'ann', 'anonymous'],
    ],
  )
})
