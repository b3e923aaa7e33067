// The page of a run and the list of runs in a real Chromium, on the real server in another process, with a fake provider.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { type ConsoleView, picture, seriousFindings, sharedConsoleBrowser } from '../support/console-page.ts'
import { calls, hangsAfter, runIdOf, says, sharedServerProcess, someone } from '../support/test-server.ts'

const server = sharedServerProcess()
const consoleBrowser = sharedConsoleBrowser()

async function openPage(
  context: TestContext,
  path: string,
  user: string,
  view: ConsoleView = {},
): Promise<Page | null> {
  const opened = await consoleBrowser.open(context, `${server.polylog.baseUrl}${path}`, { user, ...view })
  return opened?.page ?? null
}

/** A run with a tool that works, one that fails, a decision of a person, and text. */
async function fullRun(user: string): Promise<string> {
  await server.provider.script(
    [
      calls(['current_time', {}], ['read_tool_output', { ref: 'nothing' }]),
      calls(['remember_note', { text: 'milk' }]),
      says('It is **late**.\n\n', 'Milk is noted: ', 'the note says what you asked for.\n\n', '- one\n- two\n'),
    ],
    user,
  )
  const stream = await server.chat(user, `What time is it, and remember the milk, ${user}`)
  const asked = await stream.waitFor(({ json }) => json.data.status === 'awaiting_input')
  await server.call('POST', `/v1/tool-confirmations/${asked.json.data.confirmationId}/confirm`, { user, body: {} })
  await stream.ended()
  return runIdOf(stream)
}

const moment = (page: Page) => page.getByRole('slider', { name: 'Moment of the run' })
const seqIs = (page: Page, seq: number | string) =>
  page.locator('.scrubber-moment strong', { hasText: new RegExp(`^${seq}$`) }).waitFor()

describe('the page of a run', () => {
  test('shows a waterfall, the conversation and the events, linked, and every moment has an address', async (context) => {
    const user = someone()
    const runId = await fullRun(user)
    const page = await openPage(context, `/runs/${runId}`, user)
    if (page === null) return
    const waterfall = page.getByRole('tabpanel', { name: 'Waterfall' })
    await waterfall.getByRole('button', { name: /^Tool current_time/ }).waitFor()
    await page.getByText('All rules kept').waitFor()
    await picture(page, 'run-waterfall')
    assert.deepEqual(await seriousFindings(page), [])
  })
})
