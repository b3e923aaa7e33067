// The page of wires in a real Chromium, on the real server, with a fake provider.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { formatDialects } from '../../src/http/formats.ts'
import { type ConsoleView, picture, seriousFindings, sharedConsoleBrowser } from '../support/console-page.ts'
import { calls, runIdOf, says, sharedTestServer, someone } from '../support/test-server.ts'

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

async function runOf(user: string, text = 'It is late.'): Promise<string> {
  await server.provider.script([calls(['current_time', {}]), says(text)], user)
  const stream = await server.chat(user, `What time is it, ${user}`)
  await stream.ended()
  return runIdOf(stream)
}

/** The text of the frames of one column, in the order of the events. */
async function columnText(page: Page, column: number): Promise<string[]> {
  return await page
    .locator(`.wire-row:not(.wire-header-row) .wire-cell:nth-child(${column + 2}) .wire-frame`)
    .allTextContents()
}

test('a run is shown in the chosen dialects side by side, with the bytes that each of them sends', async (context) => {
  const user = someone()
  const runId = await runOf(user)
  const page = await openPage(context, `/wires/${runId}?wires=vercel-ai,session`, user)
  if (page === null) return
  await page.getByRole('heading', { name: 'AI SDK 4' }).waitFor()
  await page.getByText('The stream ends here').first().waitFor()
  for (const [column, format] of ['session', 'vercel-ai'].entries()) {
    const { text } = await server.call('GET', `/v1/agent/runs/${runId}/stream?format=${format}`, { user })
    const sent = text.split(format === 'session' ? '\n\n' : '\n').filter((frame) => frame !== '')
    const shown: string[] = (await columnText(page, column)).map((frame) => frame.replace(/…All \d+ characters$/, ''))
    assert.equal(shown.length, sent.length, format)
    for (const [index, frame] of shown.entries()) assert.ok(sent[index]?.startsWith(frame), frame)
  }

  await page.getByText('2 dialects').click()
  await page.getByRole('checkbox', { name: 'OpenAI Responses' }).check()
  await page.getByRole('checkbox', { name: 'Session' }).uncheck()
  await page.keyboard.press('Escape')
  await page.getByText('response.output_text.delta').first().waitFor()
  await page.waitForURL(/wires=openai-responses%2Cvercel-ai/)
  await page.reload()
  await page.getByRole('heading', { name: 'OpenAI Responses' }).waitFor()
  await page.getByText('response.output_text.delta').first().waitFor()
  await picture(page, 'wires')
  assert.deepEqual(await seriousFindings(page), [])
})

test('the frames are searched, a row has an address and leads to its moment, and a dialect is copied as curl', async (context) => {
  const user = someone()
  const runId = await runOf(user)
  const page = await openPage(context, `/wires/${runId}`, user)
  if (page === null) return
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.getByRole('searchbox', { name: 'Search in frames' }).fill('tool-output-available')
  await page.getByText(/^1 of \d+$/).waitFor()
  await page.getByText('run.accepted').waitFor({ state: 'detached' })
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  await page.waitForURL(/seq=3$/)
  await page.reload()
  await page.locator('.wire-row[data-current=true]').getByText('run.state').waitFor()

  await page.getByRole('button', { name: 'Copy the call for AI SDK 6+ as curl' }).click()
  const copied = String(await page.evaluate('navigator.clipboard.readText()'))
  const address = /'(http[^']+)'/.exec(copied)?.[1] ?? ''
  assert.match(copied, /^curl -N /)
  const answer = await fetch(address)
  assert.match(await answer.text(), /"type":"finish"/)

  await page.getByRole('link', { name: 'Event 3: show this moment of the run' }).click()
  await page.waitForURL(new RegExp(`/runs/${runId}\\?seq=3$`))
  await page.getByRole('slider', { name: 'Moment of the run' }).waitFor()
})

test('a run that is at work grows in every column over one connection, and hostile text does nothing', async (context) => {
  const user = someone()
  const hostile = '<img src=x onerror="window.hacked=1">\u202Egnp.exe'
  await server.provider.script(
    [[{ text: ['begins '] }, { stall: true }, { text: [hostile, ' and ends'] }, { finish: 'stop' }]],
    user,
  )
  const stream = await server.chat(user, `Live ${user}`)
  await stream.waitFor(({ event }) => event === 'agent.delta')
  const streams: string[] = []
  const page = await openPage(context, '/runs', user)
  if (page === null) return
  page.on('request', (request) => streams.push(new URL(request.url()).pathname))
  await page.goto(
    `${server.polylog.baseUrl}/wires/${runIdOf(stream)}?wires=sse,ui-message,openai-chat,ag-ui,fcmp,session`,
  )
  await page.getByText('Live', { exact: true }).waitFor()
  await page.getByText('begins').first().waitFor()
  await server.provider.release()
  await page.getByText('and ends').last().waitFor()
  await page.getByText('Complete', { exact: true }).waitFor()
  assert.equal(streams.filter((path) => path.endsWith('/stream')).length, 1)
  await page.getByText('⟦U+202E⟧gnp.exe').first().waitFor()
  assert.equal(await page.locator('.wires :is(img, script)').count(), 0)
  assert.equal(await page.evaluate('window.hacked'), undefined)
})

test('without a run the page offers the newest ones and describes every dialect of the server', async (context) => {
  const user = someone()
  const page = await openPage(context, '/wires', user, { theme: 'dark', size: 'phone' })
  if (page === null) return
  await page.getByText(`"userId":"${user}"`).waitFor()
  for (const format of Object.keys(formatDialects)) {
    await page.locator('.wires-dialect code').getByText(format, { exact: true }).waitFor()
  }
  assert.deepEqual(await seriousFindings(page), [])
  const runId = await runOf(user)
  await page.reload()
  await page.getByRole('link', { name: /What time is it/ }).click()
  await page.waitForURL(new RegExp(`/wires/${runId}$`))
  await page.getByRole('heading', { name: 'Native' }).waitFor()
  await picture(page, 'wires-phone')
  assert.ok(await page.evaluate('document.documentElement.scrollWidth <= 390'), 'nothing sticks out')
  assert.deepEqual(await seriousFindings(page), [])
})
