// The inbox of the console in a real Chromium: what waits over all runs, decided by keyboard.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, describe, test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { type ConsoleView, picture, seriousFindings, sharedConsoleBrowser } from '../support/console-page.ts'
import { asks, errandResult, skillsFolder, startJob } from '../support/jobs.ts'
import { calls, type Json, messagesOf, says, sharedTestServer, someone } from '../support/test-server.ts'
import { until } from '../support/until.ts'

const folder = skillsFolder()
const server = sharedTestServer({ POLYLOG_SKILLS_DIR: folder })
const consoleBrowser = sharedConsoleBrowser()
after(() => rmSync(folder, { recursive: true, force: true }))

async function openInbox(context: TestContext, user: string, view: ConsoleView = {}): Promise<Page | null> {
  const opened = await consoleBrowser.open(context, `${server.polylog.baseUrl}/inbox`, { user, ...view })
  return opened?.page ?? null
}

/** Starts a chat that asks for consent to remember `text`, and waits until it does. */
async function wantsConsent(user: string, text: string, then = 'Done.'): Promise<string> {
  // Not the user's name, which is the marker of jobs.
  const marker = `${someone('note')} ${text}`
  await server.provider.script([calls(['remember_note', { text }]), says(then)], marker)
  const stream = await server.chat(user, marker)
  await stream.waitFor(({ json }) => json.event === 'tool.state' && json.data.status === 'awaiting_input')
  stream.leave()
  return marker
}

const rows = (page: Page) => page.getByRole('region', { name: 'Decisions' }).getByRole('listitem')
const count = (page: Page) => page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Inbox' })

