// The demo model's summary of a conversation: the beginning of each thing that the user said. Pure.

import { type ModelRequest, summaryTask } from './model.ts'

const linesMax = 20
const lineCharsMax = 80
/** Only the beginning is read, because a very long message would block the event loop for all other users. */
const readCharsMax = 64 * 1024

/** Undefined if the request does not ask for a summary. */
export function planDemoSummary({ messages }: ModelRequest): string | undefined {
  const [task, given] = messages
  if (task?.role !== 'system' || !task.content.startsWith(summaryTask)) return undefined
  const said = (given?.content ?? '')
    .slice(0, readCharsMax)
    .split('\n')
    .filter((line) => line.startsWith('User: ') || line.startsWith('- '))
    .map((line) =>
      line
        .replace(/^(?:User: |- )/, '')
        .slice(0, lineCharsMax)
        .toWellFormed(),
    )
  return ['The user said:', ...said.slice(-linesMax).map((line) => `- ${line}`)].join('\n')
}
