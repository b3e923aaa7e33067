// The operations of the console in a real Chromium: open and stuck runs of all users, readers, the load, and nodes.

import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { apiKeysSetting } from '../support/api-keys.ts'
import { type ConsoleView, picture, seriousFindings, sharedConsoleBrowser } from '../support/console-page.ts'
import { queryDatabase } from '../support/test-database.ts'
import {
  calls,
  hangsAfter,
  runIdOf,
  says,
  sharedTestServers,
  someone,
  type TestServer,
} from '../support/test-server.ts'

const key = 'a-key-of-somebody'
/** A name that is also markup and changes the direction of text. `number` tells which one did something. */
const hostileName = (number: number) =>
  `<img src=x onerror="window.hacked=${number}"><script>window.hacked=${number}</script>\u202Egnp.${number}`
/** How the page shows it. */
const harmless = (name: string) => name.replaceAll('\u202E', '⟦U+202E⟧')
const [server, narrow, locked, nasty] = sharedTestServers(
  {},
  { POLYLOG_CONCURRENCY: '1' },
  { POLYLOG_AUTH: 'required', POLYLOG_API_KEYS: apiKeysSetting({ ada: key }) },
  { POLYLOG_NODE: hostileName(1) },
)
const consoleBrowser = sharedConsoleBrowser()

async function openOperations(context: TestContext, view: ConsoleView = {}, from: TestServer = server, query = '') {
  const opened = await consoleBrowser.open(context, `${from.polylog.baseUrl}/operations${query}`, view)
  return opened?.page ?? null
}

const section = (page: Page, name: string) => page.locator(`section[aria-label="${name}"]`)
const rows = (page: Page, name: string) => section(page, name).locator('tbody tr')

