// The contacts of the console in a real Chromium: list, search and pages, import with its report, export, and one
// contact with its records and its brief.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { type ConsoleView, picture, seriousFindings, sharedConsoleBrowser } from '../support/console-page.ts'
import { type Json, says, sharedTestServer, someone } from '../support/test-server.ts'

const server = sharedTestServer()
const consoleBrowser = sharedConsoleBrowser()

async function openContacts(context: TestContext, user: string, path = '', view: ConsoleView = {}) {
  const opened = await consoleBrowser.open(context, `${server.polylog.baseUrl}/contacts${path}`, { user, ...view })
  return opened?.page ?? null
}

const call = (method: string, path: string, user: string, body?: Json) =>
  server.call(method, path, { user, ...(body === undefined ? {} : { body }) })

async function contactOf(user: string, fields: Json): Promise<string> {
  return String((await call('POST', '/v1/contacts', user, fields)).body.id)
}

const rows = (page: Page) => page.getByRole('region', { name: 'Contacts' }).locator('tbody tr')
const fileOf = (name: string, text: string) => ({ name, mimeType: '', buffer: Buffer.from(text) })

describe('the list of contacts', () => {
  test('is empty with the call that fills it; an import says what became of each entry', async (context) => {
    const user = someone()
    const page = await openContacts(context, user)
    if (page === null) return
    await page.getByRole('heading', { name: 'No contacts yet' }).waitFor()
    await page.getByText('curl -s').filter({ hasText: user }).waitFor()
    await picture(page, 'contacts-empty')
    assert.deepEqual(await seriousFindings(page), [])

    await page.getByRole('button', { name: 'Import' }).first().click()
    const dialog = page.getByRole('dialog', { name: 'Import contacts' })
    await dialog.getByLabel('File', { exact: true }).setInputFiles(fileOf('contacts.txt', 'nothing'))
    await dialog.getByText('Choose a file that ends with .vcf or .csv.').waitFor()
    const csv =
      'name,email,company,tags\nAnn Lee,ann@example.com,Acme,friend\n,,,nobody\nBob Ray,bob@example.com,Beta,\n'
    await dialog.getByLabel('File', { exact: true }).setInputFiles(fileOf('contacts.csv', csv))
    await dialog.getByRole('button', { name: 'Import', exact: true }).click()
    const report = dialog.getByRole('region', { name: 'Skipped' })
    await report.locator('tbody tr').waitFor()
    await dialog.getByText('Created').locator('..').getByText('2', { exact: true }).waitFor()
    await picture(page, 'contacts-import')
    assert.deepEqual(await seriousFindings(page), [])

    await dialog.getByRole('button', { name: 'Import another file' }).click()
    const card = 'BEGIN:VCARD\nVERSION:3.0\nFN:Cleo Fox\nORG:Acme\nEND:VCARD\n'
    await dialog.getByLabel('File', { exact: true }).setInputFiles(fileOf('cleo.vcf', card))
    await dialog.getByRole('button', { name: 'Import', exact: true }).click()
    await dialog.getByRole('button', { name: 'Done' }).click()
    await rows(page).filter({ hasText: 'Cleo Fox' }).waitFor()
    assert.equal(await rows(page).count(), 3)

    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export as CSV' }).click(),
    ])
    assert.equal(file.suggestedFilename(), 'contacts.csv')
    assert.match(readFileSync(await file.path(), 'utf8'), /Cleo Fox/)
  })

  test('is searched, filtered by a tag and read page by page; the address holds all of it', async (context) => {
    const user = someone()
    const lines = Array.from(
      { length: 60 },
      (_, index) =>
        `Person ${index},p${index}@example.com,${index % 2 === 0 ? 'Acme' : 'Beta'},${index < 3 ? 'vip' : ''}`,
    )
    await server.call('POST', '/v1/contacts/import', {
      user,
      raw: `name,email,company,tags\n${lines.join('\n')}`,
      headers: { 'content-type': 'text/csv' },
    })
    const page = await openContacts(context, user)
    if (page === null) return
    await page.getByText('Page 1 of 3').waitFor()
    await picture(page, 'contacts')
    assert.deepEqual(await seriousFindings(page), [])
    await page.getByRole('button', { name: 'Next page' }).click()
    await page.getByText('Page 2 of 3').waitFor()
    await page.reload()
    await page.getByText('Page 2 of 3').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('acme person 1')
    await page.locator('.page-head').getByText('5 contacts').waitFor()
    assert.match(page.url(), /q=acme\+person\+1$/)
    await page.goto(`${server.polylog.baseUrl}/contacts?tag=vip`)
    await page.getByRole('button', { name: 'Tag: vip. Remove this filter' }).waitFor()
    await rows(page).nth(2).waitFor()
    assert.equal(await rows(page).count(), 3)
    await page.getByRole('searchbox').fill('nobody at all')
    await page.getByText('No contact has all of these words.').waitFor()
  })
})

