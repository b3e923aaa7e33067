// The jobs of the console in a real Chromium: skills, the form of an input schema, uploads, questions, results and files.

import assert from 'node:assert/strict'
import { readFileSync, rmSync } from 'node:fs'
import { after, describe, test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { type ConsoleView, picture, seriousFindings, sharedConsoleBrowser } from '../support/console-page.ts'
import { asks, errand, skillsFolder, writeSkill } from '../support/jobs.ts'
import { calls, hangsAfter, type Json, says, sharedTestServer, someone } from '../support/test-server.ts'

const folder = skillsFolder()
const runnerCard = { id: 'survey', name: 'Survey', version: '2.1.0', execution_modes: ['interactive', 'auto'] }
writeSkill(folder, 'survey', {
  ...errand(),
  'SKILL.md': '---\nname: survey\ndescription: Asks a few things and writes a report.\n---\nDo the survey.',
  'assets/runner.json': JSON.stringify({
    ...runnerCard,
    schemas: { input: 'assets/input.json', parameter: 'assets/parameter.json', output: 'assets/any.json' },
  }),
  'assets/input.json': JSON.stringify({
    type: 'object',
    properties: {
      topic: { type: 'string', description: 'What the survey is about.' },
      size: { enum: ['small', 'large'] },
      people: { type: 'integer', minimum: 1, maximum: 10 },
      tags: { type: 'array', items: { type: 'string' } },
      place: { type: 'object', properties: { city: { type: 'string' } } },
    },
    required: ['topic', 'size'],
    additionalProperties: false,
  }),
  'assets/parameter.json': JSON.stringify({
    type: 'object',
    properties: { verbose: { type: 'boolean', description: 'Write more.' } },
  }),
})
const server = sharedTestServer({ POLYLOG_SKILLS_DIR: folder, POLYLOG_UPLOAD_MAX: '4096' })
const consoleBrowser = sharedConsoleBrowser()
after(() => rmSync(folder, { recursive: true, force: true }))

async function openJobs(context: TestContext, user: string, view: ConsoleView = {}, path = ''): Promise<Page | null> {
  const opened = await consoleBrowser.open(context, `${server.polylog.baseUrl}/jobs${path}`, { user, ...view })
  return opened?.page ?? null
}

const jobsOf = async (user: string) => (await server.call('GET', '/v1/jobs', { user })).body.jobs as Json[]
const list = (page: Page) => page.getByRole('region', { name: 'Your jobs' }).getByRole('listitem')
const view = (page: Page, name: string) => page.getByRole('navigation', { name: 'Views of the job' }).getByText(name)

describe('a job', () => {
  test('is started from the form of its skill, asks, and ends with a result and a file', async (context) => {
    const user = someone()
    await server.provider.script(
      [
        asks({ question: 'How many?', kind: 'choose_one', options: ['one', 'two'] }),
        calls(['save_artifact', { path: 'notes/report.md', content: '# Report\nTwo.' }]),
        says('{"answer": "two", "list": [1, 2, 3]}'),
      ],
      user,
    )
    const page = await openJobs(context, user)
    if (page === null) return
    await page.getByText('curl -s').filter({ hasText: user }).waitFor()
    await page.getByText('Not usable').first().waitFor()
    await picture(page, 'jobs-skills')
    assert.deepEqual(await seriousFindings(page), [])

    await page.getByRole('link', { name: 'Survey' }).click()
    const form = page.getByRole('form', { name: 'Survey' })
    await form.getByRole('textbox', { name: 'topic' }).fill(`Tea ${user}`)
    await form.getByRole('button', { name: 'Start the job' }).click()
    assert.deepEqual(await jobsOf(user), [], 'a required field is empty, so nothing was sent')
    await form.getByRole('combobox', { name: 'size' }).selectOption('large')
    await form.getByRole('spinbutton', { name: 'people' }).fill('3')
    await form.getByRole('textbox', { name: 'tags' }).fill('a\nb\n')
    await form.getByRole('textbox', { name: 'city' }).fill('Berlin')
    await form.getByRole('checkbox', { name: 'verbose' }).check()
    await picture(page, 'jobs-form')
    assert.deepEqual(await seriousFindings(page), [])
    await form.getByRole('button', { name: 'Start the job' }).click()

    const question = page.getByRole('group', { name: 'Question' })
    await question.getByText('How many?').waitFor()
    await list(page).filter({ hasText: 'Waiting for you' }).waitFor()
    await picture(page, 'jobs-question')
    assert.deepEqual(await seriousFindings(page), [])
    const [asked] = await server.asked(user)
    const prompt = JSON.stringify(asked?.body.messages)
    for (const part of ['large', '3', 'Berlin', 'verbose']) assert.ok(prompt.includes(part), part)

    await page.keyboard.press('2')
    await list(page).filter({ hasText: 'Done' }).waitFor()
    await view(page, 'Result').click()
    const result = page.getByRole('group', { name: 'Result' })
    await result.getByText('two', { exact: true }).waitFor()
    await picture(page, 'jobs-result')
    assert.deepEqual(await seriousFindings(page), [])

    await view(page, 'Activity').click()
    await page.getByRole('region', { name: 'Tool save_artifact' }).waitFor()
    await view(page, 'Log').click()
    await page.getByText('"answer": "two"').waitFor()
    await view(page, 'Files').click()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download artifacts/notes/report.md' }).click(),
    ])
    assert.equal(download.suggestedFilename(), 'report.md')
    assert.equal(readFileSync(await download.path(), 'utf8'), '# Report\nTwo.')
    const [bundle] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download all as zip' }).click(),
    ])
    assert.match(readFileSync(await bundle.path(), 'latin1'), /^PK.*result\.json/s)
    await picture(page, 'jobs-files')

    await page.getByRole('button', { name: 'Remove ended jobs' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove ended jobs' }).click()
    await page.getByText('1 job was removed.').waitFor()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    assert.deepEqual(await jobsOf(user), [])
  })

  test('gets its files, and says what the server refuses until the input is right', async (context) => {
    const user = someone()
    await server.provider.script([calls(['read_job_file', { path: 'notes.txt' }]), says('Read it.')], user)
    const page = await openJobs(context, user, {}, '/new/needs-file')
    if (page === null) return
    const form = page.getByRole('form', { name: 'needs-file' })
    await form.getByRole('textbox', { name: 'what' }).fill(user)
    const choose = (text: string) =>
      form.getByLabel('notes').setInputFiles({ name: 'minutes.txt', mimeType: 'text/plain', buffer: Buffer.from(text) })
    await choose('too long '.repeat(1000))
    await form.getByText('minutes.txt').waitFor()
    await form.getByRole('button', { name: 'Start the job' }).click()
    await form.getByRole('alert').waitFor()
    await picture(page, 'jobs-refused')
    await choose('Ann brings the tea.')
    await form.getByRole('button', { name: 'Start the job' }).click()
    await list(page).filter({ hasText: 'Done' }).waitFor()
    assert.equal((await jobsOf(user)).length, 1, 'only the upload was sent again')
    await view(page, 'Log').click()
    await page.getByText('Ann brings the tea.', { exact: false }).waitFor()
    await page.getByText('Read it.').waitFor()
  })

  test('is cancelled, and ended jobs are removed', async (context) => {
    const user = someone()
    await server.provider.script([hangsAfter('Working on it')], user)
    const page = await openJobs(context, user, {}, '/new/errand')
    if (page === null) return
    const form = page.getByRole('form', { name: 'errand' })
    await form.getByRole('textbox', { name: 'Input' }).fill(JSON.stringify({ what: user }))
    await form.getByRole('button', { name: 'Start the job' }).click()
    await page.getByText('Working on it').waitFor()
    await page.getByRole('button', { name: 'Cancel the job' }).click()
    await list(page).filter({ hasText: 'Stopped' }).waitFor()
    await page.getByRole('button', { name: 'Remove ended jobs' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove ended jobs' }).click()
    await page.getByText('1 job was removed.').waitFor()
    await page.getByText('No job yet.').waitFor()
  })

  test('does nothing that a hostile result asks for, also dark and on a phone', async (context) => {
    const user = someone()
    const hostile = '<img src=x onerror="window.hacked = 1"> \u202Egnp.exe'
    await server.provider.script(
      [
        calls(['save_artifact', { path: 'report.html', content: '<script>window.hacked = 2</script>' }]),
        says(`# ${hostile}\n\n[x](javascript:window.hacked=3)`),
      ],
      user,
    )
    const body = { skill_id: 'plain', input: { what: user } }
    const created = await server.call('POST', '/v1/jobs', { user, body })
    const id = String(created.body.request_id)
    await server.reaches(user, id, 'succeeded')
    const page = await openJobs(context, user, { theme: 'dark', size: 'phone' }, `/${id}/result`)
    if (page === null) return
    await page.getByText('⟦U+202E⟧', { exact: false }).first().waitFor()
    await picture(page, 'jobs-phone-dark')
    assert.deepEqual(await seriousFindings(page), [])
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
    await view(page, 'Files').click()
    await page.getByText('artifacts/report.html').waitFor()
    assert.equal(await page.evaluate('window.hacked'), undefined)
    assert.equal(await page.locator('main img, main script').count(), 0)
    await page.getByRole('link', { name: 'All jobs' }).click()
    await list(page).first().waitFor()
    await picture(page, 'jobs-phone-list')
    await page.getByRole('button', { name: 'New job' }).click()
    await page.getByRole('link', { name: 'Survey' }).click()
    await page.getByRole('form', { name: 'Survey' }).waitFor()
    await picture(page, 'jobs-phone-form')
    assert.deepEqual(await seriousFindings(page), [])
  })
})