describe('the operations', () => {
  test('show the open runs of all users, their readers, the load and the node', async (context) => {
    const [working, waiting] = [someone('working'), someone('<b>waiting</b>\u202E')]
    await server.provider.script([hangsAfter('so')], working)
    const chat = await server.chat(working, { input: working, conversationId: `conv-${working}` })
    await chat.waitFor(({ json }) => json.event === 'agent.delta')
    await server.chat(working, { input: `${working} next`, conversationId: `conv-${working}` })
    await server.provider.script([calls(['remember_note', { text: 'x' }]), says('Done.')], waiting)
    const asking = await server.chat(waiting, waiting)
    await asking.waitFor(({ json }) => json.event === 'tool.state' && json.data.status === 'awaiting_input')

    const page = await openOperations(context, { user: someone() })
    if (page === null) return
    await rows(page, 'Runs').filter({ hasText: 'Running' }).filter({ hasText: working }).waitFor()
    await rows(page, 'Runs').filter({ hasText: 'Queued' }).waitFor()
    await rows(page, 'Runs').filter({ hasText: '<b>waiting</b>⟦U+202E⟧' }).waitFor()
    await rows(page, 'Readers')
      .filter({ hasText: runIdOf(chat).slice(-8) })
      .filter({ hasText: '0 events' })
      .waitFor()
    await rows(page, 'Nodes').filter({ hasText: 'Live' }).filter({ hasText: 'answers you' }).waitFor()
    // The first sample is taken a few seconds after the start.
    await page.getByRole('figure', { name: 'Commit time' }).locator('canvas').waitFor()
    await page.getByRole('figure', { name: 'Open runs' }).getByText('Running').waitFor()
    await picture(page, 'operations')
    assert.deepEqual(await seriousFindings(page), [])

    await page.getByRole('link', { name: 'Waiting' }).click()
    await rows(page, 'Runs').filter({ hasText: working }).first().waitFor({ state: 'detached' })
    assert.equal(await rows(page, 'Runs').count(), 1)
    await page.reload()
    await rows(page, 'Runs').filter({ hasText: 'waiting' }).waitFor()
    assert.equal(await rows(page, 'Runs').count(), 1)

    for (const [user, stream] of [
      [waiting, asking],
      [working, chat],
    ] as const) {
      await server.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user, body: {} })
    }
    // It reads the overview again by itself.
    await rows(page, 'Runs').first().waitFor({ state: 'detached' })
  })

  test('name a run that is stuck, and why; paused they stay as they are', async (context) => {
    const [first, second] = [someone(), someone()]
    await narrow.provider.script([hangsAfter('so')], first)
    const chat = await narrow.chat(first, first)
    await chat.waitFor(({ json }) => json.event === 'agent.delta')
    const stuck = await narrow.chat(second, second)
    await queryDatabase(narrow.polylog.dataDir, 'UPDATE runs SET created_at = 1 WHERE id = ?', runIdOf(stuck))
    const page = await openOperations(context, { theme: 'dark' }, narrow, '?runs=stuck')
    if (page === null) return
    await rows(page, 'Runs').filter({ hasText: 'Should have started' }).filter({ hasText: second }).waitFor()
    await page.locator('.tile[data-tone="bad"]').getByText('1', { exact: true }).waitFor()
    await picture(page, 'operations-dark')
    assert.deepEqual(await seriousFindings(page), [])
    await page.keyboard.press('p')
    await page.getByRole('button', { name: 'Go on' }).waitFor()
    await narrow.call('POST', `/v1/agent/runs/${runIdOf(stuck)}/cancel`, { user: second, body: {} })
    await narrow.reaches(second, runIdOf(stuck), 'cancelled')
    assert.equal(await rows(page, 'Runs').count(), 1)
    await page.keyboard.press('p')
    await rows(page, 'Runs').first().waitFor({ state: 'detached' })
    await narrow.call('POST', `/v1/agent/runs/${runIdOf(chat)}/cancel`, { user: first, body: {} })
  })

  test('are readable on a phone, and without runs show the call that makes one', async (context) => {
    const page = await openOperations(context, { size: 'phone' })
    if (page === null) return
    await page.getByRole('heading', { name: 'No run is open' }).waitFor()
    await page.getByText('curl -N').waitFor()
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
    await picture(page, 'operations-phone')
    assert.deepEqual(await seriousFindings(page), [])
  })

  test('do nothing to the page, however hostile the names of users, agents and nodes are', async (context) => {
    const user = someone(hostileName(2))
    await nasty.provider.script([hangsAfter('so')], user)
    const chat = await nasty.chat(user, user)
    await chat.waitFor(({ json }) => json.event === 'agent.delta')
    // No definition may have such an id, and no release such a version; rows of other programs may.
    const { dataDir } = nasty.polylog
    await queryDatabase(dataDir, 'UPDATE runs SET agent_id = ? WHERE id = ?', hostileName(3), runIdOf(chat))
    await queryDatabase(
      dataDir,
      `INSERT INTO nodes (id, name, version, started_at, seen_at, lease_ms, offers, draining, capacity, running)
       SELECT 'other', ?, ?, started_at, seen_at, 0, offers, draining, capacity, running FROM nodes`,
      hostileName(4),
      hostileName(5),
    )

    const page = await openOperations(context, { user }, nasty)
    if (page === null) return
    const row = rows(page, 'Runs').filter({ hasText: harmless(user) })
    await row
      .filter({ hasText: harmless(hostileName(3)) })
      .filter({ hasText: harmless(hostileName(1)) })
      .waitFor()
    await rows(page, 'Nodes')
      .filter({ hasText: harmless(hostileName(1)) })
      .filter({ hasText: 'Live' })
      .waitFor()
    await rows(page, 'Nodes')
      .filter({ hasText: harmless(hostileName(4)) })
      .filter({ hasText: harmless(hostileName(5)) })
      .waitFor()
    await page.getByRole('heading', { name: `of ${harmless(hostileName(1))}` }).waitFor()
    await rows(page, 'Readers')
      .filter({ hasText: runIdOf(chat).slice(-8) })
      .waitFor()
    assert.equal(await page.evaluate('window.hacked'), undefined)
    const content = page.locator('#content')
    assert.equal(await content.locator('img, script, iframe, form, [onerror], [onclick]').count(), 0)
    assert.doesNotMatch((await content.innerHTML()) + (await page.title()), /\u202E/)
    await picture(page, 'operations-hostile')
    await nasty.call('POST', `/v1/agent/runs/${runIdOf(chat)}/cancel`, { user, body: {} })
  })

  test('are refused to users who are no operators, with the setting that names them', async (context) => {
    const page = await openOperations(context, {}, locked)
    if (page === null) return
    await page.getByRole('textbox', { name: 'Token or API key' }).or(page.getByLabel('Token or API key')).fill(key)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Only operators may see this' }).waitFor()
    await page.getByText('POLYLOG_ADMINS').waitFor()
    assert.deepEqual(await seriousFindings(page), [])
  })
})
