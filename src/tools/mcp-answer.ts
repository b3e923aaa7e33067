// Corrects the answers of an MCP server before the library checks them. The library refuses the
// whole answer to a tool call because of one block that it does not know, although the call has been
// carried out. Here such a block is replaced by a note. The number of values is limited, because
// the library describes each that is not valid in the message of its error.

import { type JSONRPCMessage, specTypeSchemas } from '@modelcontextprotocol/client'
import { valuesInValue } from '../kit/json-depth.ts'
import { issuesSentence } from '../kit/standard-schema.ts'
import { excerpt, quoted } from './excerpt.ts'
import { resultValuesMax } from './plain-json.ts'

/** The `data` of the error response that we create ourselves if nothing in an answer can be read. */
export const unreadable = 'answer_unreadable'

/** Of one page. Far more than are used of a whole list. */
const pageToolsMax = 10_000

/** Returns any other message as it is. Of the results that we ask for, only that of a tool call has content. */
export function readableAnswer(message: JSONRPCMessage): JSONRPCMessage {
  if (!('result' in message)) return message
  const { content, structuredContent, ...rest } = message.result
  if (Array.isArray(rest['tools']) && rest['tools'].length > pageToolsMax) {
    return { ...message, result: { ...message.result, tools: rest['tools'].slice(0, pageToolsMax) } }
  }
  if (content === undefined && structuredContent === undefined) return message
  const blocks = readBlocks(content ?? [])
  const hasStructure = structuredContent !== undefined && structuredContent !== null
  if (blocks.problem !== undefined && blocks.read === 0 && !hasStructure) {
    const error = { code: -32000, message: `Nothing in its content can be read: ${blocks.problem}.`, data: unreadable }
    return { jsonrpc: '2.0', id: message.id, error }
  }
  const result = {
    ...rest,
    content: blocks.content,
    ...(hasStructure ? { structuredContent } : {}),
  }
  return { ...message, result }
}

/** `read` counts the blocks that could be read, and `problem` is that of the first that could not. */
type Blocks = { content: object[]; read: number; problem?: string }

function readBlocks(given: unknown): Blocks {
  if (typeof given === 'string') return { content: [{ type: 'text', text: given }], read: 1 }
  if (!Array.isArray(given)) return { content: [], read: 0, problem: 'it is not a list' }
  const blocks: Blocks = { content: [], read: 0 }
  let valuesLeft = resultValuesMax
  for (const [index, block] of given.entries()) {
    valuesLeft -= valuesInValue(block, valuesLeft)
    if (valuesLeft < 0) {
      const count = given.length - index
      blocks.problem ??= `a result may have ${resultValuesMax} values`
      blocks.content.push(
        note(
          `${count} content ${count === 1 ? 'block is' : 'blocks are'} left out: a result may have ${resultValuesMax} values`,
        ),
      )
      break
    }
    const checked = readBlock(block)
    if ('problem' in checked) {
      blocks.problem ??= checked.problem
      blocks.content.push(note(`a content block is left out: ${checked.problem}`))
    } else {
      blocks.read += 1
      blocks.content.push(checked.block)
    }
  }
  return blocks
}

function readBlock(block: unknown): { block: object } | { problem: string } {
  if (typeof block !== 'object' || block === null) return { problem: 'it is not an object' }
  // These are hints, which we do not use.
  const { annotations: _annotations, _meta, ...needed } = block as Record<string, unknown>
  const { type } = needed
  if (typeof type !== 'string') return { problem: 'it has no type' }
  const schema = Object.hasOwn(schemas, type) ? schemas[type as keyof typeof schemas] : undefined
  if (schema === undefined) return { problem: `its type ${quoted(type, 60)} is not known` }
  const { issues } = schema['~standard'].validate(needed)
  return issues === undefined ? { block: needed } : { problem: excerpt(issuesSentence(issues), 300) }
}

/** Of each type of block. The schema of all of them reports the problems of each. */
const schemas = {
  text: specTypeSchemas.TextContent,
  image: specTypeSchemas.ImageContent,
  audio: specTypeSchemas.AudioContent,
  resource: specTypeSchemas.EmbeddedResource,
  resource_link: specTypeSchemas.ResourceLink,
}

function note(text: string): object {
  return { type: 'text', text: `[${text}]` }
}
