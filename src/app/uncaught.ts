// Contains what tools and hooks of the configuration throw outside of their own promises: in
// a timer, an event handler, a promise that nobody awaits. Node would end the process, and
// with it all runs. The error fails the call that it belongs to, and the server goes on. Any
// other uncaught error still ends the process. Only main.ts uses this: in a program that
// embeds the server, such handlers are that program's decision.

import { currentUserCode } from '../kit/user-code.ts'
import type { Log } from './log.ts'

export function containUserCode(log: Pick<Log, 'error'>): void {
  // Unhandled rejections arrive here too.
  process.on('uncaughtException', (error: unknown) => {
    const code = currentUserCode()
    if (code === undefined) {
      const stack = error instanceof Error ? error.stack : undefined
      process.stderr.write(`${stack ?? `Uncaught ${String(error)}`}\n`)
      process.exit(1)
    }
    log.error({ err: error, code: code.name }, `${code.name} threw an error that it did not catch; its call fails`)
    code.fail(error)
  })
}