describe('the inbox', () => {
  test('is empty with the call that fills it, and fills live', async (context) => {
    const user = someone()
    const page = await openInbox(context, user)
    if (page === null) return
    await page.getByRole('heading', { name: 'Nothing waits for you' }).waitFor()
    await page.getByText('curl -N').filter({ hasText: user }).waitFor()
    await picture(page, 'inbox-empty')
    assert.deepEqual(await seriousFindings(page), [])
    await wantsConsent(user, 'milk')
    await rows(page).filter({ hasText: 'remember_note' }).waitFor()
    await count(page).getByText('1', { exact: true }).waitFor()
  })

  test('is worked through with the keyboard alone: approve, edit, deny with a reason', async (context) => {
    const user = someone()
    const markers: string[] = []
    for (const text of ['first', 'second', 'third']) markers.push(await wantsConsent(user, text))
    const page = await openInbox(context, user)
    if (page === null) return
    await rows(page).nth(2).waitFor()
    await count(page).getByText('3', { exact: true }).waitFor()
    const card = page.getByRole('group', { name: 'Allow remember_note?' })
    await card.getByText('first', { exact: true }).waitFor()
    await page.keyboard.press('j')
    await card.getByText('second', { exact: true }).waitFor()
    await page.keyboard.press('k')
    await card.getByText('first', { exact: true }).waitFor()
    await picture(page, 'inbox')
    assert.deepEqual(await seriousFindings(page), [])

    await page.keyboard.press('a')
    await card.getByText('second', { exact: true }).waitFor()
    await page.keyboard.press('e')
    await card.getByRole('textbox').fill('{"text": "changed"}')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await card.getByText('third', { exact: true }).waitFor()
    await page.keyboard.press('d')
    await page.keyboard.type('not today')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Nothing waits for you' }).waitFor()

    const told = async (marker = '') =>
      messagesOf((await server.askedTimes(marker, 2)).at(-1)).find(({ role }) => role === 'tool')?.content
    assert.match(String(await told(markers[0])), /note_/)
    assert.match(String(await told(markers[2])), /not today/)
    const { body } = await server.call('GET', '/v1/tool-confirmations?status=confirmed', { user })
    const [edited] = (body as unknown as { payload: unknown }[]).map(({ payload }) => payload)
    assert.deepEqual(edited, { text: 'changed' })

    await page.getByRole('link', { name: 'Decided' }).click()
    const decided = page.getByRole('region', { name: 'Decided' }).getByRole('listitem')
    await decided.filter({ hasText: 'Denied' }).click()
    await page.getByText('not today').waitFor()
    await picture(page, 'inbox-decided')
    assert.deepEqual(await seriousFindings(page), [])
    await page.keyboard.press('o')
    await until('the run', () => new URL(page.url()).pathname.startsWith('/runs/'))
  })

  test('answers a question of a job with a key, and what was decided elsewhere leaves the list', async (context) => {
    const user = someone()
    await server.provider.script(
      [asks({ question: 'Which way?', kind: 'choose_one', options: ['left', 'right'] }), says(errandResult)],
      user,
    )
    const job = await startJob(server, 'jobs', user)
    await job.reaches('waiting_user')
    await wantsConsent(user, 'elsewhere')
    const page = await openInbox(context, user, { theme: 'dark' })
    if (page === null) return
    await rows(page).filter({ hasText: 'Which way?' }).click()
    await page.getByRole('group', { name: 'Question' }).getByRole('button', { name: 'right' }).waitFor()
    await picture(page, 'inbox-question-dark')
    assert.deepEqual(await seriousFindings(page), [])
    await page.keyboard.press('2')
    await job.reaches('succeeded')
    await page.getByRole('group', { name: 'Allow remember_note?' }).waitFor()

    const { body } = await server.call('GET', '/v1/tool-confirmations?status=pending', { user })
    const [waiting] = body as unknown as { id: string }[]
    await server.call('POST', `/v1/tool-confirmations/${waiting?.id}/confirm`, { user, body: {} })
    await page.getByText('This is no longer waiting').waitFor()
    await rows(page).first().waitFor({ state: 'detached' })
  })

  test('a key that is meant for one decision never decides the next, if the first was decided elsewhere', async (context) => {
    const user = someone()
    for (const text of ['first', 'second']) await wantsConsent(user, text)
    const page = await openInbox(context, user)
    if (page === null) return
    await rows(page).nth(1).waitFor()
    await page.getByRole('group', { name: 'Allow remember_note?' }).getByText('first', { exact: true }).waitFor()
    await page.keyboard.press('d')
    await page.keyboard.type('no, bec')
    const pending = async () =>
      (await server.call('GET', '/v1/tool-confirmations?status=pending', { user })).body as unknown as Json[]
    const asked = (await pending()).find(({ payload }) => JSON.stringify(payload).includes('first'))
    await server.call('POST', `/v1/tool-confirmations/${String(asked?.['id'])}/reject`, { user })
    await page.getByText('This is no longer waiting').waitFor()
    await page.keyboard.type('ause a')
    await page.keyboard.press('j')
    await page.getByRole('group', { name: 'Allow remember_note?' }).getByText('second', { exact: true }).waitFor()
    assert.equal((await pending()).length, 1)
  })

  test('opens the run that asks, and leads back to it by its address', async (context) => {
    const user = someone()
    await wantsConsent(user, 'where')
    const page = await openInbox(context, user)
    if (page === null) return
    await rows(page).first().click()
    const address = page.url()
    await page.keyboard.press('o')
    await until('the run', () => new URL(page.url()).pathname.startsWith('/runs/'))
    await page.goto(address)
    await page.getByRole('group', { name: 'Allow remember_note?' }).waitFor()
  })

  test('does nothing that a hostile call asks for, also on a phone in Chinese', async (context) => {
    const user = someone()
    await wantsConsent(user, '<img src=x onerror="window.hacked = 1"> \u202Egnp.exe')
    const page = await openInbox(context, user, { size: 'phone', language: 'zh', theme: 'dark' })
    if (page === null) return
    const list = page.getByRole('region', { name: '决定' }).getByRole('listitem')
    await list.first().waitFor()
    await picture(page, 'inbox-phone-list')
    await list.first().click()
    await page.getByRole('article').getByText('⟦U+202E⟧', { exact: false }).first().waitFor()
    assert.equal(await page.evaluate('window.hacked'), undefined)
    assert.equal(await page.locator('main img').count(), 0)
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
    await picture(page, 'inbox-phone')
    assert.deepEqual(await seriousFindings(page), [])
    await page.getByRole('link', { name: '全部事项' }).click()
    await list.first().waitFor()
  })
})
