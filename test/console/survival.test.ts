// What the console survives: a server that is killed in the middle of an answer, a login that it needs, many tabs.

import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { apiKeysSetting } from '../support/api-keys.ts'
import { sharedConsoleBrowser } from '../support/console-page.ts'
import {
  calls,
  type Json,
  says,
  someone,
  startTestServerProcess,
  type TestServerProcess,
} from '../support/test-server.ts'

const consoleBrowser = sharedConsoleBrowser()

async function startServer(
  context: TestContext,
  settings: Record<string, string> = {},
): Promise<{ server: TestServerProcess }> {
  const held = { server: await startTestServerProcess({ POLYLOG_PING_MS: '500', ...settings }) }
  context.after(() => held.server.close())
  return held
}

async function ask(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message', exact: true }).fill(text)
  await page.keyboard.press('Enter')
}

const answer = (page: Page) => page.getByRole('group', { name: 'Answer', exact: true }).last()

test('a server that is killed and started again in mid-answer: the text goes on, nothing lost, nothing twice', async (context) => {
  const held = await startServer(context)
  const user = someone()
  const words = Array.from({ length: 40 }, (_, index) => `word-${index} `)
  const part = (from: number, to: number) => ({ text: words.slice(from, to) })
  await held.server.provider.script(
    [
      [part(0, 10), { stall: true }],
      [part(0, 20), { stall: true }, part(20, 40), { finish: 'stop' }],
    ],
    user,
  )
  const opened = await consoleBrowser.open(context, held.server.polylog.baseUrl, { user })
  if (opened === null) return
  const { page } = opened
  await ask(page, `Go on ${user}`)
  await answer(page).getByText('word-9 ').waitFor()

  const { port } = new URL(held.server.polylog.baseUrl)
  await held.server.polylog.kill()
  await answer(page).getByText('Reconnecting').waitFor()
  // The text that was shown stays.
  assert.match((await answer(page).textContent()) ?? '', /word-9/)
  held.server = await held.server.restartProcess({ PORT: port })
  await answer(page).getByText('word-19 ').waitFor()
  await answer(page)
    .getByText(/Caught up|Live/)
    .waitFor()
  await held.server.provider.release()
  await page.getByRole('button', { name: 'Copy the answer' }).waitFor()

  const shown = async () => (await page.locator('.run-message[data-state=done]').allTextContents()).join('|').trim()
  assert.equal(await shown(), words.join('').trim())
  await page.reload()
  await page.getByRole('button', { name: 'Copy the answer' }).waitFor()
  assert.equal(await shown(), words.join('').trim(), 'the same after a reload')
})

describe('a server that needs a login', () => {
  const key = 'a-secret-key-of-the-console'

  test('gives the page, asks for a key, and the key is in no address, no log and no lasting storage', async (context) => {
    const held = await startServer(context, {
      POLYLOG_AUTH: 'required',
      POLYLOG_API_KEYS: apiKeysSetting({ ada: key }),
      POLYLOG_LOG: 'debug',
    })
    const user = someone()
    await held.server.provider.script([says('Welcome.')], user)
    const opened = await consoleBrowser.open(context, held.server.polylog.baseUrl)
    if (opened === null) return
    const { page } = opened
    const addresses: string[] = []
    page.on('request', (request) => addresses.push(request.url()))
    const dialog = page.getByRole('dialog', { name: 'Sign in' })
    // No header can have the second one; it is refused like any other.
    for (const wrong of ['wrong', '密钥']) {
      await dialog.getByLabel('Token or API key').fill(wrong)
      await page.keyboard.press('Enter')
      await dialog.getByText('The server does not accept this token or key.').waitFor()
    }
    await dialog.getByLabel('Token or API key').fill(key)
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    await ask(page, `Hello ${user}`)
    await answer(page).getByText('Welcome.').waitFor()
    await page.reload()
    await answer(page).getByText('Welcome.').waitFor()
    await page.getByRole('button', { name: 'Signed in' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await dialog.waitFor()
    assert.equal(await page.getByRole('dialog').count(), 1)
    await page.getByText('Welcome.').waitFor({ state: 'detached' })

    assert.deepEqual(
      addresses.filter((address) => address.includes(key)),
      [],
    )
    assert.doesNotMatch(held.server.polylog.log(), new RegExp(key))
    assert.equal(
      await page
        .evaluate('JSON.stringify(localStorage)')
        .then(String)
        .then((text) => text.includes(key)),
      false,
    )
  })
})

test('six tabs with runs at work share the connections of the browser: every tab stays alive', async (context) => {
  const held = await startServer(context)
  const user = someone()
  const { provider } = held.server
  const names = ['one', 'two', 'three', 'four', 'five', 'six']
  for (const name of names) {
    await provider.script(
      [[{ text: [`${name} begins `] }, { stall: true }, { text: [`${name} ends`] }, { finish: 'stop' }]],
      `${name} ${user}`,
    )
  }
  const opened = await consoleBrowser.open(context, held.server.polylog.baseUrl, { user })
  if (opened === null) return
  const tabs = [opened.page]
  for (const _ of names.slice(1)) {
    const page = await opened.page.context().newPage()
    await page.goto(held.server.polylog.baseUrl)
    tabs.push(page)
  }
  for (const [index, page] of tabs.entries()) {
    await ask(page, `${names[index]} ${user}`)
    await answer(page).getByText(`${names[index]} begins`).waitFor()
    // A page that is loaded again attaches to its run, which is when it needs a connection of its own.
    await page.reload()
    await answer(page).getByText(`${names[index]} begins`).waitFor()
  }
  // Every tab has the conversations of all tabs, through one feed.
  for (const page of tabs) {
    const list = page.getByRole('navigation', { name: 'Conversations' })
    for (const name of names) await list.getByRole('link', { name: `${name} ${user}` }).waitFor()
  }
  const { text } = await held.server.call('GET', '/metrics')
  const streams = [...text.matchAll(/^polylog_stream_connections\{[^}]*\} (\d+)/gm)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  )
  assert.ok(
    streams >= 1 && streams <= 5,
    text
      .split('\n')
      .filter((line) => line.includes('streams'))
      .join('\n'),
  )
  await provider.release()
  for (const [index, page] of tabs.entries()) await answer(page).getByText(`${names[index]} ends`).waitFor()
})

test('a decision that is made in one tab is seen in the other, and a new conversation too', async (context) => {
  const held = await startServer(context)
  const user = someone()
  await held.server.provider.script([calls(['remember_note', { text: 'milk' }]), says('Noted.')], user)
  const opened = await consoleBrowser.open(context, held.server.polylog.baseUrl, { user })
  if (opened === null) return
  const { page: first } = opened
  const second = await first.context().newPage()
  await second.goto(held.server.polylog.baseUrl)
  await second.getByText('Your conversations will be here.').waitFor()
  await ask(first, `Remember ${user}`)
  const link = second.getByRole('link', { name: `Remember ${user}` })
  await link.getByText('Waiting for you').waitFor()
  await link.click()
  await second.getByRole('button', { name: 'Approve' }).click()
  await answer(first).getByText('Noted.').waitFor()
  await answer(second).getByText('Noted.').waitFor()
  const [conversation] = (await held.server.call('GET', '/v1/conversations', { user })).body as unknown as Json[]
  await held.server.call('PATCH', `/v1/conversations/${conversation?.id}`, { user, body: { title: 'Groceries' } })
  await first.getByRole('link', { name: 'Groceries' }).waitFor()
  await second.getByRole('link', { name: 'Groceries' }).waitFor()
})
