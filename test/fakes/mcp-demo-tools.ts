// The tools of both fake MCP servers. Their effects are lines in the file named by
// FAKE_MCP_FILE, so that a test can count them from outside. The list comes in pages
// of three. `add_item` with the text `a tool` adds the tool `added` to the list.

import { appendFileSync } from 'node:fs'
import { type CallToolResult, ProtocolError, ProtocolErrorCode, Server, type Tool } from '@modelcontextprotocol/server'

const pageSize = 3

const text = { type: 'object' as const, properties: { text: { type: 'string' } }, additionalProperties: false }

export const demoTools: Tool[] = [
  {
    name: 'lookup',
    title: 'Look something up',
    description: 'Looks up a word.',
    annotations: { readOnlyHint: true },
    inputSchema: {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: { word: { type: 'string', minLength: 1 }, when: { type: 'string', format: 'date' } },
      required: ['word'],
    },
  },
  { name: 'add_item', description: 'Adds an item.', annotations: { idempotentHint: true }, inputSchema: text },
  {
    name: 'charge',
    title: 'Charge a card',
    description: 'Charges a card.',
    annotations: { destructiveHint: true },
    inputSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { amount: { type: 'number', minimum: 1 }, die: { type: 'boolean' } },
      required: ['amount'],
    },
    // The answer does not fit this, which must not turn a charge that was made into an error.
    outputSchema: { type: 'object', properties: { receipt: { type: 'string' } }, required: ['receipt'] },
  },
  { name: 'broken', description: 'Always reports an error.', inputSchema: text },
  {
    name: 'slow',
    description: 'Reports progress and never ends.',
    annotations: { readOnlyHint: true },
    inputSchema: text,
  },
  {
    name: 'environment',
    description: 'Shows its environment.',
    annotations: { readOnlyHint: true },
    inputSchema: text,
  },
  { name: 'parts', description: 'Answers in many forms.', annotations: { readOnlyHint: true }, inputSchema: text },
  {
    name: 'process_id',
    description: 'Tells one process from the next.',
    annotations: { readOnlyHint: true },
    inputSchema: text,
  },
  {
    name: 'odd name/ü',
    description: 'Has a name no provider accepts.',
    annotations: { readOnlyHint: true },
    inputSchema: text,
  },
  {
    name: 'bad_schema',
    description: 'Cannot be checked.',
    inputSchema: { type: 'object', properties: { a: { type: 'nonsense' } } },
  },
]

/** Called when the list has changed, for servers that do not have one connection for each client. */
export const listChangeListeners = new Set<() => void>()

export function createDemoServer(): Server {
  const server = new Server({ name: 'demo', version: '1.0.0' }, { capabilities: { tools: { listChanged: true } } })

  server.setRequestHandler('tools/list', ({ params }) => {
    const start = Number(params?.cursor ?? 0)
    const end = start + pageSize
    return { tools: demoTools.slice(start, end), ...(end < demoTools.length ? { nextCursor: String(end) } : {}) }
  })

  server.setRequestHandler('tools/call', async ({ params }, context): Promise<CallToolResult> => {
    const input = params.arguments ?? {}
    switch (params.name) {
      case 'lookup':
        return {
          content: [{ type: 'text', text: JSON.stringify({ meaning: `about ${String(input.word)}` }) }],
          structuredContent: { meaning: `about ${String(input.word)}` },
        }
      case 'add_item':
        record(`add_item ${String(params._meta?.idempotencyKey)}`)
        if (input.text === 'a tool') {
          if (!demoTools.some(({ name }) => name === 'added'))
            demoTools.push({ name: 'added', description: 'Was added later.', inputSchema: text })
          if (listChangeListeners.size === 0) await server.sendToolListChanged()
          for (const listener of listChangeListeners) listener()
        }
        return { content: [{ type: 'text', text: 'added' }] }
      case 'charge':
        record(`charge ${String(input.amount)}`)
        if (input.die === true) process.kill(process.pid, 'SIGKILL')
        return { content: [{ type: 'text', text: `charged ${String(input.amount)}` }] }
      case 'broken':
        return { isError: true, content: [{ type: 'text', text: 'the shelf is empty' }] }
      case 'slow': {
        const progressToken = context.mcpReq._meta?.progressToken
        if (progressToken !== undefined) {
          await context.mcpReq.notify({
            method: 'notifications/progress',
            params: { progressToken, progress: 1, message: 'halfway' },
          })
        }
        await new Promise((resolve) => context.mcpReq.signal.addEventListener('abort', resolve, { once: true }))
        record('slow cancelled')
        return { content: [] }
      }
      case 'environment':
        return { content: [{ type: 'text', text: JSON.stringify(process.env) }] }
      case 'parts':
        return {
          content: [
            { type: 'text', text: 'first' },
            { type: 'image', mimeType: 'image/png', data: Buffer.from('12345').toString('base64') },
            { type: 'resource_link', name: 'a file', uri: 'file:///a' },
            { type: 'resource', resource: { uri: 'file:///b', text: 'inside' } },
          ],
          structuredContent: { count: 4 },
        }
      case 'added':
        return { content: [{ type: 'text', text: 'called the added tool' }] }
      case 'process_id':
        return { content: [{ type: 'text', text: String(process.pid) }] }
      case 'odd name/ü':
        return { content: [{ type: 'text', text: 'found under its own name' }] }
      default:
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, `no tool ${params.name}`)
    }
  })
  return server
}

function record(line: string): void {
  if (process.env.FAKE_MCP_FILE !== undefined) appendFileSync(process.env.FAKE_MCP_FILE, `${line}\n`)
}
