// What holds on every page of the console, in each theme, language and size: it is reached by keyboard, has the palette and
// its shortcuts, fits the screen, does not move if the person wants no motion, and axe finds nothing serious.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { consolePaths } from '../../src/http/console/console-paths.ts'
import { type ConsoleView, picture, seriousFindings, sharedConsoleBrowser } from '../support/console-page.ts'
import { calls, runIdOf, says, sharedTestServer, someone } from '../support/test-server.ts'

const server = sharedTestServer()
const consoleBrowser = sharedConsoleBrowser()
const user = someone()
let made: Promise<string[]> | undefined

/** Makes something to show on each page, once; gives the addresses of single things, beside those of the navigation. */
function details(): Promise<string[]> {
  made ??= makeDetails()
  return made
}

async function makeDetails(): Promise<string[]> {
  await server.provider.script([calls(['current_time', {}]), says('It is **late**.\n\n- one\n- two')], `time ${user}`)
  await server.provider.script([calls(['remember_note', { text: 'milk' }]), says('Noted.')], `note ${user}`)
  const told = await server.chat(user, `What is the time ${user}`)
  await told.ended()
  const waits = await server.chat(user, `Remember the note ${user}`)
  await waits.waitFor(({ json }) => json.data.status === 'awaiting_input')
  waits.leave()
  const contact = await server.call('POST', '/v1/contacts', { user, body: { name: 'Ann Lee', company: 'Acme' } })
  const { body } = await server.call('GET', '/v1/conversations?limit=1', { user })
  return [
    `/runs/${runIdOf(told)}`,
    `/wires/${runIdOf(told)}`,
    `/contacts/${contact.body.id}`,
    `/chat/${(body as unknown as { id: string }[])[0]?.id}`,
    '/arena/standings',
    '/agents/title_summary',
  ]
}

const fits = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
/** Parts that scroll sideways on their own would hide what they hold; a title of a few letters says nothing. */
const cramped = `[...document.querySelectorAll('.page-body, .empty-state')].filter(
  (part) => part.scrollWidth > part.clientWidth,
).length + [...document.querySelectorAll('h1:not(.visually-hidden)')].filter(
  (title) => title.clientWidth < 80 && title.scrollWidth > title.clientWidth,
).length`
const moving = 'document.getAnimations().filter(({ effect }) => effect.getComputedTiming().activeDuration > 1).length'
const linked = '[...document.querySelectorAll(".shell-pages a")].map((link) => link.getAttribute("href"))'
/** The first address of each page. */
const addresses = consolePaths.filter((path) => path !== '/' && !path.endsWith('*'))

/** The page has loaded what it shows: nothing turns, and its heading or list is there. */
async function shown(page: Page): Promise<void> {
  await page.locator('.shell-page .spinner').first().waitFor({ state: 'detached' })
}

for (const theme of ['light', 'dark'] as const) {
  test(`every page is reached by keyboard and has palette and shortcuts; axe finds nothing serious: ${theme}`, async (context) => {
    await details()
    const opened = await consoleBrowser.open(context, server.polylog.baseUrl, { user, theme })
    if (opened === null) return
    const { page } = opened
    const paths: string[] = await page.evaluate(linked)
    assert.deepEqual(paths.toSorted(), addresses.toSorted())
    // The pages of single things have tests of their own in the light.
    for (const path of theme === 'light' ? addresses : [...addresses, ...(await details())]) {
      if (!addresses.includes(path)) await page.goto(`${server.polylog.baseUrl}${path}`)
      else await goByPalette(page, path)
      await shown(page)
      assert.deepEqual(await seriousFindings(page), [], path)
      assert.equal(await page.evaluate(fits), 0, `${path} is wider than the screen`)
      assert.equal(await page.evaluate(moving), 0, `something moves at ${path}`)
      await picture(page, `every ${theme} ${path.replaceAll('/', ' ').slice(0, 24)}`)
      await page.keyboard.press('Escape')
      await page.keyboard.press('?')
      await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
  })
}

/** The palette lists the pages by name; the address tells which was opened. */
async function goByPalette(page: Page, path: string): Promise<void> {
  const link = page.getByRole('navigation', { name: 'Pages' }).locator(`a[href="${path}"]`)
  const name = ((await link.locator('.grow').textContent()) ?? '').trim()
  await page.keyboard.press('Control+k')
  await page.getByRole('dialog', { name: 'Commands' }).getByRole('combobox').fill(name)
  await page.keyboard.press('Enter')
  await page.waitForURL(`**${path}*`)
}

test('every page fits a phone, in Chinese', async (context) => {
  const view: ConsoleView = { user, size: 'phone', theme: 'dark', language: 'zh' }
  const opened = await consoleBrowser.open(context, server.polylog.baseUrl, view)
  if (opened === null) return
  const { page } = opened
  for (const path of [...addresses, ...(await details())]) {
    await page.goto(`${server.polylog.baseUrl}${path}`)
    await shown(page)
    assert.equal(await page.evaluate(fits), 0, `${path} is wider than the screen`)
    assert.equal(await page.evaluate(cramped), 0, `something is cut off at ${path}`)
    await picture(page, `every phone zh ${path.replaceAll('/', ' ').slice(0, 24)}`)
  }
})
