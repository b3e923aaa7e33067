// The values of `?format=` and their dialects.

import { a2aDialect } from '../dialects/a2a/a2a.ts'
import { agUiDialect } from '../dialects/ag-ui/ag-ui.ts'
import { agentDialect } from '../dialects/agent/agent.ts'
import { chunksDialect } from '../dialects/chunks/chunks.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { langGraphDialect } from '../dialects/langgraph/langgraph.ts'
import { fcmpDialect } from '../dialects/fcmp/fcmp.ts'
import { openAiChatDialect } from '../dialects/openai-chat/openai-chat.ts'
import { openAiResponsesDialect } from '../dialects/openai-responses/openai-responses.ts'
import { sessionDialect } from '../dialects/session/session.ts'
import { uiMessageDialect } from '../dialects/ui-message/ui-message.ts'
import { vercelDataDialect } from '../dialects/vercel-data/vercel-data.ts'
import { AppError } from '../errors/app-error.ts'

/** By the value of `?format=`. */
export const formatDialects: Readonly<Record<string, Dialect>> = {
  sse: agentDialect,
  'vercel-ai': vercelDataDialect,
  'ui-message': uiMessageDialect(),
  'ui-message-v5': uiMessageDialect({ sdk: 5 }),
  chunks: chunksDialect(),
  'chunks-ndjson': chunksDialect({ framing: 'ndjson' }),
  fcmp: fcmpDialect(),
  session: sessionDialect,
  a2a: a2aDialect(),
  'a2a-v0.3': a2aDialect({ version: '0.3' }),
  langgraph: langGraphDialect(),
  'openai-chat': openAiChatDialect(),
  'ag-ui': agUiDialect(),
  'openai-responses': openAiResponsesDialect,
}

const [defaultName, ...otherNames] = Object.keys(formatDialects)

/** For descriptions: `a (default), b or c`. */
export const formatNames = `${defaultName} (default), ${otherNames.slice(0, -1).join(', ')} or ${otherNames.at(-1)}`

export function dialectNamed(format: string | undefined): Dialect {
  if (format === undefined || format === '') return agentDialect
  // Old clients append a second query string: `format=sse?chatId=1`.
  const name = format.split('?', 1)[0] ?? ''
  const dialect = Object.hasOwn(formatDialects, name) ? formatDialects[name] : undefined
  if (dialect === undefined) {
    throw new AppError(
      'unknown_format',
      `There is no format ${JSON.stringify(name)}; known are ${Object.keys(formatDialects).join(', ')}.`,
    )
  }
  return dialect
}
