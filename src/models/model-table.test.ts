import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { systemClock } from '../kit/clock.ts'
import { modelTableOf, readModelTable } from './model-table.ts'
import { createModels } from './providers.ts'

const folder = mkdtempSync(join(tmpdir(), 'polylog-models-'))
after(() => rmSync(folder, { recursive: true }))

function fileWith(text: string): string {
  const file = join(folder, 'models.json')
  writeFileSync(file, text)
  return file
}

const table = modelTableOf({
  asOf: '2026-11-16',
  models: {
    'a/x': { price: { input: 3, cached: 0.3, cacheWrite: 3.75, output: 15 } },
    'a/plain': { price: { input: 0.15, output: 0.6 } },
    'a/tiers': { price: { input: 1, output: 2, above: { inputTokens: 1000, input: 10, output: 20 } } },
    'a/unpriced': { contextTokens: 1000 },
    'a/x-2025-01-01': { price: { input: 100, output: 100 } },
  },
})

test('the cost counts cached, cache-written and other tokens at their own prices', () => {
  const usage = { inputTokens: 1_000_000, cachedTokens: 600_000, cacheWriteTokens: 100_000, outputTokens: 10_000 }

  assert.equal(table.costOf('a/x', usage), 300_000 * 3 + 600_000 * 0.3 + 100_000 * 3.75 + 10_000 * 15)
})

test('a model without prices for its cache charges these tokens like other input', () => {
  assert.equal(table.costOf('a/plain', { inputTokens: 1000, cachedTokens: 500, outputTokens: 0 }), 150)
})

test('a cost is rounded up to a whole millionth of a dollar, and sums of decimals have no rounding errors', () => {
  assert.equal(table.costOf('a/plain', { inputTokens: 1, outputTokens: 0 }), 1)
  assert.equal(table.costOf('a/plain', { inputTokens: 20, outputTokens: 5 }), 6)
  assert.equal(table.costOf('a/plain', { inputTokens: 0, outputTokens: 0 }), 0)
})

test('a request with a large input has its own prices', () => {
  assert.equal(table.costOf('a/tiers', { inputTokens: 1000, outputTokens: 1 }), 1002)
  assert.equal(table.costOf('a/tiers', { inputTokens: 1001, outputTokens: 1 }), 10_030)
})

test('a cost that is not known is undefined: an unknown model, one without a price, tokens that were not reported', () => {
  const usage = { inputTokens: 1, outputTokens: 1 }
  assert.equal(table.costOf('a/unknown', usage), undefined)
  assert.equal(table.costOf('a/unpriced', usage), undefined)
  assert.equal(table.costOf('a/x', undefined), undefined)
  assert.equal(table.costOf('a/x', { inputTokens: 1 }), undefined)
})

test('a dated version has the facts of its base name, unless it has its own', () => {
  for (const name of ['a/plain-2026-01-31', 'a/plain-20260131', 'a/plain@20260131', 'a/plain-latest']) {
    assert.equal(table.find(name), table.find('a/plain'), name)
  }
  assert.equal(table.find('a/x-2025-01-01')?.price?.input, 100)
  assert.equal(table.find('a/plain-mini'), undefined)
})

test('the built-in table has the window of each model that answers if nothing is chosen', async () => {
  const builtIn = await readModelTable(null)
  for (const key of ['openaiApiKey', 'anthropicApiKey', 'googleApiKey']) {
    const { defaultModel } = createModels({ [key]: 'k', ids: () => 'id', clock: systemClock })
    assert.ok((builtIn.find(defaultModel)?.contextTokens ?? 0) > 100_000, defaultModel)
  }
})

test('the built-in table is readable, and the demo model costs nothing', async () => {
  const builtIn = await readModelTable(null)

  assert.ok(builtIn.names().length > 10)
  assert.equal(builtIn.costOf('demo/demo', { inputTokens: 5, outputTokens: 5 }), 0)
  assert.match(builtIn.asOf, /^\d{4}-\d{2}-\d{2}$/)
})

test('a file of the operator adds models and replaces entries; unknown facts are null', async () => {
  const file = fileWith(
    JSON.stringify({ asOf: '2026-12-01', models: { 'openai/gpt-4o': { price: null }, 'my/own': { vision: true } } }),
  )

  const own = await readModelTable(file)

  assert.equal(own.asOf, '2026-12-01')
  assert.equal(own.costOf('openai/gpt-4o', { inputTokens: 1, outputTokens: 1 }), undefined)
  assert.deepEqual(own.find('my/own'), {
    contextTokens: null,
    maxOutputTokens: null,
    vision: true,
    pdf: null,
    reasoning: null,
    structuredOutput: null,
    price: null,
  })
  assert.ok(own.find('openai/gpt-4o-mini') !== undefined)
})

test('a file that does not fit stops the start, and the message names the file and the place', async () => {
  for (const [text, sentence] of [
    ['{', /POLYLOG_MODEL_TABLE: .*models\.json is not valid JSON/],
    ['{"asOf":"yesterday","models":{}}', /does not fit: asOf/],
    ['{"asOf":"2026-01-01","models":{"gpt-4o":{}}}', /a model is called provider\/model/],
    ['{"asOf":"2026-01-01","models":{"a/x":{"price":{"input":-1,"output":1}}}}', /models\.a\/x\.price\.input/],
    ['{"asOf":"2026-01-01","models":{"a/x":{"window":5}}}', /Unrecognized key/],
  ] as const) {
    await assert.rejects(readModelTable(fileWith(text)), { code: 'config_invalid', message: sentence })
  }
  await assert.rejects(readModelTable(join(folder, 'absent.json')), { message: /cannot be read/ })
})
