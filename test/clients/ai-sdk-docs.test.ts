// The code of docs/clients/ai-sdk.md, as it stands there: each block is written to a file, loaded, and
// used in a page against a real server.

import type { useChat } from '@ai-sdk/react'
import * as sdk5 from 'ai-5'
import type { useChat as useChatOfVersionFour } from 'ai-sdk-react-1'
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { openPages, type Page, type Pages } from '../support/react-page.ts'
import { pngOf } from '../support/sample-files.ts'
import { calls, hangsAfter, type Json, says, sharedTestServer, someone } from '../support/test-server.ts'
import { uiChat, type UiChat, type UiSdk, untilLine } from '../support/ui-chat-client.ts'
import { linesOfMessage } from '../support/ui-message-reader.ts'

const root = join(import.meta.dirname, '..', '..')
const server = sharedTestServer()
let pages: Pages
let folder: string

before(async () => {
  const cache = join(root, 'node_modules', '.cache')
  mkdirSync(cache, { recursive: true })
  // The packages are found from here, and the files are plain JavaScript.
  folder = mkdtempSync(join(cache, 'polylog-docs-'))
  pages = await openPages()
})
after(async () => {
  await pages.close()
  rmSync(folder, { recursive: true, force: true })
})

/** The exports of the block whose first line is a comment with this name. */
async function block<Exports>(name: string): Promise<Exports> {
  const page = readFileSync(join(root, 'docs', 'clients', 'ai-sdk.md'), 'utf8')
  const code = [...page.matchAll(/^```ts\n([^]*?)^```$/gm)]
    .map((match) => match[1] ?? '')
    .find((text) => text.startsWith(`// ${name}.ts\n`))
  assert.ok(code !== undefined, `the page has a block ${name}.ts`)
  const path = join(folder, `${name}.mjs`)
  writeFileSync(path, stripTypeScriptTypes(code.replaceAll('http://127.0.0.1:3000', server.polylog.baseUrl)))
  return (await import(pathToFileURL(path).href)) as Exports
}

type Chat = ReturnType<typeof useChat>

async function show<Hook extends Chat>(context: TestContext, use: () => Hook): Promise<Page<Hook>> {
  const page = await pages.mount(use, (chat) => [
    ...chat.messages.flatMap((message) => linesOfMessage(message)),
    `(${chat.status})`,
  ])
  context.after(() => page.unmount())
  return page
}

describe('docs/clients/ai-sdk.md', () => {
  test('a chat that resumes and stops', async (context) => {
    const { useAgent } = await block<{ useAgent(chatId: string): Chat }>('chat')
    const id = someone()
    await server.provider.script([hangsAfter('One ', 'two')], id)
    const first = await show(context, () => useAgent(id))
    void first.hook().sendMessage({ text: id })
    await first.shows('text streaming: One two')

    const second = await show(context, () => useAgent(id))
    await second.shows('text streaming: One two')
    await second.hook().stop()

    await first.shows('(ready)')
    await second.shows('(ready)')
  })

  test('approvals', async (context) => {
    type Agent = Chat & { questions: { input: Json; allow(): void; deny(): void }[] }
    const { useAgent } = await block<{ useAgent(chatId: string): Agent }>('approvals')
    for (const [choice, state] of [
      ['allow', 'output-available'],
      ['deny', 'output-denied'],
    ] as const) {
      const id = someone()
      await server.provider.script([calls(['remember_note', { text: id }]), says('Done.')], id)
      const page = await show(context, () => useAgent(id))
      void page.hook().sendMessage({ text: id })
      await page.shows('approval-requested')
      await page.shows('(ready)')

      const [question] = page.hook().questions
      assert.deepEqual(question?.input, { text: id })
      question[choice]()

      await page.shows('text done: Done.')
      await page.shows(state)
    }
  })

  test('tools of the application', async (context) => {
    type Use = (chatId: string, locate: () => Promise<string>) => Chat
    const { useAgent } = await block<{ useAgent: Use }>('tools')
    const answers: [() => Promise<string>, string][] = [
      [async () => 'Oslo', 'output-available: "Oslo"'],
      [() => Promise.reject(new Error('No permission.')), 'output-error: No permission.'],
    ]
    for (const [locate, shown] of answers) {
      const id = someone()
      await server.provider.script([calls(['getLocation', {}]), says('Done.')], id)
      const page = await show(context, () => useAgent(id, locate))

      void page.hook().sendMessage({ text: id })
      await page.shows('text done: Done.')

      await page.shows(`tool-getLocation {} ${shown}`)
    }
  })

  test('files', async (context) => {
    type Agent = Chat & { ask(text: string, file: File): Promise<void> }
    const { useAgent } = await block<{ useAgent(chatId: string): Agent }>('files')
    const id = someone()
    await server.provider.script([says('A dot.')], id)
    const page = await show(context, () => useAgent(id))

    await page.hook().ask(id, new File([new Uint8Array(pngOf(9))], 'dot.png', { type: 'image/png' }))
    await page.shows('text done: A dot.')

    const { body } = await server.call('GET', `/v1/conversations/${id}/messages`)
    assert.match(JSON.stringify(body), /"mediaType":"image\/png","name":"dot\.png"/)
  })

  test('approvals of AI SDK 5', async () => {
    type Answer = (chat: UiChat, waiting: object, approved: boolean) => Promise<void>
    const { answer } = await block<{ answer: Answer }>('version-5')
    const user = someone()
    await server.provider.script([calls(['remember_note', { text: 'x' }]), says('Done.')], user)
    const options = { baseUrl: () => server.polylog.baseUrl, path: '/v1/ui/v5/chat', user, id: user }
    const chat = uiChat(sdk5 as unknown as UiSdk, options)
    await chat.sendMessage({ text: user })
    const waiting = chat.lastMessage?.parts.find((part) => part.type === 'data-tool-awaiting-input')
    assert.ok(waiting !== undefined && 'data' in waiting)

    await answer(chat, waiting.data as object, true)

    await untilLine(chat, 'text done: Done.')
    await untilLine(chat, 'output-available')
  })

  test('tools of AI SDK 4', async (context) => {
    type Use = (chatId: string, locate: () => Promise<string>) => ReturnType<typeof useChatOfVersionFour>
    const { useAgent } = await block<{ useAgent: Use }>('version-4')
    const id = someone()
    await server.provider.script([calls(['getLocation', {}]), says('Done.')], id)
    const page = await pages.mount(
      () => useAgent(id, async () => 'Oslo'),
      ({ messages }) => messages.map(({ content }) => content),
    )
    context.after(() => page.unmount())

    void page.hook().append({ role: 'user', content: id })

    await page.shows('Done.')
  })
})
