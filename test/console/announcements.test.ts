// What screen readers are told: politely, not too often, and again if the same thing happens again.

import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { announce, announcement, betweenMs } from '../../console/src/ui/announcements.ts'
import { sharedConsoleBrowser } from '../support/console-page.ts'
import { says, sharedTestServer, someone, until } from '../support/test-server.ts'

const server = sharedTestServer()
const consoleBrowser = sharedConsoleBrowser()

/** Time stands still until the test moves it; what is told is listed. */
function withTimers(context: TestContext) {
  const { timers } = context.mock
  timers.enable({ apis: ['setTimeout'] })
  const told: string[] = []
  const stop = announcement.subscribe(() => told.push(announcement.get().text))
  context.after(() => {
    // What still waits, and the pause after it.
    timers.tick(betweenMs)
    timers.tick(betweenMs)
    stop()
  })
  return { told, pass: (ms: number) => timers.tick(ms) }
}

describe('an announcement', () => {
  test('is made at once after a quiet time', (context) => {
    const { told, pass } = withTimers(context)
    announce('one')
    assert.deepEqual(told, ['one'])
    pass(betweenMs)
    announce('two')
    assert.deepEqual(told, ['one', 'two'])
  })

  test('waits if one was just made, and only the newest of those that wait is made', (context) => {
    const { told, pass } = withTimers(context)
    for (const text of ['one', 'two', 'three', 'four']) announce(text)
    assert.deepEqual(told, ['one'])
    pass(betweenMs - 1)
    assert.deepEqual(told, ['one'])
    announce('five')
    pass(1)
    assert.deepEqual(told, ['one', 'five'])
  })

  test('that waited is followed by a pause too', (context) => {
    const { told, pass } = withTimers(context)
    announce('one')
    announce('two')
    pass(betweenMs)
    announce('three')
    assert.deepEqual(told, ['one', 'two'])
    pass(betweenMs)
    assert.deepEqual(told, ['one', 'two', 'three'])
  })

  test('with the same words as the one before is made again', (context) => {
    const { told, pass } = withTimers(context)
    announce('done')
    pass(betweenMs)
    announce('done')
    announce('done')
    pass(betweenMs)
    assert.deepEqual(told, ['done', 'done', 'done'])
  })
})

/** A screen reader speaks when something is added to the region. */
const listen = `{
  window.heard = []
  const region = document.querySelector('[role=status][aria-live=polite]')
  new MutationObserver(() => window.heard.push(region.textContent)).observe(region, {
    childList: true,
    characterData: true,
    subtree: true,
  })
}`

test('each answer is announced in a polite region, also if the sentence is the same', async (context) => {
  const user = someone()
  await server.provider.script([says('First.'), says('Second.')], user)
  const opened = await consoleBrowser.open(context, `${server.polylog.baseUrl}/chat`, { user })
  if (opened === null) return
  const { page } = opened
  await page.evaluate(listen)
  for (const [index, text] of ['First.', 'Second.'].entries()) {
    await page.getByRole('textbox', { name: 'Message', exact: true }).fill(`Question ${user}`)
    await page.keyboard.press('Enter')
    await page.getByRole('group', { name: 'Answer', exact: true }).getByText(text).waitFor()
    await until(`announcement ${index + 1} of a complete answer`, async () => (await heardIn(page)).length > index)
  }
})

async function heardIn(page: Page): Promise<string[]> {
  const heard: string[] = await page.evaluate('window.heard')
  return heard.filter((text) => text === 'The answer is complete.')
}
