// The console in a real Chromium, for tests: one browser per process, and a page of its own for each test. Every page
// records what must not happen on any of them: errors of scripts, refusals of the content security policy, and requests
// to other hosts.

import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, type TestContext } from 'node:test'
import { AxeBuilder } from '@axe-core/playwright'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { ensureConsole } from '../../scripts/ensure-console.ts'
import { ensureProgram } from '../../scripts/ensure-programs.ts'

export type ConsoleView = {
  /** Whose console it is; an open server believes it. */
  user?: string
  theme?: 'light' | 'dark'
  language?: 'en' | 'zh'
  /** `phone`: 390 px wide, with touch. */
  size?: 'desktop' | 'phone'
}

export type ConsolePage = {
  page: Page
  /** What must not happen; empty on a good page. */
  problems: string[]
}

export type ConsoleBrowser = {
  /** Null if there is no browser on this machine; the test is then skipped. Fails at its end if the page had problems. */
  open(context: TestContext, address: string, view?: ConsoleView): Promise<ConsolePage | null>
}

/** On a busy machine the first page takes long. */
const shownWithinMs = 30_000
/** Set it to a folder to get pictures. */
const picturesFolder = process.env['POLYLOG_TEST_PICTURES'] ?? ''

/** Started by the first test that opens a page, and closed after the last test file that uses it. */
let started: Promise<Browser> | undefined
let users = 0

/** One browser for all tests of a process. */
export function sharedConsoleBrowser(): ConsoleBrowser {
  users += 1
  after(async () => {
    users -= 1
    if (users > 0) return
    const last = started
    started = undefined
    await (await last)?.close()
  })
  return {
    async open(context, address, view = {}) {
      const program = ensureProgram('chromium')
      if ('missing' in program) {
        context.skip(program.missing)
        return null
      }
      started ??= ensureConsole().then(() =>
        chromium.launch({ executablePath: program.path, args: ['--no-sandbox', '--disable-gpu'] }),
      )
      const opened = await openConsolePage(await started, address, view)
      context.after(async () => {
        await opened.page.context().close()
        assert.deepEqual(opened.problems, [])
      })
      return opened
    },
  }
}

/** For scripts; tests use `sharedConsoleBrowser`. */
export async function openConsolePage(browser: Browser, address: string, view: ConsoleView): Promise<ConsolePage> {
  const { user, theme = 'light', language = 'en', size = 'desktop' } = view
  const context: BrowserContext = await browser.newContext({
    viewport: size === 'phone' ? { width: 390, height: 844 } : { width: 1280, height: 800 },
    hasTouch: size === 'phone',
    colorScheme: theme,
    reducedMotion: 'reduce',
    locale: language === 'zh' ? 'zh-CN' : 'en-GB',
  })
  context.setDefaultTimeout(shownWithinMs)
  if (user !== undefined) {
    await context.addInitScript((name) => localStorage.setItem('polylog.user', name), user)
  }
  const page = await context.newPage()
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(`script error: ${error.message}`))
  page.on('console', (message) => {
    // Answers of the server that are errors are shown by the page itself.
    if (message.type() === 'error' && !/Failed to load resource/.test(message.text())) problems.push(message.text())
  })
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url())
    if (protocol !== 'blob:' && origin !== new URL(page.url() === 'about:blank' ? address : page.url()).origin)
      problems.push(`request to another host: ${request.url()}`)
  })
  await page.goto(address)
  await page.locator('.shell-page').waitFor()
  return { page, problems }
}

/** The findings of axe that keep people from using the page. */
export async function seriousFindings(page: Page): Promise<string[]> {
  const axe = new AxeBuilder({ page })
    // Only they are looked at, and what passes is most of the work.
    .options({ resultTypes: ['violations'] })
    // Without it, the results of all frames are put together in a page of their own. The console has no frames.
    .setLegacyMode(true)
  const { violations } = await axe.analyze()
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary ?? ''}`))
}

/** Writes a picture of the page, if pictures are wanted. */
export async function picture(page: Page, name: string): Promise<void> {
  if (picturesFolder === '') return
  mkdirSync(picturesFolder, { recursive: true })
  await page.screenshot({ path: join(picturesFolder, `${name}.png`) })
}

/** Holds the requests to the address until the returned function is called. */
export async function holdRequests(page: Page, address: string): Promise<() => void> {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  await page.route(address, async (route) => {
    await released
    await route.continue()
  })
  return release
}
