// Outputs of tools in the console: cut with their full length, loaded on demand, and harmless whatever is in them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { picture, sharedConsoleBrowser } from '../support/console-page.ts'
import { stdioFake } from '../support/fake-mcp.ts'
import { sharedMcpServer } from '../support/shared-mcp-server.ts'
import { calls, says, someone } from '../support/test-server.ts'

const hostile = `</code><img src=x onerror="window.hacked=1"><script>window.hacked=2</script>\u202Egnp.exe`
const { server } = sharedMcpServer(undefined, ({ file }) => ({
  demo: stdioFake({ FAKE_MCP_FILE: file, LONG: `${hostile} ${'y'.repeat(110_000)} the-very-end` }),
}))
const consoleBrowser = sharedConsoleBrowser()

test('a long and hostile output is cut, says how long it is, and is loaded on demand as plain text', async (context) => {
  const user = someone()
  await server.provider.script([calls(['environment', {}]), says('Long.')], user)
  const opened = await consoleBrowser.open(context, `${server.polylog.baseUrl}/chat`, { user })
  if (opened === null) return
  const { page } = opened
  await page.getByRole('textbox', { name: 'Message', exact: true }).fill(`Look ${user}`)
  await page.keyboard.press('Enter')
  const card = page.getByRole('region', { name: 'Tool environment' })
  await card.getByText('Done').waitFor()
  assert.equal(await card.getByText('characters').count(), 0, 'nothing of it is drawn before it is opened')

  await card.getByRole('button').first().click()
  await card.getByText(/of 110,\d{3} characters/).waitFor()
  await card.getByRole('button', { name: 'Load all of it' }).click()
  await card.getByRole('button', { name: /Show all 110,\d{3} characters/ }).click()
  const text = (await card.locator('pre').textContent()) ?? ''
  assert.ok(text.includes('the-very-end'))
  assert.ok(text.includes('⟦U+202E⟧gnp.exe'))
  assert.equal(await page.evaluate('window.hacked'), undefined)
  assert.equal(await card.locator('img, script').count(), 0)
  await picture(page, 'tool-output')
})
