// A strict stand-in for Anthropic's Messages API. It signs what it thinks, caches prompt prefixes
// at the marks of a request, and refuses what the real API refuses. See strict-server.ts.

import { createHash } from 'node:crypto'
import {
  cachedTokensMin,
  type JsonObject,
  Refusal,
  refuseUnknown,
  serveStrict,
  signatureOf,
  tokensOf,
  checkCall,
  checkFile,
} from './strict-server.ts'

const bodyFields = (
  'model messages max_tokens system metadata stop_sequences stream temperature top_k top_p tools ' +
  'tool_choice thinking service_tier output_config cache_control'
).split(' ')
const blockFields: Record<string, string[]> = {
  text: ['type', 'text', 'cache_control', 'citations'],
  image: ['type', 'source', 'cache_control'],
  document: ['type', 'source', 'title', 'context', 'citations', 'cache_control'],
  thinking: ['type', 'thinking', 'signature'],
  redacted_thinking: ['type', 'data'],
  tool_use: ['type', 'id', 'name', 'input', 'cache_control', 'caller'],
  tool_result: ['type', 'tool_use_id', 'content', 'is_error', 'cache_control'],
  server_tool_use: ['type', 'id', 'name', 'input', 'cache_control', 'caller'],
  web_search_tool_result: ['type', 'tool_use_id', 'content', 'cache_control', 'caller'],
}
/** How many blocks before a mark are searched for an earlier entry. */
const lookback = 20
const marksMax = 4

type Message = { role: string; content: JsonObject[] }

let answers = 0
/** The reasoning that belongs to each call, as it was sent. */
let thinkingOfCall = new Map<string, JsonObject[]>()
let cache = new Set<string>()
/** The calls of answers that were paused: such an answer may be sent back as the last message. */
let pausedCalls = new Set<string>()

const extra = (path: string, name: string) => new Refusal(`${path}${name}: Extra inputs are not permitted`)

