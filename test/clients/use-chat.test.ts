// `useChat` of @ai-sdk/react 4 (AI SDK 7), rendered by React 19 into a document. The code here is
// that of docs/clients/ai-sdk.md.

import type { useChat as UseChat } from '@ai-sdk/react'
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from 'ai'
import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { openPages, type Page, type Pages } from '../support/react-page.ts'
import {
  calls,
  hangsAfter,
  says,
  someone,
  startTestServerProcess,
  type TestServerProcess,
} from '../support/test-server.ts'
import { linesOfMessage } from '../support/ui-message-reader.ts'

type Chat = ReturnType<typeof UseChat>

let server: TestServerProcess
let pages: Pages
let useChat: typeof UseChat

before(async () => {
  ;[server, pages] = await Promise.all([startTestServerProcess(), openPages()])
  ;({ useChat } = await import('@ai-sdk/react'))
})
after(async () => {
  await pages.close()
  await server.close()
})

const tools = { locate: { description: 'Where the user is.', inputSchema: { type: 'object', properties: {} } } }

async function openChat(context: TestContext, user: string, { resume = false } = {}): Promise<Page<Chat>> {
  const origin = () => server.polylog.baseUrl
  const page = await pages.mount(
    () => {
      const chat = useChat({
        id: `chat-${user}`,
        resume,
        transport: new DefaultChatTransport({
          api: `${origin()}/v1/ui/chat`,
          body: { userId: user, tools },
          prepareReconnectToStreamRequest: ({ id }) => ({ api: `${origin()}/v1/ui/chat/${id}/stream?userId=${user}` }),
        }),
        sendAutomaticallyWhen: (given) =>
          lastAssistantMessageIsCompleteWithToolCalls(given) ||
          lastAssistantMessageIsCompleteWithApprovalResponses(given),
        onToolCall({ toolCall }) {
          void chat.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: 'Oslo' })
        },
      })
      return chat
    },
    (chat) => [
      ...chat.messages.flatMap((message) => linesOfMessage(message).map((line) => `${message.role}: ${line}`)),
      `(${chat.status})`,
    ],
  )
  context.after(() => page.unmount())
  return page
}

async function approvalIn(page: Page<Chat>): Promise<string> {
  await page.shows('approval-requested')
  const part = page
    .hook()
    .messages.at(-1)
    ?.parts.find((one) => one.type === 'data-tool-awaiting-input')
  return (part as unknown as { data: { confirmationId: string } }).data.confirmationId
}

describe('useChat of AI SDK 7 in a page', () => {
  test('shows an answer while it comes', async (context) => {
    const user = someone()
    await server.provider.script([hangsAfter('One ', 'two')], user)
    const page = await openChat(context, user)
    void page.hook().sendMessage({ text: user })

    await page.shows('assistant: text streaming: One two')
    await page.shows('(streaming)')
    await fetch(`${server.polylog.baseUrl}/v1/ui/chat/chat-${user}/stop?userId=${user}`, { method: 'POST' })
    await page.shows('(ready)')

    assert.match(page.text(), /text done: One two/)
  })

  test('asks for an approval, and goes on with it', async (context) => {
    const user = someone()
    await server.provider.script([calls(['remember_note', { text: 'x' }]), says('Saved.')], user)
    const page = await openChat(context, user)
    void page.hook().sendMessage({ text: user })

    const id = await approvalIn(page)
    void page.hook().addToolApprovalResponse({ id, approved: true })
    await page.shows('text done: Saved.')

    assert.match(page.text(), /tool-remember_note \{"text":"x"\} output-available/)
  })

  test('executes its own tool', async (context) => {
    const user = someone()
    await server.provider.script([calls(['locate', {}]), says('Cold.')], user)
    const page = await openChat(context, user)

    void page.hook().sendMessage({ text: user })
    await page.shows('text done: Cold.')
    await page.shows('(ready)')

    assert.match(page.text(), /tool-locate \{\} output-available: "Oslo"/)
  })

  test('resumes when the page is loaded again, also after the server was killed', async (context) => {
    const user = someone()
    const slowly = [{ text: ['Once ', 'upon', ' a time'] }, { stall: true as const }, { finish: 'stop' }]
    await server.provider.script([hangsAfter('Once ', 'upon'), slowly], user)
    const page = await openChat(context, user)
    void page.hook().sendMessage({ text: user })
    await page.shows('Once upon')

    await server.polylog.kill()
    await page.shows('(error)')
    page.unmount()
    server = await server.restartProcess()
    const loaded = await openChat(context, user, { resume: true })
    await loaded.shows('text streaming: Once upon a time')
    await server.provider.release()
    await loaded.shows('(ready)')

    assert.equal(loaded.text(), 'assistant: step-start\nassistant: text done: Once upon a time\n(ready)')
  })
})
