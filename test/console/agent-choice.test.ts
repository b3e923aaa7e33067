// Which agent and which model answer in the chat of the console: the choice is sent, and holds for the tab.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Page } from 'playwright-core'
import { agentFolder } from '../support/agent-folder.ts'
import { sharedConsoleBrowser } from '../support/console-page.ts'
import { type Json, messagesOf, says, sharedTestServer, someone } from '../support/test-server.ts'

const folder = agentFolder()
after(() => folder.dispose())
folder.agent(
  'pirate',
  {
    name: 'The pirate',
    endpoint: '/v1/agent/chat',
    prompt: { systemTemplate: 'system.mustache' },
    memory: { strategy: 'sliding_window' },
    validation: undefined,
  },
  { 'system.mustache': 'Talk like a pirate.' },
)

const server = sharedTestServer({ POLYLOG_AGENTS_DIR: folder.path })
const consoleBrowser = sharedConsoleBrowser()

const agent = (page: Page) => page.getByRole('combobox', { name: 'Agent', exact: true })
const model = (page: Page) => page.getByRole('combobox', { name: 'Model', exact: true })

async function ask(page: Page, text: string, answer: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message', exact: true }).fill(text)
  await page.keyboard.press('Enter')
  await answered(page, answer)
}

async function answered(page: Page, answer: string): Promise<void> {
  await page.getByRole('group', { name: 'Answer', exact: true }).last().getByText(answer).waitFor()
  await page.getByRole('button', { name: 'Answer again' }).waitFor()
}

/** The agent of the newest run, the model that the provider was asked for, and whether the prompt was that of the pirate. */
async function newestRun(user: string): Promise<[agentId: string, model: unknown, isPirate: boolean]> {
  const [run] = (await server.call('GET', '/v1/agent/runs?limit=1', { user })).body as unknown as Json[]
  const request = (await server.asked(user)).at(-1)
  const system = messagesOf(request).find(({ role }) => role === 'system')
  return [run?.agentId, request?.body['model'], JSON.stringify(system).includes('Talk like a pirate.')]
}

/** A model that is listed and is not the default. */
async function anotherModel(): Promise<{ id: string; name: string }> {
  const { data } = (await server.call('GET', '/v1/models')).body as { data: Json[] }
  const id = String(data.find(({ kind, isDefault }) => kind === 'model' && isDefault === false)?.id)
  return { id, name: id.replace(/^openai\//, '') }
}

test('the chosen agent and model answer, also again and after a reload, until others are chosen', async (context) => {
  const user = someone()
  await server.provider.script(
    ['Hello.', 'Ahoy.', 'Arr.', 'Aye.', 'Good day.'].map((text) => says(text)),
    user,
  )
  const opened = await consoleBrowser.open(context, `${server.polylog.baseUrl}/chat`, { user })
  if (opened === null) return
  const { page } = opened
  const other = await anotherModel()
  await ask(page, `First ${user}`, 'Hello.')
  assert.deepEqual(await newestRun(user), ['chat_conversation', 'fake', false])

  await agent(page).selectOption('The pirate')
  await model(page).selectOption(other.id)
  await ask(page, `Second ${user}`, 'Ahoy.')
  assert.deepEqual(await newestRun(user), ['pirate', other.name, true])
  await page.getByRole('button', { name: 'Answer again' }).click()
  await answered(page, 'Arr.')
  assert.deepEqual(await newestRun(user), ['pirate', other.name, true])

  await page.reload()
  await agent(page).waitFor()
  assert.deepEqual([await agent(page).inputValue(), await model(page).inputValue()], ['pirate', other.id])
  await ask(page, `Third ${user}`, 'Aye.')
  assert.deepEqual(await newestRun(user), ['pirate', other.name, true])

  const tab = await page.context().newPage()
  await tab.goto(page.url())
  await agent(tab).waitFor()
  assert.deepEqual([await agent(tab).inputValue(), await model(tab).inputValue()], ['', ''], 'another tab has its own')

  await agent(page).selectOption('Default agent')
  await model(page).selectOption('')
  await page.reload()
  await ask(page, `Fourth ${user}`, 'Good day.')
  assert.deepEqual(await newestRun(user), ['chat_conversation', 'fake', false])
})

test('a choice that the server no longer offers is dropped', async (context) => {
  const user = someone()
  await server.provider.script([says('Hello.')], user)
  const other = await anotherModel()
  const opened = await consoleBrowser.open(context, `${server.polylog.baseUrl}/chat`, { user })
  if (opened === null) return
  const { page } = opened
  await agent(page).selectOption('The pirate')
  await model(page).selectOption(other.id)
  await page.route(/\/v1\/(agent\/list|models)/, async (route) => {
    const response = await route.fetch()
    const { agents, data } = (await response.json()) as Record<'agents' | 'data', Json[] | undefined>
    const json = {
      agents: agents?.filter(({ id }) => id !== 'pirate'),
      data: data?.filter(({ id }) => id !== other.id),
    }
    await route.fulfill({ response, json })
  })
  await page.reload()
  await model(page).waitFor()
  await ask(page, `First ${user}`, 'Hello.')
  assert.deepEqual(await newestRun(user), ['chat_conversation', 'fake', false])
})