serveStrict({
  serves: (path) => path.endsWith('/messages'),

  check(body, headers) {
    if (headers['x-api-key'] === undefined) throw new Refusal('x-api-key header is required', 401)
    if (headers['anthropic-version'] === undefined) throw new Refusal('anthropic-version: header is required')
    refuseUnknown(body, bodyFields, (name) => extra('', name))
    if (!Number.isInteger(body['max_tokens'])) throw new Refusal('max_tokens: Field required')
    if (Array.isArray(body['system'])) for (const block of body['system'] as JsonObject[]) checkText('system', block)
    for (const tool of (body['tools'] ?? []) as JsonObject[])
      checkSchema(`tools.${String(tool['name'])}`, tool['input_schema'])
    const messages = readMessages(body['messages'])
    checkFiles(messages, body['model'])
    checkRoles(messages)
    checkCalls(messages)
    checkSearches(messages, body)
    checkThinking(messages, body)
    return usageOfPrompt(body, messages)
  },

  tooLong: (tokens, window) => `prompt is too long: ${tokens} tokens > ${window} maximum`,

  refusal: ({ message, status }) => ({
    type: 'error',
    error: { type: status === 401 ? 'authentication_error' : 'invalid_request_error', message },
  }),

  overloaded: {
    status: 529,
    body: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    frame: [{ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, 'error'],
  },

  answer(body, usage) {
    answers += 1
    const number = answers
    let index = -1
    const thinking: JsonObject[] = []
    const searches: string[] = []
    const send = (writer: { frame(data: JsonObject, event?: string): void }, data: JsonObject) =>
      writer.frame(data, String(data['type']))
    return {
      begin: (writer) =>
        send(writer, {
          type: 'message_start',
          message: {
            id: `msg_${number}`,
            type: 'message',
            role: 'assistant',
            model: body['model'],
            content: [],
            stop_reason: null,
            stop_sequence: null,
            usage: { ...usage, output_tokens: 1 },
          },
        }),
      block(block, writer) {
        index += 1
        const start = (content_block: JsonObject) => send(writer, { type: 'content_block_start', index, content_block })
        const delta = (one: JsonObject) => send(writer, { type: 'content_block_delta', index, delta: one })
        if ('think' in block) {
          if (block.redacted === true) {
            const redacted = { type: 'redacted_thinking', data: signatureOf(block.think) }
            thinking.push(redacted)
            start(redacted)
          } else {
            thinking.push({ type: 'thinking', thinking: block.think, signature: signatureOf(block.think) })
            start({ type: 'thinking', thinking: '', signature: '' })
            for (const word of block.think.split(/(?<= )/)) delta({ type: 'thinking_delta', thinking: word })
            delta({ type: 'signature_delta', signature: signatureOf(block.think) })
          }
        } else if ('text' in block) {
          start({ type: 'text', text: '' })
          for (const text of block.text) delta({ type: 'text_delta', text })
        } else if ('search' in block) {
          const id = `srvtoolu_${number}_${index}`
          searches.push(id)
          start({ type: 'server_tool_use', id, name: 'web_search', input: {} })
          delta({ type: 'input_json_delta', partial_json: JSON.stringify({ query: block.search }) })
          send(writer, { type: 'content_block_stop', index })
          index += 1
          start({ type: 'web_search_tool_result', tool_use_id: id, content: block.pages.map(foundPage) })
        } else {
          const id = block.id ?? `toolu_${number}_${index}`
          thinkingOfCall.set(id, [...thinking])
          start({ type: 'tool_use', id, name: block.call, input: {} })
          delta({ type: 'input_json_delta', partial_json: JSON.stringify(block.input) })
        }
        send(writer, { type: 'content_block_stop', index })
      },
      finish(reason, writer) {
        if (reason === 'pause') for (const id of searches) pausedCalls.add(id)
        const reasons = { stop: 'end_turn', tool: 'tool_use', length: 'max_tokens', refusal: 'refusal' }
        const stop_reason = { ...reasons, pause: 'pause_turn' }[reason]
        send(writer, {
          type: 'message_delta',
          delta: { stop_reason, stop_sequence: null },
          usage: { ...usage, output_tokens: 7 },
        })
        send(writer, { type: 'message_stop' })
      },
    }
  },

  reset() {
    thinkingOfCall = new Map()
    cache = new Set()
    pausedCalls = new Set()
  },
})

function checkSchema(path: string, schema: unknown): void {
  const { properties, items } = Object(schema) as JsonObject
  for (const [name, property] of Object.entries(Object(properties) as JsonObject)) {
    if (!/^[a-zA-Z0-9_.-]{1,64}$/.test(name))
      throw new Refusal(`${path}.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'`)
    checkSchema(`${path}.properties.${name}`, property)
  }
  if (items !== undefined) checkSchema(`${path}.items`, items)
}

function readMessages(given: unknown): Message[] {
  if (!Array.isArray(given) || given.length === 0) throw new Refusal('messages: at least one message is required')
  return (given as { role: string; content: string | JsonObject[] }[]).map(({ role, content, ...rest }, at) => {
    refuseUnknown(rest, [], (name) => extra(`messages.${at}.`, name))
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
    for (const [index, block] of blocks.entries()) {
      const path = `messages.${at}.content.${index}.`
      const fields = blockFields[String(block['type'])]
      if (fields === undefined) throw new Refusal(`${path}type: Input tag '${String(block['type'])}' is not expected`)
      refuseUnknown(block, fields, (name) => extra(path, name))
      checkText('messages', block)
    }
    if (blocks.length === 0) throw new Refusal(`messages.${at}: all messages must have non-empty content`)
    return { role, content: blocks }
  })
}

function checkText(where: string, block: JsonObject): void {
  if (block['type'] !== 'text') return
  if (block['text'] === '') throw new Refusal(`${where}: text content blocks must be non-empty`)
  if (String(block['text']).trim() === '')
    throw new Refusal(`${where}: text content blocks must contain non-whitespace text`)
}

function checkFiles(messages: Message[], model: unknown): void {
  for (const { role, content } of messages)
    for (const block of content) {
      const nested = block['type'] === 'tool_result' && Array.isArray(block['content']) ? block['content'] : []
      for (const one of [block, ...(nested as JsonObject[])]) {
        if (one['type'] !== 'image' && one['type'] !== 'document') continue
        if (role !== 'user') throw new Refusal('messages: images and documents are allowed in user messages only')
        const source = one['source'] as JsonObject
        if (source['type'] !== 'base64') throw new Refusal(`source.type: '${String(source['type'])}' is not expected`)
        if ((one['type'] === 'document') !== (source['media_type'] === 'application/pdf'))
          throw new Refusal(`source.media_type: '${String(source['media_type'])}' is not expected`)
        checkFile(model, source['media_type'], source['data'])
      }
    }
}

function checkRoles(messages: Message[]): void {
  for (const { role } of messages)
    if (role !== 'user' && role !== 'assistant') throw new Refusal(`messages: Unexpected role "${role}"`)
  if (messages[0]?.role !== 'user') throw new Refusal('messages: first message must use the "user" role')
  for (const [at, { role }] of messages.entries())
    if (at > 0 && messages[at - 1]?.role === role)
      throw new Refusal('messages: roles must alternate between "user" and "assistant"')
  const paused = ofType(messages.at(-1), 'server_tool_use').some((block) => pausedCalls.has(String(block['id'])))
  if (messages.at(-1)?.role !== 'user' && !paused)
    throw new Refusal(
      'This model does not support assistant message prefill. The conversation must end with a user message.',
    )
}

const ofType = (message: Message | undefined, type: string) =>
  (message?.content ?? []).filter((block) => block['type'] === type)

function checkCalls(messages: Message[]): void {
  const ids = new Set<unknown>()
  for (const [at, message] of messages.entries()) {
    for (const { name, input } of ofType(message, 'tool_use')) checkCall(`messages.${at}.tool_use`, name, input)
    const calls = ofType(message, 'tool_use').map((block) => block['id'])
    for (const id of calls) {
      if (!/^[a-zA-Z0-9_-]+$/.test(String(id)))
        throw new Refusal(`messages.${at}.content: String should match pattern '^[a-zA-Z0-9_-]+$'`)
      if (ids.has(id)) throw new Refusal(`messages.${at}: \`tool_use\` ids must be unique`)
      ids.add(id)
    }
    const results = ofType(messages[at + 1], 'tool_result').map((block) => block['tool_use_id'])
    const missing = calls.filter((id) => !results.includes(id))
    if (missing.length > 0)
      throw new Refusal(
        `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.map(String).join(', ')}.`,
      )
    const before = ofType(messages[at - 1], 'tool_use').map((block) => block['id'])
    for (const result of ofType(message, 'tool_result'))
      if (!before.includes(result['tool_use_id']))
        throw new Refusal(
          `messages.${at}.content.0: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${String(result['tool_use_id'])}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
        )
    const firstOther = message.content.findIndex((block) => block['type'] !== 'tool_result')
    if (firstOther !== -1 && message.content.slice(firstOther).some((block) => block['type'] === 'tool_result'))
      throw new Refusal(`messages.${at}: tool_result blocks must come first`)
  }
}

const foundPage = ({ url, title }: { url: string; title: string }) => ({
  type: 'web_search_result',
  url,
  title,
  page_age: null,
  encrypted_content: signatureOf(url),
})

/** Searches come back as they were sent, with what only the provider can read, and only if the tool is still offered. */
function checkSearches(messages: Message[], body: JsonObject): void {
  const offered = ((body['tools'] ?? []) as JsonObject[]).some(({ type }) => String(type).startsWith('web_search_'))
  for (const [at, message] of messages.entries()) {
    const results = ofType(message, 'web_search_tool_result')
    for (const { id } of ofType(message, 'server_tool_use')) {
      if (!offered) throw new Refusal(`messages.${at}: \`server_tool_use\` needs the tool web_search`)
      if (!results.some((result) => result['tool_use_id'] === id))
        throw new Refusal(
          `messages.${at}: \`web_search\` tool use with id ${String(id)} was found without a corresponding \`web_search_tool_result\` block`,
        )
    }
    for (const { content } of results)
      for (const page of content as JsonObject[])
        if (page['encrypted_content'] !== signatureOf(String(page['url'])))
          throw new Refusal(`messages.${at}: Invalid \`encrypted_content\` in \`search_result\` block`)
  }
}

