// useStream of the LangGraph SDK in React 19, rendered into happy-dom, against the real server: a chat over two
// turns, consent to a tool call, and a page that is loaded again while an answer comes.

import type { useStream as UseStream } from '@langchain/langgraph-sdk/react'
import { Window } from 'happy-dom'
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { after, before, describe, type TestContext, test } from 'node:test'
import type { createElement as CreateElement, useState as UseState } from 'react'
import { sharedMcpServerProcess } from '../support/shared-mcp-server.ts'
import { calls, hangsAfter, type Json, says, someone, until } from '../support/test-server.ts'

const { server, effects } = sharedMcpServerProcess()
let createElement: typeof CreateElement
let useState: typeof UseState
let createRoot: (container: unknown) => { render(element: unknown): void; unmount(): void }
let useStream: typeof UseStream
const window = new Window({ url: 'http://localhost/' })

before(async () => {
  // React looks for a document when it is loaded, and the hook for the storage of the session.
  Object.assign(globalThis, { window, document: window.document, IS_REACT_ACT_ENVIRONMENT: false })
  ;({ createElement, useState } = await import('react'))
  ;({ createRoot } = createRequire(import.meta.url)('react-dom/client') as { createRoot: typeof createRoot })
  ;({ useStream } = await import('@langchain/langgraph-sdk/react'))
})
after(async () => {
  await window.happyDOM.close()
})

/** What the hook gives, as far as the tests use it. */
type Chat = {
  messages: { type: string; content: unknown }[]
  isLoading: boolean
  error: unknown
  interrupt: Json | undefined
  submit(values: unknown, options?: Json): Promise<void>
  stop(): void
}

type Page = { chat(): Chat; threadId(): string | null; shows(text: string): Promise<void>; unmount(): void }

function mount(context: TestContext, user: string, threadId: string | null = null): Page {
  let newest: Chat | undefined
  let thread = threadId
  function View() {
    const [current, setCurrent] = useState(threadId)
    const chat = useStream<{ messages: never[] }>({
      apiUrl: `${server.polylog.baseUrl}/langgraph`,
      apiKey: null,
      assistantId: 'chat_conversation',
      threadId: current,
      onThreadId: (id) => {
        thread = id
        setCurrent(id)
      },
      reconnectOnMount: true,
      fetchStateHistory: true,
      callerOptions: { maxRetries: 0, fetch: asUser(user) },
    }) as unknown as Chat
    newest = chat
    const lines = [
      ...chat.messages.map(({ type, content }) => `${type}: ${String(content)}`),
      ...(chat.interrupt === undefined ? [] : [`asks: ${chat.interrupt['value'].action_requests[0].name}`]),
      `(${chat.isLoading ? 'loading' : 'ready'}${chat.error == null ? '' : `, ${String(chat.error)}`})`,
    ]
    return createElement(
      'ul',
      null,
      lines.map((line, index) => createElement('li', { key: index }, line)),
    )
  }
  const container = window.document.createElement('main')
  const root = createRoot(container)
  root.render(createElement(View))
  const text = () => [...container.querySelectorAll('li')].map((item) => item.textContent).join('\n')
  let isMounted = true
  const unmount = () => {
    if (isMounted) root.unmount()
    isMounted = false
  }
  context.after(unmount)
  return {
    chat() {
      assert.ok(newest !== undefined)
      return newest
    },
    threadId: () => thread,
    async shows(wanted) {
      await until('the page', () => (text() === wanted ? true : undefined)).catch(() => assert.equal(text(), wanted))
    },
    unmount,
  }
}

/** In open mode a request names its user in the query. */
function asUser(user: string): typeof fetch {
  return async (input, init) => {
    const url = new URL(String(input))
    url.searchParams.set('userId', user)
    return await fetch(url, init)
  }
}

const asks = (content: string) => ({ messages: [{ type: 'human', content }] })

describe('useStream', () => {
  test('shows a chat while it happens, over two turns, and again after the page was loaded anew', async (context) => {
    const user = someone()
    await server.provider.script([says('Hel', 'lo.'), says('Again.')], user)
    const page = mount(context, user)
    await page.shows('(ready)')

    await page.chat().submit(asks(`${user} one`))
    await page.shows(`human: ${user} one\nai: Hello.\n(ready)`)
    await page.chat().submit(asks(`${user} two`))
    const told = `human: ${user} one\nai: Hello.\nhuman: ${user} two\nai: Again.\n(ready)`
    await page.shows(told)
    page.unmount()

    await mount(context, user, page.threadId()).shows(told)
  })

  test('asks for consent, and goes on with the decision', async (context) => {
    const user = someone()
    const amount = 9000
    await server.provider.script([calls(['charge', { amount }]), says('Charged.')], user)
    const page = mount(context, user)
    await page.shows('(ready)')

    await page.chat().submit(asks(user))
    await page.shows(`human: ${user}\nai: \nasks: charge\n(ready)`)
    assert.ok(!effects.lines().includes(`charge ${amount}`))
    await page.chat().submit(null, { command: { resume: { decisions: [{ type: 'approve' }] } } })

    await page.shows(`human: ${user}\nai: \ntool: charged ${amount}\nai: Charged.\n(ready)`)
    assert.equal(effects.lines().filter((line) => line === `charge ${amount}`).length, 1)
  })

  test('joins the run that is under way when the page is loaded again, and stops it', async (context) => {
    const user = someone()
    await server.provider.script([hangsAfter('Once ', 'upon')], user)
    const page = mount(context, user)
    await page.shows('(ready)')
    void page.chat().submit(asks(user))
    await page.shows(`human: ${user}\nai: Once upon\n(loading)`)
    page.unmount()

    const again = mount(context, user, page.threadId())
    await again.shows(`human: ${user}\nai: Once upon\n(loading)`)
    again.chat().stop()

    await until('the run to be cancelled', async () => {
      const { body } = await server.call('GET', '/v1/agent/runs', { user })
      return (body as unknown as Json[])[0]?.['status'] === 'cancelled' ? true : undefined
    })
  })
})
