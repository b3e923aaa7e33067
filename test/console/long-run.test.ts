// A run of 30,000 events on its page: it is loaded, stepped through, searched and scrolled without blocking the page. A step
// may not become a long task (50 ms): a list that draws every row, or a fold that begins at the first event for every step,
// makes each of them one. Measured is the processor time of the page's main thread, so that a busy machine changes nothing.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CDPSession } from 'playwright-core'
import { sharedConsoleBrowser } from '../support/console-page.ts'
import { runIdOf, sharedTestServer, someone } from '../support/test-server.ts'

const server = sharedTestServer()
const consoleBrowser = sharedConsoleBrowser()
const deltas = 30_000
const steps = 40

/** A task that takes longer is noticed by people. */
const longTaskMs = 50

/** The processor time of the page's main thread for each of `count` parts of `act`, in milliseconds. A new page counts from 0. */
async function msFor(
  session: CDPSession,
  count: number,
  act: () => Promise<unknown>,
  isNewPage = false,
): Promise<number> {
  const taken = async () => {
    const { metrics } = await session.send('Performance.getMetrics')
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN) * 1000
  }
  const before = isNewPage ? 0 : await taken()
  await act()
  return Math.round((((await taken()) - before) / count) * 10) / 10
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
  const last = page.locator('.scrubber-moment strong')
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  const spent: Record<string, number> = {}
  spent['100 events loaded'] = await msFor(
    session,
    deltas / 100,
    async () => {
      await page.goto(`${server.polylog.baseUrl}/runs/${runId}`)
      await last.getByText(/^30,0\d\d$/).waitFor()
      await page.getByText(`word-${deltas - 1}.`).waitFor()
    },
    true,
  )
  spent['step back'] = await msFor(session, steps, async () => {
    await page.keyboard.press('v')
    for (let step = 0; step < steps; step++) await page.keyboard.press('ArrowLeft')
    await last.getByText(/^29,9\d\d$/).waitFor()
  })
  spent['step on'] = await msFor(session, steps, async () => {
    await page.getByRole('slider', { name: 'Moment of the run' }).focus()
    await page.keyboard.press('Home')
    await last.getByText('1', { exact: true }).waitFor()
    for (let step = 0; step < steps; step++) await page.keyboard.press('ArrowRight')
    await last.getByText('41', { exact: true }).waitFor()
  })
  const search = page.getByRole('searchbox', { name: 'Search in events' })
  spent['1000 events searched'] = await msFor(session, deltas / 1000, async () => {
    await search.fill(`word-${deltas - 3}`)
    await page.getByText(/^[12] of 30,0\d\d$/).waitFor()
    await search.fill('')
  })
  const list = page.getByRole('group', { name: 'Events', exact: true })
  spent['page scrolled'] = await msFor(session, steps, async () => {
    for (let turn = 0; turn < steps; turn++) await list.evaluate('(element) => (element.scrollTop += 5000)')
  })
  assert.ok((await page.locator('.event-row').count()) < 120, 'only visible rows are drawn')
  spent['100 rows of wires loaded'] = await msFor(
    session,
    deltas / 100,
    async () => {
      await page.goto(`${server.polylog.baseUrl}/wires/${runId}`)
      await page.getByText('Complete', { exact: true }).waitFor()
    },
    true,
  )
  assert.ok((await page.locator('.wire-row').count()) < 80, 'only visible rows are drawn')

  context.diagnostic(JSON.stringify(spent))
  for (const [what, ms] of Object.entries(spent)) assert.ok(ms < longTaskMs, `${what}: ${ms} ms`)
})
