// A chat with the keyboard alone, in a real Chromium: no test here uses a mouse. The focus is never lost to the page when
// the element that has it goes away.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { sharedConsoleBrowser } from '../support/console-page.ts'
import { calls, hangsAfter, messagesOf, says, sharedTestServer, someone, until } from '../support/test-server.ts'

const server = sharedTestServer()
const consoleBrowser = sharedConsoleBrowser()

/** More than any part of a page needs. */
const pressesMax = 40

const field = (page: Page) => page.getByRole('textbox', { name: 'Message', exact: true })
const answers = (page: Page) => page.getByRole('group', { name: 'Answer', exact: true })
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const focused = (page: Page, target: Locator) => target.and(page.locator(':focus'))

/** Presses the key until the target has the focus, and can be seen to have it. */
async function goTo(page: Page, target: Locator, key: 'Tab' | 'Shift+Tab'): Promise<void> {
  await target.waitFor()
  const passed: string[] = []
  for (let presses = 0; presses < pressesMax; presses += 1) {
    await page.keyboard.press(key)
    if ((await focused(page, target).count()) === 1) {
      assert.equal(await target.and(page.locator(':focus-visible')).count(), 1)
      return
    }
    passed.push(await page.evaluate(focusedElement))
  }
  assert.fail(`${key} does not lead to ${String(target)}, but to: ${passed.join(', ')}`)
}

const focusedElement = `(({ tagName, ariaLabel, textContent }) => tagName + ' ' + (ariaLabel ?? textContent.slice(0, 30)))(
  document.activeElement,
)`

async function ask(page: Page, text: string): Promise<void> {
  await page.keyboard.type(text)
  await page.keyboard.press('Enter')
}

test('a chat from the first question to another conversation', async (context) => {
  const [user, other] = [someone(), someone()]
  const long = Array.from({ length: 80 }, (_, line) => `Line ${line}.\n\n`)
  await server.provider.script([says('It is blue.'), says('And the sea too.')], other)
  await server.chatToEnd(user, `The sky ${other}`)
  await server.provider.script(
    [calls(['remember_note', { text: 'milk' }]), says('Noted.'), says(...long, 'The end.'), says('You are welcome.')],
    user,
  )
  const opened = await consoleBrowser.open(context, `${server.polylog.baseUrl}/chat`, { user })
  if (opened === null) return
  const { page } = opened

  // From the top of the page past the navigation, and to the field.
  await goTo(page, page.getByRole('link', { name: 'Skip to content' }), 'Tab')
  await page.keyboard.press('Enter')
  await goTo(page, field(page), 'Tab')
  await ask(page, `Remember ${user}`)

  // The call is approved, and the focus stays at it.
  await goTo(page, button(page, 'Approve'), 'Shift+Tab')
  await page.keyboard.press('Enter')
  await answers(page).getByText('Noted.').waitFor()
  const card = page.getByRole('region', { name: 'Tool remember_note' })
  await focused(page, card.getByRole('button').first()).waitFor()
  await page.keyboard.press('Enter')
  await card.getByRole('group', { name: 'Output' }).getByText('note_', { exact: false }).waitFor()

  // Another answer to the same question, and the arrow keys scroll through it.
  await goTo(page, button(page, 'Answer again'), 'Tab')
  await page.keyboard.press('Enter')
  await answers(page).getByText('The end.').waitFor()
  await button(page, 'Answer again').waitFor()
  await focused(page, answers(page)).waitFor()
  await until('the page to be at the end of the answer', async () => (await belowView(page)) < 1)
  const end = await scrolled(page)
  assert.ok(end > 0, 'the answer is longer than the page')
  await page.keyboard.press('ArrowUp')
  await until('the page to scroll up', async () => (await scrolled(page)) < end)
  await until('the page to be still', async () => {
    const before = await scrolled(page)
    await page.evaluate('new Promise((done) => setTimeout(done, 100))')
    return (await scrolled(page)) === before
  })
  const above = await scrolled(page)
  // One press is less than what counts as near the end, and the page follows the text no longer.
  const size = page.viewportSize()
  assert.ok(size !== null)
  await page.setViewportSize({ width: size.width, height: size.height - 20 })
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
  assert.equal(await scrolled(page), above)
  await page.setViewportSize(size)
  await page.keyboard.press('Home')
  await until('the page to be at its top', async () => (await scrolled(page)) === 0)

  // The next question.
  await goTo(page, field(page), 'Tab')
  await ask(page, `Thank you ${user}`)
  await answers(page).last().getByText('You are welcome.').waitFor()
  await focused(page, field(page)).waitFor()

  // Another conversation, and a question there.
  await button(page, 'Answer again').waitFor()
  await goTo(page, page.getByRole('link', { name: `The sky ${other}` }), 'Shift+Tab')
  await page.keyboard.press('Enter')
  await answers(page).getByText('It is blue.').waitFor()
  await goTo(page, field(page), 'Tab')
  await ask(page, `And the sea? ${other}`)
  await answers(page).last().getByText('And the sea too.').waitFor()
  const [, second] = await server.askedTimes(other, 2)
  assert.deepEqual(
    messagesOf(second)
      .filter(({ role }) => role === 'user')
      .map(({ content }) => content),
    [`The sky ${other}`, `And the sea? ${other}`],
  )
})