describe('one contact', () => {
  test('is created, changed and deleted, with facts, to-dos and events', async (context) => {
    const user = someone()
    const page = await openContacts(context, user)
    if (page === null) return
    await page.getByRole('heading', { name: 'No contacts yet' }).waitFor()
    await page.keyboard.press('n')
    const dialog = page.getByRole('dialog', { name: 'New contact' })
    await dialog.getByLabel('Name').fill('Ann Lee')
    await dialog.getByLabel('Company').fill('Acme')
    await dialog.getByLabel('Tags').fill('friend, investor')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Ann Lee' }).waitFor()

    const add = async (label: string, text: string, date?: string) => {
      const field = page.getByRole('textbox', { name: label })
      await field.fill(text)
      const form = page.locator('form').filter({ has: field })
      if (date !== undefined) await form.locator('input[type=date]').fill(date)
      await form.getByRole('button', { name: 'Add' }).click()
    }
    await add('Add a fact', 'Likes green tea')
    await add('Add a to-do', 'Send the contract', '2026-01-02')
    await add('Add an event', 'Lunch in Berlin', '2026-11-20')
    await page.getByRole('list', { name: 'Facts' }).getByText('Likes green tea').waitFor()
    await page.getByText('Overdue · 2 Jan 2026').waitFor()
    await page.getByText('20 Nov 2026').waitFor()
    await picture(page, 'contact')
    assert.deepEqual(await seriousFindings(page), [])
    await page.getByRole('checkbox', { name: 'Done: Send the contract' }).click()
    await page.getByRole('checkbox', { name: 'Done: Send the contract', checked: true }).waitFor()
    await page.getByRole('button', { name: 'Remove: Lunch in Berlin' }).click()
    await page.getByText('No events.').waitFor()

    await page.getByRole('button', { name: 'Edit' }).click()
    const edit = page.getByRole('dialog', { name: 'Edit' })
    await edit.getByLabel('Email').fill('no address')
    await edit.getByRole('button', { name: 'Save' }).click()
    await edit.getByLabel('Email').fill('ann@example.com')
    await edit.getByRole('button', { name: 'Save' }).click()
    await page.getByText('ann@example.com').waitFor()
    const { items } = (await call('GET', '/v1/contacts', user)).body
    assert.deepEqual([items[0].email, items[0].tags], ['ann@example.com', ['friend', 'investor']])

    await page.getByRole('button', { name: 'Delete' }).click()
    const remove = page.getByRole('dialog').getByRole('button', { name: 'Delete' })
    const refusal = { status: 409, json: { code: 'contact_busy', message: 'Not now.' } }
    await page.route(/\/v1\/contacts\//, (route) => route.fulfill(refusal), { times: 1 })
    await remove.click()
    await page.getByText('The contact was not deleted').waitFor()
    await remove.click()
    await page.getByRole('heading', { name: 'No contacts yet' }).waitFor()
  })

  test('gets a brief, and one that fails says why', async (context) => {
    const user = someone()
    const id = await contactOf(user, { name: `about ${user}`, company: 'Acme', position: 'CTO', phone: '+49 30 1' })
    const fact = (await call('POST', `/v1/contacts/${id}/facts`, user, { content: 'likes tea' })).body
    const citations = [{ source: fact.id, type: 'fact', reference: 'likes tea' }]
    const content = '## Background\n\nShe **likes tea**.\n\n## Next\n\n- Send the contract\n- Ask about Berlin'
    await server.provider.script([says(JSON.stringify({ content, citations }))], `about ${user}`)
    const page = await openContacts(context, user, `/${id}`, { theme: 'dark' })
    if (page === null) return
    await page.getByRole('button', { name: 'Write a brief' }).click()
    await page.getByRole('heading', { name: 'Background' }).waitFor()
    await page.getByText('Rests on 1 record').waitFor()
    await picture(page, 'contact-dark')
    assert.deepEqual(await seriousFindings(page), [])
    await server.provider.script([[{ cut: true }], [{ cut: true }], [{ cut: true }]], `about ${user}`)
    await page.getByRole('button', { name: 'Write it again' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByRole('heading', { name: 'Background' }).waitFor()
  })

  test('of somebody else does not exist', async (context) => {
    const id = await contactOf(someone(), { name: 'Secret' })
    const page = await openContacts(context, someone('eve'), `/${id}`)
    if (page === null) return
    await page.getByRole('alert').first().getByText('contact_not_found').waitFor()
  })

  test('does nothing that hostile names and facts ask for, also on a phone', async (context) => {
    const user = someone()
    const hostile = '<img src=x onerror="window.hacked = 1">\u202Egnp.exe'
    const id = await contactOf(user, { name: hostile, company: hostile, note: hostile, tags: ['<b>x</b>'] })
    await call('POST', `/v1/contacts/${id}/facts`, user, { content: hostile.repeat(10) })
    const page = await openContacts(context, user, '', { size: 'phone' })
    if (page === null) return
    await rows(page).first().waitFor()
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
    await picture(page, 'contacts-phone')
    assert.deepEqual(await seriousFindings(page), [])
    await rows(page).getByRole('link').first().click()
    await page.getByRole('list', { name: 'Facts' }).getByText('⟦U+202E⟧', { exact: false }).waitFor()
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
    await picture(page, 'contact-phone')
    assert.deepEqual(await seriousFindings(page), [])
    assert.equal(await page.evaluate('window.hacked'), undefined)
    assert.equal(await page.locator('main img').count(), 0)
  })
})
