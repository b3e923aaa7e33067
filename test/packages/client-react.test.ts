// usePolylog in React 19, rendered into happy-dom, against the real server. What the component shows is read from its
// document, as a person would.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { after, before, describe, type TestContext, test } from 'node:test'
import { Window } from 'happy-dom'
import type { createElement as CreateElement, StrictMode as Strict } from 'react'
import { createClient, openRequests, type PolylogClient } from '../../client/src/index.ts'
import type { UsePolylog, UsePolylogOptions } from '../../client/src/react.ts'
import { type NastyProxy, startNastyProxy } from '../support/nasty-proxy.ts'
import { calls, hangsAfter, says, sharedTestServer, someone, until } from '../support/test-server.ts'

const server = sharedTestServer()
let proxy: NastyProxy
let createElement: typeof CreateElement
let StrictMode: typeof Strict
let createRoot: (container: unknown) => { render(element: unknown): void; unmount(): void }
let usePolylog: (options: UsePolylogOptions) => UsePolylog
const window = new Window()

before(async () => {
  // React looks for a document when it is loaded.
  Object.assign(globalThis, { window, document: window.document, IS_REACT_ACT_ENVIRONMENT: false })
  ;({ createElement, StrictMode } = await import('react'))
  // It has no types of its own.
  ;({ createRoot } = createRequire(import.meta.url)('react-dom/client') as { createRoot: typeof createRoot })
  ;({ usePolylog } = await import('../../client/src/react.ts'))
  proxy = await startNastyProxy()
})
after(async () => {
  await proxy.close()
  await window.happyDOM.close()
})

type Shown = {
  /** What the page shows now. */
  text(): string
  /** The functions of the hook. */
  chat(): UsePolylog
  shows(text: string): Promise<string>
  unmount(): void
}

/** Mounts a page that draws everything the hook gives, in strict mode: React then mounts it twice. */
function mount(context: TestContext, options: UsePolylogOptions): Shown {
  let newest: UsePolylog | undefined
  function Page() {
    const chat = usePolylog(options)
    newest = chat
    const lines = [
      ...chat.messages.map(({ role, content }) => `${role}: ${content}`),
      ...chat.runs.flatMap(({ input, blocks, error }) => [
        `user: ${input}`,
        ...blocks.map((block) => {
          if (block.type === 'tool') return `${block.name}: ${block.status}`
          return block.type === 'question' ? `question: ${block.prompt}` : `assistant: ${block.text}`
        }),
        ...(error === undefined ? [] : [`error: ${error.code}`]),
      ]),
      `(${chat.status}${chat.connected ? '' : ', reconnecting'}${chat.error === null ? '' : `, ${chat.error.code}`})`,
    ]
    return createElement(
      'ul',
      null,
      lines.map((line, index) => createElement('li', { key: index }, line)),
    )
  }
  const container = window.document.createElement('main')
  const root = createRoot(container)
  root.render(createElement(StrictMode, null, createElement(Page)))
  const text = () => [...container.querySelectorAll('li')].map((item) => item.textContent).join('\n')
  let isMounted = true
  const unmount = () => {
    if (isMounted) root.unmount()
    isMounted = false
  }
  context.after(unmount)
  return {
    text,
    chat: () => {
      assert.ok(newest !== undefined)
      return newest
    },
    shows: async (wanted) => {
      await until(`the page to show:\n${wanted}\nit shows:\n${text()}`, () =>
        text() === wanted ? true : undefined,
      ).catch(() => assert.equal(text(), wanted))
      return wanted
    },
    unmount,
  }
}

function clientFor(user: string): PolylogClient {
  proxy.target = server.polylog.baseUrl
  return createClient({ baseUrl: proxy.baseUrl, userId: user, random: () => 0 })
}

describe('usePolylog', () => {
  test('shows a conversation while it happens, and again after a reload', async (context) => {
    const user = someone()
    await server.provider.script([says('Hel', 'lo')], user)
    const page = mount(context, { client: clientFor(user) })
    await page.shows('(ready)')

    await page.chat().send(`${user} hi`)
    const told = await page.shows(`user: ${user} hi\nassistant: Hello\n(ready)`)
    const { conversationId } = page.chat()
    assert.ok(conversationId !== null)
    page.unmount()

    const reloaded = mount(context, { client: clientFor(user), conversationId })
    await reloaded.shows(told)
    await server.provider.script([says('Again.')], user)
    await reloaded.chat().send(`${user} more`)
    await reloaded.shows(`user: ${user} hi\nassistant: Hello\nuser: ${user} more\nassistant: Again.\n(ready)`)
  })

  test('finds a run at work after a reload, survives a broken connection, and stops it', async (context) => {
    const user = someone()
    const conversationId = `conv-${user}`
    await server.provider.script([hangsAfter('one ', 'two ')], user)
    const page = mount(context, { client: clientFor(user), conversationId })
    await page.shows('(ready)')
    void page.chat().send(user)
    await page.shows(`user: ${user}\nassistant: one two \n(working)`)
    page.unmount()

    const reloaded = mount(context, { client: clientFor(user), conversationId })
    await reloaded.shows(`user: ${user}\nassistant: one two \n(working)`)
    proxy.cutAll()
    await until('the page to reconnect', () => (reloaded.chat().connected ? true : undefined))
    await reloaded.chat().stop()
    await reloaded.shows(`user: ${user}\nassistant: one two \n(ready)`)
    assert.equal(reloaded.chat().runs[0]?.status, 'cancelled')
  })

  test('asks a person, in two pages at once', async (context) => {
    const user = someone()
    const conversationId = `conv-${user}`
    await server.provider.script([calls(['remember_note', { text: 'milk' }]), says('Noted.')], user)
    const page = mount(context, { client: clientFor(user), conversationId })
    await page.shows('(ready)')
    void page.chat().send(user)
    await page.shows(`user: ${user}\nremember_note: awaiting_input\n(awaiting_input)`)
    const other = mount(context, { client: clientFor(user), conversationId })
    await other.shows(`user: ${user}\nremember_note: awaiting_input\n(awaiting_input)`)

    const [request] = openRequests(other.chat().runs[0] ?? { blocks: [] })
    assert.ok(request?.type === 'tool')
    await other.chat().confirm(request.confirmationId ?? '')
    const done = `user: ${user}\nremember_note: succeeded\nassistant: Noted.\n(ready)`
    await page.shows(done)
    await other.shows(done)
    await page.chat().reject(request.confirmationId ?? '')
    await page.shows(done.replace('(ready)', '(ready, tool_confirmation_resolved)'))
  })

  test('executes the tools of the page, once', async (context) => {
    const user = someone()
    await server.provider.script([calls(['locate', {}]), calls(['fail', {}]), says('Nice place.')], user)
    const executed: string[] = []
    const tool = (name: string, execute: () => string) => ({ name, inputSchema: { type: 'object' }, execute })
    const tools = [
      tool('locate', () => {
        executed.push('locate')
        return 'Vienna'
      }),
      tool('fail', () => {
        throw new Error('no')
      }),
    ]
    const page = mount(context, { client: clientFor(user), tools })
    await page.shows('(ready)')
    await page.chat().send(user)
    await page.shows(`user: ${user}\nlocate: succeeded\nfail: failed\nassistant: Nice place.\n(ready)`)
    assert.deepEqual(executed, ['locate'])
  })

  test('shows what was refused', async (context) => {
    const page = mount(context, { client: clientFor(someone()), request: { agentId: 'nobody' } })
    await page.shows('(ready)')
    await page.chat().send('hello')
    await page.shows('user: hello\nerror: agent_not_found\n(ready, agent_not_found)')
  })
})
