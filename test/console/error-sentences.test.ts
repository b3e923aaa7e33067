// What went wrong is told in the language of the person, with the server's own sentence below it.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { chineseErrors } from '../../console/src/i18n/chinese-errors.ts'
import { errorCodes } from '../../src/errors/codes.ts'
import { sharedConsoleBrowser } from '../support/console-page.ts'
import { runIdOf, sharedTestServer, someone } from '../support/test-server.ts'

const server = sharedTestServer()
const consoleBrowser = sharedConsoleBrowser()
/** Codes that `@polylog/client` makes itself. */
const codesOfClient = ['network_error', 'stream_cut', 'unexpected_response']

describe('the sentences about failures', () => {
  test('are for codes that exist', () => {
    const unknown = Object.keys(chineseErrors).filter((code) => !(code in errorCodes) && !codesOfClient.includes(code))
    assert.deepEqual(unknown, [])
  })

  test('are Chinese in the Chinese console, with the sentence of the server below, and the server’s alone in the English one', async (context) => {
    const user = someone()
    await server.provider.script([[{ status: 400, body: { error: { message: 'The prompt is odd.' } } }]], user)
    const chat = await server.chat(user, { input: user, conversationId: user })
    await chat.waitFor(({ json }) => json.event === 'agent.end')
    for (const language of ['zh', 'en'] as const) {
      const address = `${server.polylog.baseUrl}/chat/${user}`
      const opened = await consoleBrowser.open(context, address, { user, language })
      if (opened === null) return
      const problem = opened.page.getByRole('alert')
      await problem.getByText(/The prompt is odd\./).waitFor()
      await problem.getByText('model_error', { exact: true }).waitFor()
      assert.equal(await problem.getByText(chineseErrors['model_error'] ?? '').count(), language === 'zh' ? 1 : 0)
      await opened.page.goto(`${server.polylog.baseUrl}/runs/${runIdOf(chat)}?view=events`)
      const line = opened.page.locator('.event-row[data-severity=error]')
      const told = language === 'zh' ? `${chineseErrors['model_error']} · ` : ''
      assert.match(
        (await line.textContent()) ?? '',
        new RegExp(`failed · model_error · ${told}[^·]*The prompt is odd\\.`),
      )
    }
  })

  test('are announced in the language of the person when an agent fails', async (context) => {
    for (const language of ['zh', 'en'] as const) {
      const user = someone()
      await server.provider.script([[{ status: 400, body: { error: { message: 'The prompt is odd.' } } }]], user)
      const address = `${server.polylog.baseUrl}/agents/chat_conversation`
      const opened = await consoleBrowser.open(context, address, { user, language })
      if (opened === null) return
      await opened.page.locator('.bench textarea').fill(JSON.stringify({ message: user }))
      await opened.page.getByRole('button', { name: language === 'zh' ? /^运行/ : /^Run/ }).click()
      const region = opened.page.locator('[role=status][aria-live=polite]')
      const sentence = language === 'zh' ? (chineseErrors['ai_provider_error'] ?? '') : /The prompt is odd\./
      await region.getByText(sentence).waitFor({ state: 'attached' })
    }
  })
})
