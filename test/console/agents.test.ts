// The agents of the console in a real Chromium: the catalogue, forms from schemas, results, the cache, and differences.

import assert from 'node:assert/strict'
import { after, describe, test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { agentFolder } from '../support/agent-folder.ts'
import {
  type ConsoleView,
  holdRequests,
  picture,
  seriousFindings,
  sharedConsoleBrowser,
} from '../support/console-page.ts'
import { hangsAfter, type Json, says, sharedTestServer, someone, until } from '../support/test-server.ts'

const folder = agentFolder()
after(() => folder.dispose())
folder.agent(
  'trip_planner',
  {
    name: 'Trip planner',
    description: 'Plans a trip, day by day, for the people who travel.',
    cache: { ttl: 3600 },
  },
  {
    'input.json': JSON.stringify({
      type: 'object',
      properties: {
        place: { type: 'string', minLength: 2, maxLength: 100, description: 'Where to go.' },
        days: { type: 'integer', minimum: 1, maximum: 14, default: 3, description: 'How many days.' },
        pace: { enum: ['slow', 'steady', 'fast'], description: 'How much to see in a day.' },
        byTrain: { type: 'boolean', description: 'Only by train.' },
        wishes: { type: 'array', items: { type: 'string' }, description: 'What must not be missed.' },
        budget: {
          type: 'object',
          properties: { amount: { type: 'number', minimum: 0 }, currency: { type: 'string', maxLength: 3 } },
          required: ['currency'],
        },
        travellers: {
          type: 'array',
          minItems: 1,
          items: {
            type: 'object',
            properties: { name: { type: 'string', minLength: 1, maxLength: 50 }, age: { type: 'integer' } },
            required: ['name'],
          },
        },
        notes: { type: 'string', maxLength: 2000 },
      },
      required: ['place', 'travellers'],
    }),
    'output.json': JSON.stringify({
      type: 'object',
      properties: {
        title: { type: 'string' },
        days: { type: 'array', items: { type: 'object' } },
        advice: { type: 'string' },
        estimatedCost: { type: 'number' },
      },
      required: ['title', 'days'],
    }),
  },
)
folder.agent('broken_agent', { name: 'Broken', prompt: { systemTemplate: 'missing.mustache' } })

const server = sharedTestServer({ POLYLOG_AGENTS_DIR: folder.path })
const consoleBrowser = sharedConsoleBrowser()

const plan = (title: string, more: Json = {}): Json => ({
  title,
  days: [
    { day: 1, activity: 'The old town', meals: ['soup', 'bread'] },
    { day: 2, activity: 'The harbour and the long way along the coast, if the weather allows it' },
  ],
  advice: 'Take **good shoes**.\n\n- and water',
  estimatedCost: 1240,
  ...more,
})

async function openAgents(context: TestContext, path: string, view: ConsoleView): Promise<Page | null> {
  return (await consoleBrowser.open(context, `${server.polylog.baseUrl}${path}`, view))?.page ?? null
}

async function fill(page: Page, place: string): Promise<void> {
  await page.getByRole('textbox', { name: 'place' }).fill(place)
  await page.getByRole('button', { name: 'Add an entry' }).click()
  await page.getByRole('textbox', { name: 'name', exact: true }).fill('Ann')
}

const run = (page: Page) => page.getByRole('button', { name: /^Run/ }).click()
/** Not the sentence for screen readers. */
const outcome = (page: Page) => page.getByRole('region', { name: 'Result', exact: true })
const changes = (page: Page) => page.locator('.changes > li')

describe('the catalogue', () => {
  test('shows which agents can be used, why others cannot, and finds them by words', async (context) => {
    const page = await openAgents(context, '/agents', { user: someone() })
    if (page === null) return
    const broken = page.getByRole('link', { name: /Broken/ })
    await broken.getByText('Unavailable').waitFor()
    await broken.getByText(/missing\.mustache/).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('day by day')
    await broken.waitFor({ state: 'detached' })
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Trip planner' }).waitFor()
    assert.equal(new URL(page.url()).pathname, '/agents/trip_planner')
    await page.goto(`${server.polylog.baseUrl}/agents/nobody`)
    await page.getByText('There is no such agent').waitFor()
  })

  test('names the built-in agents and their operations in the language of the person', async (context) => {
    const page = await openAgents(context, '/agents', { user: someone() })
    if (page === null) return
    await page.getByRole('link', { name: /Title and summary/ }).waitFor()
    await page.getByRole('link', { name: /Archive and brief/ }).click()
    await page.getByRole('link', { name: 'Meeting brief' }).waitFor()
    await page.evaluate(() => localStorage.setItem('polylog.preferences', JSON.stringify({ language: 'zh' })))
    await page.reload()
    await page.getByRole('heading', { level: 1, name: /归档提取与会前简报/ }).waitFor()
    await page.getByRole('link', { name: '会前简报' }).waitFor()
  })

  test('of a server with one configuration, the arena says how to add another', async (context) => {
    const page = await openAgents(context, '/arena', { user: someone() })
    if (page === null) return
    await page.getByText('This server has one configuration only.').waitFor()
    await page.getByText(/curl -N .*\/api\/ab\/compare/).waitFor()
  })
})

describe('an agent', () => {
  test('gets its input from a form, says at the field what is wrong, and answers with fields and JSON', async (context) => {
    const user = someone()
    await server.provider.script([says(JSON.stringify(plan('By the sea')))], user)
    const page = await openAgents(context, '/agents/trip_planner', { user })
    if (page === null) return
    await page.getByText(/curl -s .*\/v1\/agent\/run/).waitFor()
    assert.equal(await page.getByRole('spinbutton', { name: 'days' }).inputValue(), '3')
    await run(page)
    const place = page.getByRole('textbox', { name: 'place' })
    await page.getByText('is missing').first().waitFor()
    assert.equal(await place.getAttribute('aria-invalid'), 'true')
    await place.and(page.locator(':focus')).waitFor()

    await fill(page, 'x')
    await page.getByRole('combobox', { name: 'pace' }).selectOption('slow')
    await page.getByRole('checkbox', { name: 'byTrain' }).check()
    await page.getByRole('textbox', { name: 'wishes' }).fill('a lighthouse\nfresh fish')
    await page.getByRole('textbox', { name: 'currency' }).fill('EUR')
    await page.getByRole('spinbutton', { name: 'amount' }).fill('-5')
    await page.getByRole('textbox', { name: 'notes' }).fill(`For ${user}`)
    await run(page)
    await page.getByText('must NOT have fewer than 2 characters').first().waitFor()
    await page.getByText('must be >= 0').waitFor()
    await picture(page, 'agents validation')
    assert.deepEqual(await seriousFindings(page), [])
    await place.fill('Rügen')
    await page.getByRole('spinbutton', { name: 'amount' }).fill('900')
    await page.keyboard.press('Control+Enter')

    await outcome(page).getByText('New result').waitFor()
    await page.getByText('By the sea').waitFor()
    await page.getByText('The old town').waitFor()
    const asked = JSON.stringify((await server.asked(user))[0]?.body)
    for (const part of ['Rügen', 'slow', 'lighthouse', 'EUR', 'Ann']) assert.ok(asked.includes(part), part)
    await page.getByText('This is the first snapshot').waitFor()
    assert.match(new URL(page.url()).search, /snapshot=/)
    await page.getByRole('button', { name: 'Raw JSON' }).click()
    await page.getByText('"estimatedCost": 1240').waitFor()
    await page.getByRole('button', { name: 'curl', exact: true }).click()
    await page.getByText(/"agentId":"trip_planner"/).waitFor()

    await page.reload()
    await page.getByText('By the sea').waitFor()
    await page.getByText('Stored result', { exact: true }).waitFor()
  })

  test('answers from the cache, runs again if it has to, and shows what changed', async (context) => {
    const user = someone()
    const answers = ['By the sea', 'By the lake', 'Not kept'].map((title) => says(JSON.stringify(plan(title))))
    await server.provider.script(answers, user)
    const page = await openAgents(context, '/agents/trip_planner', { user })
    if (page === null) return
    await fill(page, 'Rügen')
    await page.getByRole('textbox', { name: 'notes' }).fill(`For ${user}`)
    await run(page)
    await outcome(page).getByText('New result').waitFor()
    await run(page)
    await outcome(page).getByText('From the cache').waitFor()
    assert.equal((await server.asked(user)).length, 1)

    await page.getByRole('checkbox', { name: 'Run again in any case' }).check()
    await run(page)
    await page.getByText('By the lake').first().waitFor()
    await changes(page).getByText('title', { exact: true }).waitFor()
    assert.equal(await changes(page).locator('del').textContent(), 'sea')
    assert.equal(await changes(page).locator('ins').textContent(), 'lake')
    await page.locator('.bench-snapshot').nth(1).waitFor()
    assert.equal(await page.locator('.bench-snapshot').count(), 2)
    await picture(page, 'agents difference')
    assert.deepEqual(await seriousFindings(page), [])

    await page.getByRole('checkbox', { name: 'Use stored results' }).uncheck()
    const listIsReadAgain = page.waitForRequest('**/v1/agent/snapshots?*')
    const release = await holdRequests(page, '**/v1/agent/snapshots?*')
    await run(page)
    await page.getByText('Not kept').waitFor()
    await page.getByText('not stored', { exact: true }).waitFor()
    await listIsReadAgain
    assert.equal(await page.locator('.bench-snapshot').count(), 2, 'the list stays while it is read again')
    release()
    await page.locator('.bench-snapshot').last().click()
    await page.getByText('By the sea').waitFor()
  })

  test('is offered the conversations of the user, and lists of messages are filled in one by one', async (context) => {
    const user = someone()
    const { body } = await server.call('POST', '/v1/conversations', { user, body: { title: 'About plums' } })
    await server.provider.script([says(JSON.stringify({ title: 'Plums', summary: 'They are blue.' }))], user)
    const page = await openAgents(context, '/agents/title_summary', { user })
    if (page === null) return
    await page.locator(`datalist option[value="${body.id}"]`).waitFor({ state: 'attached' })
    await page.getByRole('combobox', { name: 'conversationId' }).fill(body.id)
    await page.getByRole('button', { name: 'Add an entry' }).click()
    await page.getByRole('button', { name: 'Add an entry' }).click()
    await page.getByRole('textbox', { name: 'content' }).first().fill('Never sent')
    await page.getByRole('textbox', { name: 'role' }).last().fill('user')
    await page.getByRole('textbox', { name: 'content' }).last().fill(`Are plums blue? ${user}`)
    await page.getByRole('button', { name: 'Remove entry 1' }).click()
    await run(page)
    await page.getByText('They are blue.').waitFor()
    const asked = JSON.stringify((await server.asked(user))[0]?.body)
    assert.ok(asked.includes('Are plums blue?') && !asked.includes('Never sent'))
  })

  test('without a schema takes JSON, also a turn of a chat', async (context) => {
    const user = someone()
    await server.provider.script([says('Good morning.')], user)
    const page = await openAgents(context, '/agents/chat_conversation', { user })
    if (page === null) return
    const input = page.getByRole('textbox', { name: 'Input as JSON' })
    await input.fill('{ "message": ')
    await run(page)
    await page.getByText('This is not JSON.').waitFor()
    await input.and(page.locator(':focus')).waitFor()
    await input.fill(JSON.stringify({ message: `Hello ${user}` }))
    await run(page)
    await page.getByText('Good morning.').first().waitFor()
    await page.getByText('not stored', { exact: true }).waitFor()
    assert.equal((await server.asked(user)).length, 1)
  })

  test('shows its result on a phone without a search for it', async (context) => {
    const user = someone()
    await server.provider.script([says(JSON.stringify(plan('By the sea')))], user)
    const page = await openAgents(context, '/agents/trip_planner', { user, size: 'phone' })
    if (page === null) return
    await fill(page, 'Rügen')
    await page.getByRole('textbox', { name: 'notes' }).fill(`For ${user}`)
    await run(page)
    await outcome(page).getByText('New result').waitFor()
    await until('the result to be on the screen', async () => {
      const box = await outcome(page).getByText('New result').boundingBox()
      return box !== null && box.y > 0 && box.y < 800 ? true : undefined
    })
    await picture(page, 'agents result after a run on a phone')
  })

  test('can be stopped, and a failure of the model is shown', async (context) => {
    const user = someone()
    await server.provider.script([hangsAfter('{'), [{ text: ['{'] }, { cut: true }]], user)
    const page = await openAgents(context, '/agents/trip_planner', { user })
    if (page === null) return
    await fill(page, 'Rügen')
    await page.getByRole('textbox', { name: 'notes' }).fill(`For ${user}`)
    await run(page)
    await server.askedTimes(user, 1)
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('The run was stopped.').waitFor()
    await run(page)
    await page.getByRole('alert').getByText('ai_provider_error').waitFor()
  })

  test('is stopped also if the server has not named the run yet', async (context) => {
    const user = someone()
    await server.provider.script([hangsAfter('{')], user)
    const page = await openAgents(context, '/agents/trip_planner', { user })
    if (page === null) return
    const release = await holdRequests(page, '**/v1/agent/run*')
    await fill(page, 'Rügen')
    await page.getByRole('textbox', { name: 'notes' }).fill(`For ${user}`)
    await run(page)
    const stop = page.getByRole('button', { name: 'Stop' })
    await stop.click()
    await stop.and(page.locator(':disabled')).waitFor()
    release()
    await page.getByText('The run was stopped.').waitFor()
  })

  test('does nothing to the page, however hostile its result is', async (context) => {
    const user = someone()
    const hostile =
      '<img src=x onerror="window.hacked=1">\n<script>window.hacked=2</script>\n[x](javascript:window.hacked=3) \u202Egnp.exe'
    const nasty = plan(hostile, { ['<b onclick=1>']: hostile, advice: hostile, deep: [[[[[[{ a: hostile }]]]]]] })
    await server.provider.script([says(JSON.stringify(nasty)), says(JSON.stringify(plan(`${hostile}!`)))], user)
    const page = await openAgents(context, '/agents/trip_planner', { user })
    if (page === null) return
    await fill(page, 'Rügen')
    await page.getByRole('textbox', { name: 'notes' }).fill(`For ${user}`)
    await run(page)
    await outcome(page).getByText('New result').waitFor()
    await page.getByRole('checkbox', { name: 'Run again in any case' }).check()
    await run(page)
    await changes(page).first().waitFor()
    await page.getByRole('button', { name: 'Tree' }).click()
    assert.equal(await page.evaluate('window.hacked'), undefined)
    assert.equal(await page.locator('a[href^="javascript"], .bench-outcome img').count(), 0)
  })
})

describe('every size and theme', () => {
  for (const [name, view] of Object.entries({
    'light on a desktop': {},
    'dark on a desktop': { theme: 'dark' },
    'light on a phone': { size: 'phone' },
    'dark on a phone, in Chinese': { size: 'phone', theme: 'dark', language: 'zh' },
  } satisfies Record<string, ConsoleView>)) {
    test(`${name}: cards, form and result fit, and axe finds nothing serious`, async (context) => {
      const user = someone()
      const titles = ['Three days by the sea', 'Three quiet days by the lake']
      await server.provider.script(
        titles.map((title) => says(JSON.stringify(plan(title)))),
        user,
      )
      const body = {
        agentId: 'trip_planner',
        userId: user,
        input: { place: 'Rügen', notes: user, travellers: [{ name: 'Ann' }] },
      }
      await server.call('POST', '/v1/agent/run', { body })
      const again = await server.call('POST', '/v1/agent/run', { body: { ...body, options: { forceRefresh: true } } })
      const page = await openAgents(context, '/agents', { user, ...view })
      if (page === null) return
      await page.locator('.agent-card').nth(5).waitFor()
      await picture(page, `agents ${name}`)
      await assertFits(page, view)
      await page.goto(`${server.polylog.baseUrl}/agents/trip_planner?snapshot=${again.body.snapshotId}`)
      await changes(page).first().waitFor()
      await picture(page, `agents result ${name}`)
      await assertFits(page, view)
      await page.goto(`${server.polylog.baseUrl}/agents/archive_brief`)
      await page.locator('.bench-empty').waitFor()
      await picture(page, `agents empty ${name}`)
      await assertFits(page, view)
    })
  }
})

async function assertFits(page: Page, { size }: ConsoleView): Promise<void> {
  // A phone has the same elements and colours.
  if (size !== 'phone') assert.deepEqual(await seriousFindings(page), [])
  const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
  assert.equal(overflow, 0, 'nothing is wider than the screen')
}
