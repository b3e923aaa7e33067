// A run of 30,000 events on its page: it is loaded, stepped through, searched and scrolled without blocking the page. Counted
// are the long tasks of the browser, not seconds: a list that draws every row, or a fold that begins at the first event for
// every step, makes one for each of these.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { sharedConsoleBrowser } from '../support/console-page.ts'
import { runIdOf, sharedServerProcess, someone } from '../support/test-server.ts'

const server = sharedServerProcess()
const consoleBrowser = sharedConsoleBrowser()
const deltas = 30_000
const steps = 40

/** How many tasks of the page took longer than 50 ms since the last call. */
async function longTasks(page: Page): Promise<number> {
  return Number(await page.evaluate('const n = window.longTasks ?? 0; window.longTasks = 0; n'))
}

test('a run of 30,000 events is loaded, stepped through, searched and scrolled smoothly', async (context) => {
  const user = someone()
  const text = Array.from({ length: deltas }, (_, index) =>
    index % 60 === 59 ? `word-${index}.\n\n` : `word-${index} `,
  )
  await server.provider.script([[{ text }, { finish: 'stop' }]], user)
  const stream = await server.chat(user, `Long ${user}`)
  await stream.ended()
  const runId = runIdOf(stream)
  const opened = await consoleBrowser.open(context, `${server.polylog.baseUrl}/runs`, { user })
  if (opened === null) return
  const { page } = opened
  await page.context().addInitScript(`
    window.longTasks = 0
    new PerformanceObserver((list) => (window.longTasks += list.getEntries().length)).observe({ type: 'longtask' })
  `)
  await page.goto(`${server.polylog.baseUrl}/runs/${runId}`)
  const last = page.locator('.scrubber-moment strong')
  await page
    .getByText('Complete')
    .or(last.getByText(/^30,0\d\d$/))
    .first()
    .waitFor()
  await last.getByText(/^30,0\d\d$/).waitFor()
  await page.getByText(`word-${deltas - 1}.`).waitFor()
  const counts: Record<string, number> = { load: await longTasks(page) }

  await page.keyboard.press('v')
  for (let step = 0; step < steps; step++) await page.keyboard.press('ArrowLeft')
  await last.getByText(/^29,9\d\d$/).waitFor()
  counts['steps back'] = await longTasks(page)

  await page.getByRole('slider', { name: 'Moment of the run' }).focus()
  await page.keyboard.press('Home')
  await last.getByText('1', { exact: true }).waitFor()
  for (let step = 0; step < steps; step++) await page.keyboard.press('ArrowRight')
  await last.getByText('41', { exact: true }).waitFor()
  counts['steps on'] = await longTasks(page)

  await page.getByRole('searchbox', { name: 'Search in events' }).fill(`word-${deltas - 3}`)
  await page.getByText(/^[12] of 30,0\d\d$/).waitFor()
  counts['search'] = await longTasks(page)

  await page.getByRole('searchbox', { name: 'Search in events' }).fill('')
  const list = page.getByRole('group', { name: 'Events', exact: true })
  for (let turn = 0; turn < steps; turn++) await list.evaluate('(element) => (element.scrollTop += 5000)')
  counts['scroll'] = await longTasks(page)
  assert.ok((await page.locator('.event-row').count()) < 120, 'only visible rows are drawn')

  await page.goto(`${server.polylog.baseUrl}/wires/${runId}`)
  await page.getByText('Complete', { exact: true }).waitFor()
  counts['wires'] = await longTasks(page)
  assert.ok((await page.locator('.wire-row').count()) < 80, 'only visible rows are drawn')

  context.diagnostic(JSON.stringify(counts))
  for (const [what, count] of Object.entries(counts)) assert.ok(count <= steps / 2, `${what}: ${count} long tasks`)
})
