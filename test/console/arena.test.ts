// The arena of the console in a real Chromium: blind answers, votes, standings, and the difference of two runs.

import assert from 'node:assert/strict'
import { after, before, describe, test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { type AbTestServer, calm, pausesAfter, startAbTestServerProcess, wild } from '../support/comparisons.ts'
import { type ConsoleView, picture, seriousFindings, sharedConsoleBrowser } from '../support/console-page.ts'
import type { Action } from '../support/fake-provider.ts'
import { calls, says, someone } from '../support/test-server.ts'

let server: AbTestServer
before(async () => {
  server = await startAbTestServerProcess()
})
after(async () => {
  await server.close()
})
const consoleBrowser = sharedConsoleBrowser()

const everyView: Record<string, ConsoleView> = {
  'light on a desktop': {},
  'dark on a desktop': { theme: 'dark' },
  'light on a phone': { size: 'phone' },
  'dark on a phone, in Chinese': { size: 'phone', theme: 'dark', language: 'zh' },
}

async function open(context: TestContext, path: string, view: ConsoleView): Promise<Page | null> {
  return (await consoleBrowser.open(context, `${server.polylog.baseUrl}${path}`, view))?.page ?? null
}

async function assertFits(page: Page, { size }: ConsoleView): Promise<void> {
  // A phone has the same elements and colours.
  if (size !== 'phone') assert.deepEqual(await seriousFindings(page), [])
  const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
  assert.equal(overflow, 0, 'nothing is wider than the screen')
}

/** Both configurations answer `marker` with a tool call and then these words. */
async function scriptWithTool(marker: string, calmly: string, wildly: string): Promise<void> {
  const answers = (text: string, input: unknown): Action[][] => [calls(['current_time', input]), says(text)]
  await server.provider.script(answers(calmly, { timezone: 'UTC' }), marker, calm.model)
  await server.provider.script(answers(wildly, { timezone: 'Asia/Tokyo' }), marker, wild.model)
}

const question = (page: Page) => page.getByRole('textbox', { name: 'Question' })
async function chooseConfigs(page: Page): Promise<void> {
  await page.getByRole('combobox', { name: 'One configuration' }).selectOption(calm.name)
  await page.getByRole('combobox', { name: 'The other' }).selectOption(wild.name)
}

const arms = (page: Page) => page.getByRole('region', { name: /^Answer [12]$/ })

describe('a comparison', () => {
  test('streams two blind answers, takes a vote by key, then reveals, lists and rates', async (context) => {
    const user = someone()
    await server.script(user, pausesAfter('Calm words.'), pausesAfter('Wild words!'))
    const page = await open(context, '/arena', { user })
    if (page === null) return
    const seen: string[] = []
    page.on('response', (response) => {
      if (!response.url().includes('/api/get_configs')) {
        void response.text().then(
          (text) => seen.push(text),
          () => {},
        )
      }
    })
    await chooseConfigs(page)
    await question(page).fill(`Which is which? ${user}`)
    await page.keyboard.press('Enter')
    await page.getByText('Calm words.').waitFor()
    await page.getByText('Wild words!').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Answer 1 is better' }).isDisabled(), true)
    await page.keyboard.press('1')

    await server.provider.release()
    await page.getByText('Vote, and both are revealed.').waitFor()
    await page
      .getByRole('link', { name: /Which is which/ })
      .getByText('Waits for your vote')
      .waitFor()
    const whole = String(await page.evaluate('document.documentElement.outerHTML'))
    const identity = new RegExp([calm.name, calm.model, wild.name, wild.model].join('|'))
    assert.doesNotMatch(whole, identity, 'the page')
    assert.doesNotMatch(seen.join('\n'), identity, 'what the page was told')
    await picture(page, 'arena before the vote')
    assert.deepEqual(await seriousFindings(page), [])

    await page.keyboard.press('2')
    await page
      .getByRole('region', { name: 'Result' })
      .getByText(/^You preferred /)
      .waitFor()
    const [comparison] = (await server.call('GET', `/api/ab/comparisons?client_id=${user}`)).body.comparisons
    assert.equal(comparison.preference, 'b')
    const second = arms(page).nth(1)
    await second.getByText('Preferred').waitFor()
    assert.equal(await second.getByRole('heading', { level: 3 }).first().textContent(), comparison.side_b_config)
    const models = page.getByRole('row', { name: /^Model/ })
    await models.getByText(calm.model).waitFor()
    await models.getByText(wild.model).waitFor()
    await picture(page, 'arena after the vote')
    assert.deepEqual(await seriousFindings(page), [])
    await page
      .getByRole('link', { name: /Which is which/ })
      .getByText(`${comparison.side_b_config} preferred`)
      .waitFor()

    await page.getByRole('button', { name: 'Change the vote' }).click()
    await page.keyboard.press('0')
    await page.getByText('You called it a tie.').waitFor()

    await page.getByRole('region', { name: 'Result' }).getByRole('link', { name: 'Standings' }).click()
    const row = page.getByRole('row', { name: new RegExp(`^${calm.name}`) })
    await row.first().getByText('0–1–0').waitFor()
    await page.getByText('Too few votes to tell.').waitFor()
  })

  test('goes on after a reload, and can be stopped', async (context) => {
    const user = someone()
    await server.script(user, pausesAfter('Calm words.'), pausesAfter('Wild words!'))
    const page = await open(context, '/arena', { user })
    if (page === null) return
    await chooseConfigs(page)
    await question(page).fill(`Stop me. ${user}`)
    await page.getByRole('button', { name: 'Ask both' }).click()
    await arms(page).nth(1).getByText(/Live/).waitFor()
    await page.reload()
    await arms(page).first().getByText(/words/).waitFor()
    await page.getByRole('button', { name: 'Stop both' }).click()
    await page.getByText('One of the answers failed or was stopped').waitFor()
    await arms(page).first().getByText('Stopped').waitFor()
    await server.provider.release()
  })

  test('asks for consent on both sides, and the vote waits for both', async (context) => {
    const user = someone()
    for (const { model } of [calm, wild]) {
      await server.provider.script([calls(['remember_note', { text: `by ${user}` }]), says('Noted.')], user, model)
    }
    const page = await open(context, '/arena', { user })
    if (page === null) return
    await chooseConfigs(page)
    await question(page).fill(`Note it. ${user}`)
    await page.keyboard.press('Enter')
    for (const side of [0, 1]) {
      await arms(page).nth(side).getByRole('button', { name: 'Approve' }).click()
      await arms(page).nth(side).getByText('Noted.').waitFor()
    }
    await page.getByText('Vote, and both are revealed.').waitFor()
    await page.keyboard.press('9')
    await page.getByText('You called both bad.').waitFor()
  })

  test('does nothing to the page, however hostile the answers and the question are', async (context) => {
    const user = someone()
    const hostile =
      '<img src=x onerror="window.hacked=1"> [x](javascript:window.hacked=2) \u202Egnp.exe\u202C <script>window.hacked=3</script> The end.'
    await server.script(user, says(hostile), says(`${hostile} Really.`))
    const { id } = await server.compareToEnd(user, `${hostile} ${user}`)
    await server.vote(user, id, 'both_bad')
    const page = await open(context, `/arena/${id}`, { user })
    if (page === null) return
    await page.getByText('Really.').waitFor()
    await page.getByText('You called both bad.').waitFor()
    await page.getByRole('link', { name: 'Show the difference' }).click()
    await page.getByText('Really.').waitFor()
    assert.equal(await page.evaluate('window.hacked'), undefined)
    assert.equal(await page.locator('a[href^="javascript"]').count(), 0)
  })

  test('that does not exist says so, and empty views show the exact call to make', async (context) => {
    const page = await open(context, '/arena', { user: someone() })
    if (page === null) return
    await page.getByText(/curl -N .*\/api\/ab\/compare/).waitFor()
    await page.goto(`${server.polylog.baseUrl}/arena/standings`)
    await page.getByText('No votes yet').waitFor()
    await page.getByText(/curl -s .*\/api\/ab\/metrics/).waitFor()
    await page.goto(`${server.polylog.baseUrl}/arena/diff`)
    await page.getByText(/curl -s .*\/v1\/agent\/runs/).waitFor()
    await page.goto(`${server.polylog.baseUrl}/arena/unknown`)
    await page
      .getByRole('alert')
      .getByText(/There is no comparison "unknown"/)
      .waitFor()
  })
})

describe('the difference of two runs', () => {
  test('matches the tool calls, compares the text, and shows time and tokens', async (context) => {
    const user = someone()
    await scriptWithTool(user, 'The answer is four, I think.', 'The answer is six, I think.')
    const { id } = await server.compareToEnd(user, `Count. ${user}`)
    await server.vote(user, id, 'a')
    const { trace_a: left, trace_b: right } = await server.comparison(user, id)
    const page = await open(context, '/arena/diff', { user })
    if (page === null) return
    await page.getByRole('combobox', { name: 'Left run' }).fill(left)
    await page.getByRole('combobox', { name: 'Right run' }).fill(right)
    await page.keyboard.press('Enter')
    await page.getByText('1 tool calls matched, 0 with the same input').waitFor()
    const changed = [await page.locator('del').textContent(), await page.locator('ins').textContent()]
    assert.deepEqual(new Set(changed), new Set(['four', 'six']))
    await page.getByRole('row', { name: /^Output tokens/ }).waitFor()
    assert.equal(new URL(page.url()).searchParams.get('left'), left)
    await page.getByRole('checkbox', { name: 'Only differences' }).check()
    await page.locator('ins').waitFor()
    await picture(page, 'arena difference')
  })
})

describe('the standings', () => {
  test('show ratings with intervals and sample sizes, and name the better one when the votes suffice', async (context) => {
    const user = someone()
    for (let vote = 0; vote < 12; vote++) {
      const { id } = await server.compareToEnd(user, `Again. ${user}`)
      // Who is on which side is known only after a vote.
      await server.vote(user, id, 'tie')
      const { side_a_config } = await server.comparison(user, id)
      await server.vote(user, id, side_a_config === calm.name ? 'a' : 'b', { revise: true })
    }
    const page = await open(context, '/arena/standings', { user })
    if (page === null) return
    const best = page.getByRole('row', { name: new RegExp(`^${calm.name} Better than the rest`) })
    await best.getByText('12–0–0').waitFor()
    await page.getByText(`${calm.name} is better`).waitFor()
    const ratings = await page.locator('.interval-plot').first().getByRole('row').allTextContents()
    assert.match(ratings[1] ?? '', /1,\d{3}.*… /, 'the rating and its interval')
    await picture(page, 'arena standings with votes')
    await page.getByRole('link', { name: 'All votes' }).click()
    await page
      .getByRole('row', { name: new RegExp(`^${calm.name}`) })
      .first()
      .waitFor()
    assert.equal(new URL(page.url()).search, '?scope=all')
  })
})

describe('every size and theme', () => {
  for (const [name, view] of Object.entries(everyView)) {
    test(`${name}: all views of the arena fit, and axe finds nothing serious`, async (context) => {
      const user = someone()
      await scriptWithTool(
        `${user} one`,
        '# A journal\n\nA journal keeps **every event** in order.\n\n- nothing is lost\n- nothing comes twice',
        '# Journals\n\nA journal keeps all events in order, so that a reader can come back.\n\n```js\nfor (const event of journal) show(event)\n```',
      )
      const { id } = await server.compareToEnd(user, `What is a journal for? ${user} one`)
      const page = await open(context, `/arena/${id}`, { user, ...view })
      if (page === null) return
      await page.locator('.vote-bar button:not(:disabled)').first().waitFor()
      await picture(page, `arena vote ${name}`)
      await assertFits(page, view)
      await page.locator('.vote-bar button').first().click()
      await page.locator('.reveal').waitFor()
      await picture(page, `arena reveal ${name}`)
      await assertFits(page, view)
      const { trace_a, trace_b } = await server.comparison(user, id)
      await page.goto(`${server.polylog.baseUrl}/arena/diff?left=${trace_a}&right=${trace_b}`)
      await page.locator('.run-diff-row').nth(2).waitFor()
      await picture(page, `arena difference ${name}`)
      await assertFits(page, view)
      await page.goto(`${server.polylog.baseUrl}/arena/standings?scope=all`)
      await page.locator('.interval-dot').first().waitFor()
      await picture(page, `arena standings ${name}`)
      await assertFits(page, view)
      await page.goto(`${server.polylog.baseUrl}/arena/new`)
      await page.locator('.new-comparison select').first().waitFor()
      await picture(page, `arena new ${name}`)
      await assertFits(page, view)
    })
  }
})
