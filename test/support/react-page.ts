// React in a document of happy-dom: mounts a component that draws lines of text, and reads what the
// document shows. The hooks under test are loaded after the document is there, as in a browser.

import { createRequire } from 'node:module'
import { Window } from 'happy-dom'
import type { createElement as CreateElement } from 'react'
import { until } from './test-server.ts'

export type Page<Hook> = {
  /** What the hook returned at the last render. */
  hook(): Hook
  text(): string
  /** Waits until the document shows this text. */
  shows(text: string): Promise<void>
  unmount(): void
}

export type Pages = {
  /** Resolves after the first render. */
  mount<Hook>(use: () => Hook, linesOf: (hook: Hook) => string[]): Promise<Page<Hook>>
  close(): Promise<void>
}

/** Changes the globals of the process, so a test file that uses it has a process of its own. */
export async function openPages(): Promise<Pages> {
  const window = new Window()
  Object.assign(globalThis, { window, document: window.document, IS_REACT_ACT_ENVIRONMENT: false })
  const { createElement }: { createElement: typeof CreateElement } = await import('react')
  // It has no types of its own.
  const { createRoot } = createRequire(import.meta.url)('react-dom/client') as {
    createRoot(container: unknown): { render(element: unknown): void; unmount(): void }
  }
  return {
    async mount<Hook>(use: () => Hook, linesOf: (hook: Hook) => string[]) {
      let newest: { hook: Hook } | undefined
      function Component() {
        const hook = use()
        newest = { hook }
        return createElement(
          'ul',
          null,
          linesOf(hook).map((line, index) => createElement('li', { key: index }, line)),
        )
      }
      const container = window.document.createElement('main')
      const root = createRoot(container)
      root.render(createElement(Component))
      const first = await until('the first render', () => newest)
      const text = () => [...container.querySelectorAll('li')].map((item) => item.textContent).join('\n')
      return {
        text,
        hook: () => (newest ?? first).hook,
        async shows(wanted) {
          await until(`the page to show ${wanted}`, () => (text().includes(wanted) ? true : undefined)).catch(
            (error: unknown) => {
              throw new Error(`The page shows:\n${text()}`, { cause: error })
            },
          )
        },
        unmount: () => root.unmount(),
      }
    },
    close: () => window.happyDOM.close(),
  }
}
