// The page of a run and the list of runs in a real Chromium, on the real server, with a fake provider.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { type ConsoleView, picture, seriousFindings, sharedConsoleBrowser } from '../support/console-page.ts'
import { changeJournal } from '../support/test-database.ts'
import { calls, type Json, runIdOf, says, sharedTestServer, someone } from '../support/test-server.ts'

const server = sharedTestServer()
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
const seqIs = (page: Page, seq: number) =>
  page.locator('.scrubber-moment strong').getByText(String(seq), { exact: true }).waitFor()
const pane = (page: Page, name: string) => page.getByRole('tabpanel', { name, exact: true })
const events = (page: Page) => pane(page, 'Events').getByRole('listitem')

/** The number in the journal of the first event of this type. */
async function seqOf(runId: string, user: string, fits: (event: Json) => boolean): Promise<number> {
  const { body } = await server.call('GET', `/v1/agent/runs/${runId}/events`, { user })
  return (body.events as Json[]).find(fits)?.seq ?? 0
}

describe('the page of a run', () => {
  test('shows a waterfall and the conversation, linked; every moment has an address that shows it again', async (context) => {
    const user = someone()
    const runId = await fullRun(user)
    const page = await openPage(context, `/runs/${runId}`, user)
    if (page === null) return
    const waterfall = pane(page, 'Waterfall')
    const conversation = pane(page, 'Conversation')
    await page.getByText('All rules kept').waitFor()
    await conversation.getByText('Milk is noted').waitFor()
    for (const name of [/^States of the run/, /^Model openai\/fake/, /^Tool current_time/, /^Tool remember_note/]) {
      await waterfall.getByRole('button', { name }).first().waitFor()
    }
    assert.ok(
      (await waterfall.locator('.waterfall-bar-waiting').count()) >= 2,
      'the run and its tool wait for a person',
    )
    assert.equal(await waterfall.locator('.waterfall-token').count(), 3, 'each request to the model has a first token')
    await picture(page, 'run-light')
    assert.deepEqual(await seriousFindings(page), [])

    // A line of the waterfall leads to its moment: the conversation is what it was then.
    await waterfall.getByRole('button', { name: /^Tool remember_note/ }).click()
    const called = await seqOf(runId, user, ({ type, data }) => type === 'tool.called' && data.name === 'remember_note')
    await seqIs(page, called)
    await conversation.getByText('Milk is noted').waitFor({ state: 'detached' })
    await page.waitForURL(new RegExp(`\\?seq=${called}$`))
    await page.reload()
    await seqIs(page, called)
    await conversation.getByRole('region', { name: 'Tool remember_note' }).getByText('Queued').waitFor()

    // And a block of the conversation to the event that it began with.
    await page.keyboard.press('l')
    await conversation.getByText('Milk is noted').waitFor()
    await conversation
      .getByRole('button', { name: /^Go to event/ })
      .nth(1)
      .click()
    const first = await seqOf(runId, user, ({ type }) => type === 'tool.called')
    await seqIs(page, first)
  })

  test('is stepped through by keyboard: events, errors, views; the fold of each moment is that of the live view', async (context) => {
    const user = someone()
    const runId = await fullRun(user)
    const page = await openPage(context, `/runs/${runId}?seq=2`, user)
    if (page === null) return
    await seqIs(page, 2)
    await page.keyboard.press('ArrowRight')
    await seqIs(page, 3)
    await page.getByRole('status').getByText('Event 3: ').waitFor({ state: 'attached' })
    await page.keyboard.press('ArrowLeft')
    await seqIs(page, 2)
    await page.keyboard.press('e')
    const failed = await seqOf(runId, user, ({ type, data }) => type === 'tool.done' && data.outcome !== 'succeeded')
    await seqIs(page, failed)
    await pane(page, 'Conversation')
      .getByRole('region', { name: 'Tool read_tool_output' })
      .getByText('Failed')
      .waitFor()
    await page.keyboard.press('v')
    await pane(page, 'Events').locator('[aria-current=true]').getByText('tool.done').waitFor()
    await moment(page).focus()
    await page.keyboard.press('End')
    await pane(page, 'Conversation').getByText('Milk is noted').waitFor()
    await page.keyboard.press('Home')
    await seqIs(page, 1)
    await pane(page, 'Conversation').getByText('Nothing has been said yet').waitFor()
    // Without the focus in a field, the palette and the list of keys work too.
    await page.getByRole('tab', { name: 'Events' }).focus()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).getByText('Next error').waitFor()
  })

  test('replays at the speed of the run and four times as fast, and pauses', async (context) => {
    const user = someone()
    await server.provider.script(
      [
        [
          { text: ['one '] },
          { delayMs: 700 },
          { text: ['two '] },
          { delayMs: 700 },
          { text: ['three'] },
          { finish: 'stop' },
        ],
      ],
      user,
    )
    const stream = await server.chat(user, `Slowly ${user}`)
    await stream.ended()
    const page = await openPage(context, `/runs/${runIdOf(stream)}?seq=1`, user)
    if (page === null) return
    await seqIs(page, 1)
    await page.getByRole('button', { name: '4×' }).click()
    await page.getByRole('button', { name: 'Replay', exact: true }).click()
    // The moments come one after the other, each with the text of its time.
    const conversation = pane(page, 'Conversation')
    await conversation.getByText('one two three', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Replay', exact: true }).waitFor()

    await page.getByRole('button', { name: '1×' }).click()
    await page.getByRole('button', { name: 'Replay', exact: true }).click()
    await conversation.getByText('one', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('button', { name: 'Replay', exact: true }).waitFor()
    await page.keyboard.press('l')
    await conversation.getByText('one two three', { exact: true }).waitFor()
  })

  test('filters and searches its events; the address holds the filter, and the raw event can be read', async (context) => {
    const user = someone()
    const runId = await fullRun(user)
    const page = await openPage(context, `/runs/${runId}?view=events`, user)
    if (page === null) return
    await events(page).filter({ hasText: 'run.accepted' }).waitFor()
    await page.getByRole('button', { name: 'Tools', exact: true }).click()
    await events(page).filter({ hasText: 'run.accepted' }).waitFor({ state: 'detached' })
    // The list is drawn again after the filter is set, so its rows may come later than the others go.
    await events(page).filter({ hasText: 'tool.' }).nth(5).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('milk')
    await page.getByText(/^\d of \d\d$/).waitFor()
    await events(page).filter({ hasText: 'current_time' }).waitFor({ state: 'detached' })
    await page.waitForURL(/view=events&q=milk&groups=tool/)
    await page.reload()
    await events(page).filter({ hasText: 'remember_note' }).first().click()
    await page.getByRole('tab', { name: 'Event', exact: true }).click()
    const detail = pane(page, 'Event')
    await detail.getByText('tool.called').waitFor()
    await detail.getByText('event: tool.state').waitFor()
    await picture(page, 'run-events')
    assert.deepEqual(await seriousFindings(page), [])

    await page.getByRole('searchbox', { name: 'Search in events' }).fill('no event has this')
    await page.getByText('No event fits this filter.').waitFor()
    await page.getByRole('button', { name: 'Clear the filter' }).click()
    await events(page).filter({ hasText: 'run.accepted' }).waitFor()
  })

  test('follows a run that is at work, and a decision can be made on it', async (context) => {
    const user = someone()
    await server.provider.script(
      [[{ text: ['begins '] }, { stall: true }, ...calls(['remember_note', { text: 'milk' }])], says('All is noted.')],
      user,
    )
    const stream = await server.chat(user, `Live ${user}`)
    await stream.waitFor(({ event }) => event === 'agent.delta')
    const page = await openPage(context, `/runs/${runIdOf(stream)}`, user)
    if (page === null) return
    const conversation = pane(page, 'Conversation')
    await conversation.getByText('begins').waitFor()
    await page.locator('.run-head').getByText('Live', { exact: true }).waitFor()
    await server.provider.release()
    await conversation.getByRole('button', { name: 'Approve' }).click()
    await conversation.getByText('All is noted.').waitFor()
    await page.getByText('Done').first().waitFor()
    // In the past it cannot be made again.
    await pane(page, 'Waterfall')
      .getByRole('button', { name: /^Tool remember_note/ })
      .click()
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('ArrowRight')
    await conversation.getByRole('region', { name: 'Tool remember_note' }).getByText('Waiting for you').waitFor()
    assert.equal(await conversation.getByRole('button', { name: 'Approve' }).count(), 0)
  })

  test('is followed in more tabs than there are places for streams', async (context) => {
    const user = someone()
    await server.provider.script(
      [[{ text: ['begins '] }, { stall: true }, { text: ['and ends'] }, { finish: 'stop' }]],
      user,
    )
    const stream = await server.chat(user, `Tabs ${user}`)
    await stream.waitFor(({ event }) => event === 'agent.delta')
    const first = await openPage(context, `/runs/${runIdOf(stream)}`, user)
    if (first === null) return
    const tabs = [first]
    for (let tab = 1; tab < 5; tab++) {
      const page = await first.context().newPage()
      await page.goto(first.url())
      tabs.push(page)
    }
    for (const page of tabs) await pane(page, 'Conversation').getByText('begins').waitFor()
    const { text } = await server.call('GET', '/metrics')
    const open = /^polylog_stream_connections\{[^}]*"journal"[^}]*\} (\d+)/m.exec(text)?.[1]
    assert.ok(Number(open) <= 3, `${open} streams`)
    await server.provider.release()
    for (const page of tabs) await pane(page, 'Conversation').getByText('begins and ends').waitFor()
  })

  test('is exported as JSON with every event of the journal', async (context) => {
    const user = someone()
    const runId = await fullRun(user)
    const page = await openPage(context, `/runs/${runId}`, user)
    if (page === null) return
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export as JSON' }).click()
    const file = await (await download).path()
    const saved = JSON.parse(readFileSync(file, 'utf8')) as Json
    const { body } = await server.call('GET', `/v1/agent/runs/${runId}/events`, { user })
    assert.deepEqual(saved.events, body.events)
    assert.equal(saved.run.runId, runId)
    assert.equal(saved.invariants.kept, true)
    await page.getByText(/^Exported \d+ events$/).waitFor()
  })

  test('hostile questions, answers and tool calls do nothing', async (context) => {
    const user = someone()
    const hostile = `<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>[a](javascript:window.hacked=3) \u202Egnp.exe`
    await server.provider.script([calls([`current_time`, { [hostile]: hostile }]), says(hostile)], user)
    const stream = await server.chat(user, `${hostile} ${user}`)
    await stream.ended()
    const page = await openPage(context, `/runs/${runIdOf(stream)}`, user)
    if (page === null) return
    await page.getByRole('heading', { level: 1 }).getByText('⟦U+202E⟧gnp.exe').waitFor()
    await page.keyboard.press('v')
    await page.getByRole('tab', { name: 'Event', exact: true }).click()
    for (const index of [0, 4]) {
      await events(page).nth(index).click()
      assert.equal(await page.locator('.run-page :is(img, script, iframe, [onerror], a[href^=javascript])').count(), 0)
    }
    await page.getByRole('tab', { name: 'Conversation' }).click()
    await page.keyboard.press('l')
    await pane(page, 'Conversation').getByText('window.hacked').first().waitFor()
    assert.equal(await page.evaluate('window.hacked'), undefined)
  })

  test('is usable at phone width and in Chinese, and axe finds nothing serious in the dark', async (context) => {
    const user = someone()
    const runId = await fullRun(user)
    const page = await openPage(context, `/runs/${runId}`, user, { size: 'phone', theme: 'dark', language: 'zh' })
    if (page === null) return
    await pane(page, '瀑布图')
      .getByRole('button', { name: /current_time/ })
      .waitFor()
    assert.ok(await page.evaluate('document.documentElement.scrollWidth <= 390'), 'nothing sticks out')
    for (const name of ['事件', '对话', '规则'] as const) {
      await page.getByRole('tab', { name, exact: true }).first().click()
      await picture(page, `run-phone-${name}`)
      assert.deepEqual(await seriousFindings(page), [])
    }
    await page.getByText('所有规则均满足').last().waitFor()
  })

  test('of another user, or of no one, is not shown', async (context) => {
    const runId = await fullRun(someone())
    const page = await openPage(context, `/runs/${runId}`, someone())
    if (page === null) return
    await page.getByText('There is no such run').waitFor()
    await page.getByRole('link', { name: 'All runs' }).click()
    await page.getByText('No runs yet').waitFor()
  })
})