/** How many pixels of the chat are below what is seen. */
async function belowView(page: Page): Promise<number> {
  return await page.evaluate(
    `(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight)(document.querySelector('.chat-scroll'))`,
  )
}

async function scrolled(page: Page): Promise<number> {
  return await page.evaluate(`document.querySelector('.chat-scroll').scrollTop`)
}

test('a call is denied with a reason, a message is sent with its button, and the answer is stopped', async (context) => {
  const user = someone()
  await server.provider.script([calls(['remember_note', { text: 'milk' }]), says('Then not.'), hangsAfter('So')], user)
  const opened = await consoleBrowser.open(context, `${server.polylog.baseUrl}/chat`, { user })
  if (opened === null) return
  const { page } = opened
  await goTo(page, field(page), 'Tab')
  await page.keyboard.type(`Remember ${user}`)
  await goTo(page, button(page, 'Send'), 'Tab')
  await page.keyboard.press('Enter')
  await focused(page, field(page)).waitFor()
  assert.equal(await field(page).inputValue(), '')

  await goTo(page, button(page, 'Deny'), 'Shift+Tab')
  await page.keyboard.press('Enter')
  await focused(page, page.getByRole('textbox', { name: 'Reason (optional)' })).waitFor()
  await ask(page, 'I prefer tea')
  await answers(page).getByText('Then not.').waitFor()
  const card = page.getByRole('region', { name: 'Tool remember_note' })
  await focused(page, card.getByRole('button').first()).waitFor()

  await goTo(page, field(page), 'Tab')
  await ask(page, `Go on ${user}`)
  await answers(page).last().getByText('So').waitFor()
  await goTo(page, button(page, 'Stop'), 'Tab')
  await page.keyboard.press('Enter')
  await answers(page).last().getByText('Stopped', { exact: true }).waitFor()
  await focused(page, field(page)).waitFor()
})

test('a queued message is edited and removed, and an idea of the first page is tried', async (context) => {
  const user = someone()
  await server.provider.script([hangsAfter('So')], user)
  const opened = await consoleBrowser.open(context, `${server.polylog.baseUrl}/chat`, { user })
  if (opened === null) return
  const { page } = opened
  await goTo(page, field(page), 'Tab')
  await ask(page, `Go on ${user}`)
  await answers(page).getByText('So').waitFor()
  await ask(page, 'And then?')

  await goTo(page, button(page, 'Edit: And then?'), 'Shift+Tab')
  await page.keyboard.press('Enter')
  await page.keyboard.press('Escape')
  await focused(page, button(page, 'Edit: And then?')).waitFor()
  await page.keyboard.press('Enter')
  await ask(page, ' And after that?')
  await focused(page, button(page, 'Edit: And then? And after that?')).waitFor()
  await goTo(page, button(page, 'Remove: And then? And after that?'), 'Tab')
  await page.keyboard.press('Enter')
  await page.getByRole('list', { name: 'Queued messages' }).waitFor({ state: 'detached' })
  await focused(page, field(page)).waitFor()

  await page.goto(`${server.polylog.baseUrl}/chat`)
  await goTo(page, page.locator('.welcome-idea').first(), 'Tab')
  await page.keyboard.press('Enter')
  await answers(page).last().waitFor()
  await focused(page, field(page)).waitFor()
})