function checkThinking(messages: Message[], body: JsonObject): void {
  const thinking = body['thinking'] as { type: string; budget_tokens?: number } | undefined
  for (const [at, message] of messages.entries())
    for (const [index, block] of message.content.entries()) {
      const path = `messages.${at}.content.${index}`
      if (block['type'] === 'thinking' && (block['signature'] === undefined || block['signature'] === ''))
        throw new Refusal(`${path}.thinking.signature: Field required`)
      if (block['type'] === 'thinking' && block['signature'] !== signatureOf(String(block['thinking'])))
        throw new Refusal(`${path}: Invalid \`signature\` in \`thinking\` block`)
    }
  if (thinking === undefined || thinking.type === 'disabled') return
  if (thinking.type === 'enabled' && !((thinking.budget_tokens ?? 0) >= 1024))
    throw new Refusal('thinking.enabled.budget_tokens: Input should be greater than or equal to 1024')
  if (thinking.type === 'enabled' && !(Number(body['max_tokens']) > (thinking.budget_tokens ?? 0)))
    throw new Refusal('`max_tokens` must be greater than `thinking.budget_tokens`.')
  if (body['temperature'] !== undefined && body['temperature'] !== 1)
    throw new Refusal('`temperature` may only be set to 1 when thinking is enabled.')
  // The turn that is going on: everything after the last message of the user that is no tool result.
  const turn = messages.findLastIndex(({ role, content }) => role === 'user' && content[0]?.['type'] !== 'tool_result')
  const started = messages.findIndex(({ role }, at) => at > turn && role === 'assistant')
  for (const [at, message] of messages.entries()) {
    const calls = ofType(message, 'tool_use')
    if (at < turn || calls.length === 0) continue
    // What was thought before the last call of the answer. A turn that begins with the call of another model has no thought.
    const sent = thinkingOfCall.get(String(calls.at(-1)?.['id']))
    if (sent === undefined ? at !== started : sent.length === 0) continue
    const first = message.content[0]?.['type']
    if (first !== 'thinking' && first !== 'redacted_thinking')
      throw new Refusal(
        `messages.${at}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${String(first)}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`,
      )
    const given = message.content.filter(({ type }) => type === 'thinking' || type === 'redacted_thinking')
    if (JSON.stringify(given) !== JSON.stringify(sent))
      throw new Refusal(
        `messages.${at}.content: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified.`,
      )
  }
}