describe('the list of runs', () => {
  test('is empty with the exact call to make, grows and changes live, and is filtered in the address', async (context) => {
    const user = someone()
    const page = await openPage(context, '/runs', user)
    if (page === null) return
    await page.getByText(`"userId":"${user}"`).waitFor()
    assert.deepEqual(await seriousFindings(page), [])
    await server.provider.script([[{ text: ['begins '] }, { stall: true }, { finish: 'stop' }]], `slow ${user}`)
    const slow = await server.chat(user, `slow ${user}`)
    const line = page.getByRole('row').filter({ hasText: `slow ${user}` })
    await line.getByText('Running').waitFor()
    await server.provider.release()
    await line.getByText('Done').waitFor()
    await slow.ended()
    await server.provider.script([[{ status: 400, body: { error: { message: 'no' } } }]], `bad ${user}`)
    const bad = await server.chat(user, `bad ${user}`)
    await bad.ended()
    await page
      .getByRole('row')
      .filter({ hasText: `bad ${user}` })
      .getByText('Failed')
      .waitFor()
    await page.getByRole('button', { name: 'Failed' }).click()
    await page.waitForURL(/\?status=failed$/)
    await line.waitFor({ state: 'detached' })
    await picture(page, 'runs-list')
    assert.deepEqual(await seriousFindings(page), [])
    await page.getByRole('link', { name: `bad ${user}` }).click()
    await page.getByRole('heading', { name: `bad ${user}` }).waitFor()
    await page.getByText('1 error').waitFor()
  })

  test('an answer of the chat leads to its run', async (context) => {
    const user = someone()
    await server.provider.script([says('Here it is.')], user)
    const page = await openPage(context, '/chat', user)
    if (page === null) return
    await page.getByRole('textbox', { name: 'Message', exact: true }).fill(`Go ${user}`)
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Show the run' }).click()
    await page.getByRole('heading', { name: `Go ${user}` }).waitFor()
    await pane(page, 'Conversation').getByText('Here it is.').waitFor()
  })
})

// The last test: it starts the server again.
test('a run that breaks a rule says so, with the event that does', async (context) => {
  const user = someone()
  const runId = await fullRun(user)
  await server.polylog.stop()
  await changeJournal(server.polylog.dataDir, runId, (line) =>
    line
      .replace('"tool.done"', '"diagnostic"')
      .replace(/("diagnostic".*)"outcome":"succeeded"/, '$1"code":"x","message":"y"'),
  )
  await server.restart()
  const page = await openPage(context, `/runs/${runId}`, user)
  if (page === null) return
  await page.getByRole('button', { name: /rules? broken/ }).click()
  const rules = pane(page, 'Rules')
  const offence = rules.getByRole('button', { name: /^seq \d+$/ }).first()
  const seq = Number(((await offence.textContent()) ?? '').slice(4))
  await offence.click()
  await seqIs(page, seq)
  await picture(page, 'run-rules-broken')
  assert.deepEqual(await seriousFindings(page), [])
})
