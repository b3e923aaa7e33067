import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UploadBudget } from './uploads.ts'

const busy = { code: 'uploads_busy' }

test('one caller holds half of the budget at most, and the others have the rest', () => {
  const budget = new UploadBudget(100)
  const releases = [budget.reserve('ann', 30), budget.reserve('ann', 20)]

  assert.throws(() => budget.reserve('ann', 1), busy)
  releases.push(budget.reserve('bob', 30), budget.reserve('eve', 20))
  assert.throws(() => budget.reserve('zoe', 1), busy)

  for (const release of releases) {
    release()
    release()
  }
  // One upload alone is always admitted.
  budget.reserve('ann', 1000)()
  budget.reserve('ann', 50)
  budget.reserve('bob', 50)
})
