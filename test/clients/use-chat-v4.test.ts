// `useChat` of @ai-sdk/react 1 (AI SDK 4), rendered by React 19 into a document, over the data stream
// wire of the native chat route.

import type { useChat as UseChat } from 'ai-sdk-react-1'
import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { openPages, type Page, type Pages } from '../support/react-page.ts'
import {
  calls,
  hangsAfter,
  type Json,
  says,
  someone,
  startTestServerProcess,
  type TestServerProcess,
  until,
} from '../support/test-server.ts'

type Chat = ReturnType<typeof UseChat>

let server: TestServerProcess
let pages: Pages
let useChat: typeof UseChat

before(async () => {
  ;[server, pages] = await Promise.all([startTestServerProcess(), openPages()])
  ;({ useChat } = await import('ai-sdk-react-1'))
})
after(async () => {
  await pages.close()
  await server.close()
})

const clientTools = [{ name: 'locate', inputSchema: { type: 'object', properties: {} } }]

type ChatOptions = Pick<
  Parameters<typeof UseChat>[0] & {},
  'onToolCall' | 'maxSteps' | 'initialMessages' | 'onResponse'
>

async function openChat(context: TestContext, user: string, options: ChatOptions = {}): Promise<Page<Chat>> {
  const page = await pages.mount(
    () =>
      useChat({
        id: `chat-${user}`,
        api: `${server.polylog.baseUrl}/v1/agent/chat?userId=${user}&format=vercel-ai`,
        body: { clientTools },
        ...options,
      }),
    (chat) => [
      ...chat.messages.flatMap((message) => [
        `${message.role}: ${message.content}`,
        ...message.parts.flatMap((part) =>
          part.type === 'tool-invocation'
            ? [
                `${part.toolInvocation.toolName} ${part.toolInvocation.state} ${JSON.stringify('result' in part.toolInvocation ? part.toolInvocation.result : null)}`,
              ]
            : [],
        ),
      ]),
      `(${chat.status})`,
    ],
  )
  context.after(() => page.unmount())
  return page
}

const ask = (page: Page<Chat>, text: string) => void page.hook().append({ role: 'user', content: text })
const runsOf = async (user: string) => (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]

describe('useChat of AI SDK 4 in a page', () => {
  test('keeps to one conversation, named by the id of the chat', async (context) => {
    const user = someone()
    await server.provider.script([says('One.'), says('Two.')], user)
    const page = await openChat(context, user)

    ask(page, user)
    await page.shows('assistant: One.\n(ready)')
    ask(page, `${user} again`)
    await page.shows('assistant: Two.\n(ready)')

    const runs = await runsOf(user)
    assert.deepEqual(
      runs.map(({ conversationId }) => conversationId),
      [`chat-${user}`, `chat-${user}`],
    )
  })

  test('with maxSteps does not post again after tools of the server', async (context) => {
    const user = someone()
    await server.provider.script([calls(['current_time', {}]), calls(['current_time', {}, 'b']), says('Late.')], user)
    const page = await openChat(context, user, { maxSteps: 5 })

    ask(page, user)
    await page.shows('Late.')
    await page.shows('(ready)')

    assert.equal((await runsOf(user)).length, 1)
  })

  test('executes its own tool with onToolCall and maxSteps, and the same run goes on', async (context) => {
    const user = someone()
    await server.provider.script(
      [calls(['locate', {}], ['current_time', {}]), calls(['locate', {}, 'b']), says('Cold.')],
      user,
    )
    const page = await openChat(context, user, { maxSteps: 5, onToolCall: () => ({ city: 'Oslo' }) })

    ask(page, user)
    await page.shows('Cold.')
    await page.shows('(ready)')

    assert.equal(page.text().match(/locate result \{"city":"Oslo"\}/g)?.length, 2)
    assert.deepEqual(
      (await runsOf(user)).map(({ status }) => status),
      ['succeeded'],
    )
  })

  test('sends what a person answers with addToolResult, also after the server was killed', async (context) => {
    const user = someone()
    await server.provider.script([calls(['locate', {}, 'call_a']), says('Cold.')], user)
    const page = await openChat(context, user)
    ask(page, user)
    await page.shows('locate call null')
    await page.shows('(ready)')
    const address = new URL(server.polylog.baseUrl)

    await server.polylog.kill()
    server = await server.restartProcess({ PORT: address.port })
    page.hook().addToolResult({ toolCallId: 'call_a', result: 'Oslo' })
    await page.shows('Cold.')
    await page.shows('(ready)')

    assert.match(page.text(), /locate result "Oslo"/)
    assert.equal((await runsOf(user)).length, 1)
  })

  test('shows a call that waits for a confirmation, and its result on the same stream', async (context) => {
    const user = someone()
    await server.provider.script([calls(['remember_note', { text: 'x' }]), says('Saved.')], user)
    const page = await openChat(context, user)
    ask(page, user)
    await page.shows('remember_note call null')
    const asked = await until('the question', () => page.hook().messages.at(-1)?.annotations?.[0])
    const { confirmationId } = asked as unknown as { confirmationId: string }

    await server.call('POST', `/v1/tool-confirmations/${confirmationId}/confirm`, { user })
    await page.shows('Saved.')

    assert.match(page.text(), /remember_note result/)
  })

  test('resumes the open run when the page is loaded again, also after a kill, and nothing when none is open', async (context) => {
    const user = someone()
    await server.provider.script([hangsAfter('One moment')], user)
    const first = await openChat(context, user)
    ask(first, user)
    await first.shows('assistant: One moment')
    const goesOn = [{ text: ['One moment', ', please'] }, { stall: true as const }, { text: ['.'] }, { finish: 'stop' }]
    await server.provider.script([goesOn], user)
    await server.polylog.kill()
    server = await server.restartProcess()
    await server.askedTimes(user, 2)

    const second = await openChat(context, user)
    // The pages of this process share the messages of a chat; a page that is loaded again has only the stored ones.
    second.hook().setMessages([{ id: 'q', role: 'user', content: user }])
    await until('the page without the answer', () => (second.text().includes('assistant') ? undefined : true))
    second.hook().experimental_resume()
    // Text of the second request: the provider has come to its stall.
    await second.shows('assistant: One moment, please')
    await server.provider.release()
    await second.shows('assistant: One moment, please.\n(ready)')
    assert.equal((await runsOf(user)).length, 1)
    const answered = Promise.withResolvers<Response>()
    const idle = await openChat(context, someone(), { onResponse: answered.resolve })
    idle.hook().experimental_resume()
    assert.equal((await answered.promise).status, 200)
    await idle.shows('(ready)')
    assert.equal(idle.hook().error, undefined)
  })

  test('stops the run with the cancel route', async (context) => {
    const user = someone()
    await server.provider.script([hangsAfter('One ', 'two')], user)
    const page = await openChat(context, user)
    ask(page, user)
    await page.shows('One two')
    const [run] = await runsOf(user)

    await server.call('POST', `/v1/agent/runs/${run?.runId}/cancel`, { user })
    await page.shows('(ready)')

    assert.equal((await runsOf(user))[0]?.status, 'cancelled')
  })
})