function usageOfPrompt(body: JsonObject, messages: Message[]): JsonObject {
  const system = typeof body['system'] === 'string' ? [{ type: 'text', text: body['system'] }] : body['system']
  const blocks = [
    ...((body['tools'] ?? []) as JsonObject[]),
    ...((system ?? []) as JsonObject[]),
    ...messages.flatMap(({ role, content }) => content.map((block) => ({ ...block, role }))),
  ].map(({ cache_control: mark, ...block }: JsonObject) => ({ mark, block }))
  if (blocks.filter(({ mark }) => mark !== undefined).length > marksMax)
    throw new Refusal(`A maximum of ${marksMax} blocks with cache_control may be provided.`)

  const prefixes: { key: string; tokens: number }[] = []
  const hash = createHash('sha256')
  let tokens = 0
  for (const { block } of blocks) {
    hash.update(JSON.stringify(block))
    tokens += tokensOf(block)
    prefixes.push({ key: hash.copy().digest('hex'), tokens })
  }
  let read = 0
  let written = 0
  for (const [at, { mark }] of blocks.entries()) {
    if (mark === undefined) continue
    for (let back = at; back >= Math.max(0, at - lookback); back -= 1) {
      const prefix = prefixes[back]
      if (prefix !== undefined && cache.has(prefix.key)) read = Math.max(read, prefix.tokens)
    }
    written = prefixes[at]?.tokens ?? 0
  }
  for (const [at, { mark }] of blocks.entries()) {
    const prefix = prefixes[at]
    if (mark !== undefined && prefix !== undefined && prefix.tokens >= cachedTokensMin) cache.add(prefix.key)
  }
  if (written < cachedTokensMin) written = 0
  return {
    input_tokens: tokens - Math.max(read, written),
    cache_creation_input_tokens: Math.max(0, written - read),
    cache_read_input_tokens: read,
  }
}
