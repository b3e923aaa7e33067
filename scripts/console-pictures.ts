// Takes the pictures of the console in docs/images: a real browser on a real server. Run it after a change that shows.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chromium, type Page } from 'playwright-core'
import { type ConsoleView, openConsolePage } from '../test/support/console-page.ts'
import { ensureConsole } from './ensure-console.ts'
import { ensureProgram } from './ensure-programs.ts'
import { blindQuestion, refundQuestion, startStory, user } from './picture-story.ts'

const folder = join(import.meta.dirname, '../docs/images')
/** A README is read over slow connections too. */
const bytesMax = 160 * 1024

const program = ensureProgram('chromium')
if ('missing' in program) throw new Error(program.missing)
await ensureConsole()
mkdirSync(folder, { recursive: true })
const story = await startStory()
const browser = await chromium.launch({ executablePath: program.path, args: ['--no-sandbox', '--disable-gpu'] })
try {
  for (const [question, answer] of [
    ['Which bulbs fit the brass desk lamp?', 'Any bulb with an **E27** socket, up to 40 W.'],
    ['Send me the invoice of October again', 'It is in your inbox: invoice `2026-1031`.'],
    ['Can I change the delivery address of order 1057?', 'Yes, until it is handed to the parcel service.'],
  ] as const) {
    await story.tell(question, answer)
  }
  await takePictures()
} finally {
  await browser.close()
  await story.close()
}

async function takePictures(): Promise<void> {
  const chat = await open('/')
  await chat.getByRole('textbox', { name: 'Message', exact: true }).fill(refundQuestion)
  await chat.keyboard.press('Enter')
  await chat.getByRole('button', { name: 'Approve' }).waitFor()
  await save(chat, 'console-chat')

  await chat.getByRole('button', { name: 'Approve' }).click()
  await chat.getByRole('button', { name: 'Copy the answer' }).waitFor()
  const runId = await story.newestRun()

  const run = await open(`/runs/${runId}`, { theme: 'dark' })
  await run.getByText('All rules kept').waitFor()
  await save(run, 'console-run')

  const wires = await open(`/wires/${runId}?seq=5`)
  await wires.getByText('tool-input-available').first().waitFor()
  await save(wires, 'console-wires')

  const arena = await open('/arena')
  await arena.getByRole('combobox', { name: 'One configuration' }).selectOption('brief')
  await arena.getByRole('combobox', { name: 'The other' }).selectOption('step by step')
  await arena.getByRole('textbox', { name: 'Question' }).fill(blindQuestion)
  await arena.keyboard.press('Enter')
  await arena.getByText('Vote, and both are revealed.').waitFor()
  await save(arena, 'console-arena')
}

async function open(path: string, view: ConsoleView = {}): Promise<Page> {
  const { page } = await openConsolePage(browser, `${story.polylog.baseUrl}${path}`, { user, ...view })
  return page
}

async function save(page: Page, name: string): Promise<void> {
  const path = join(folder, `${name}.png`)
  const image = await whenStill(page)
  writeFileSync(path, image)
  console.log(`${name}.png: ${Math.round(image.length / 1024)} KB`)
  if (image.length > bytesMax) throw new Error(`${path} has ${image.length} bytes; at most ${bytesMax} are wanted`)
}

/** Lists measure their rows after they have drawn them: the picture is taken when two in a row are the same. */
async function whenStill(page: Page): Promise<Buffer> {
  let last = await page.screenshot()
  for (;;) {
    const next = await page.screenshot()
    if (next.equals(last)) return next
    last = next
  }
}
