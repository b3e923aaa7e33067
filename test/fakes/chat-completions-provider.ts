// A strict stand-in for a server with chat completions that shows its reasoning, as DeepSeek's
// does: within a tool loop it wants the reasoning of each message with calls back, word for word.
// See strict-server.ts.

import { checkCall, type JsonObject, PrefixCache, Refusal, refuseUnknown, serveStrict } from './strict-server.ts'

const bodyFields = (
  'model messages stream stream_options tools tool_choice temperature top_p max_tokens response_format stop thinking ' +
  'frequency_penalty presence_penalty logprobs top_logprobs user'
).split(' ')
const messageFields: Record<string, string[]> = {
  system: ['role', 'content', 'name'],
  user: ['role', 'content', 'name'],
  assistant: ['role', 'content', 'name', 'tool_calls', 'reasoning_content'],
  tool: ['role', 'content', 'tool_call_id'],
}

type ToolCall = { id: string; type: string; function: { name: string; arguments: string } }
type Message = JsonObject & { role: string; content: unknown; tool_calls?: ToolCall[]; tool_call_id?: string }

let answers = 0
/** The reasoning that led to each call. */
let reasoningOfCall = new Map<string, string>()
const cache = new PrefixCache()

serveStrict({
  serves: (path) => path.endsWith('/chat/completions'),

  check(body, headers) {
    if (headers['authorization'] !== 'Bearer test-key') throw new Refusal('Authentication Fails, no such user', 401)
    if (headers['x-team'] !== 'walks') throw new Refusal('The header x-team is missing')
    refuseUnknown(body, bodyFields, (name) => new Refusal(`Unrecognized request argument supplied: ${name}`))
    if (body['stream'] !== true) throw new Refusal('This stand-in only streams')
    const thinking = body['thinking'] as { type?: unknown } | undefined
    if (thinking !== undefined && thinking.type !== 'enabled' && thinking.type !== 'disabled')
      throw new Refusal('thinking.type must be enabled or disabled')
    checkMessages(body['messages'] as Message[])
    const { tokens, cached } = cache.read([body['tools'], ...(body['messages'] as Message[])])
    return { prompt_tokens: tokens, prompt_tokens_details: { cached_tokens: cached } }
  },

  tooLong: (tokens, window) =>
    `This model's maximum context length is ${window} tokens. However, your messages resulted in ${tokens} tokens.`,

  refusal: ({ message, status }) => ({
    error: {
      message,
      type: status === 401 ? 'authentication_error' : 'invalid_request_error',
      param: null,
      code: null,
    },
  }),

  overloaded: {
    status: 503,
    body: { error: { message: 'Service is too busy.', type: 'server_error', param: null, code: null } },
    frame: [{ error: { message: 'Service is too busy.', type: 'server_error', code: 'server_error' } }],
  },

  answer(body, usage) {
    answers += 1
    const number = answers
    let reasoning = ''
    let calls = 0
    const chunk = (delta: JsonObject, more: JsonObject = {}) => ({
      id: `chatcmpl_${number}`,
      object: 'chat.completion.chunk',
      created: 1_700_000_000,
      model: body['model'],
      choices: [{ index: 0, delta, finish_reason: null, ...more }],
    })
    return {
      begin: (writer) => writer.frame(chunk({ role: 'assistant', content: null })),
      block(block, writer) {
        if ('think' in block) {
          if (block.redacted === true) return
          reasoning += block.think
          for (const word of block.think.split(/(?<= )/)) writer.frame(chunk({ reasoning_content: word }))
        } else if ('text' in block) {
          for (const content of block.text) writer.frame(chunk({ content }))
        } else if ('call' in block) {
          const id = block.id ?? `call_${number}_${calls}`
          if (reasoning !== '') reasoningOfCall.set(id, reasoning)
          const index = calls++
          const called = { index, id, type: 'function', function: { name: block.call, arguments: '' } }
          writer.frame(chunk({ tool_calls: [called] }))
          writer.frame(chunk({ tool_calls: [{ index, function: { arguments: JSON.stringify(block.input) } }] }))
        } else throw new Error('chat completions have no searches')
      },
      finish(reason, writer) {
        const reasons = { stop: 'stop', pause: 'stop', tool: 'tool_calls', length: 'length', refusal: 'content_filter' }
        writer.frame(chunk({}, { finish_reason: reasons[reason] }))
        writer.frame({ ...chunk({}), choices: [], usage: { ...usage, completion_tokens: 7, total_tokens: 7 } })
      },
    }
  },

  reset() {
    reasoningOfCall = new Map()
    cache.reset()
  },
})

function checkMessages(messages: Message[]): void {
  if (!Array.isArray(messages) || messages.length === 0) throw new Refusal('messages must not be empty')
  const turn = messages.findLastIndex(({ role }) => role === 'user')
  let open: string[] = []
  for (const [at, message] of messages.entries()) {
    const fields = messageFields[message.role]
    if (fields === undefined) throw new Refusal(`messages[${at}].role: unknown variant ${message.role}`)
    refuseUnknown(message, fields, (name) => new Refusal(`messages[${at}]: unknown field ${name}`))
    if (message.role === 'tool') {
      if (!open.includes(String(message.tool_call_id)))
        throw new Refusal("Messages with role 'tool' must be a response to a preceding message with 'tool_calls'")
      open = open.filter((id) => id !== message.tool_call_id)
      continue
    }
    if (open.length > 0)
      throw new Refusal("An assistant message with 'tool_calls' must be followed by tool messages for each of them")
    if (message.role !== 'assistant') continue
    const called = message.tool_calls ?? []
    for (const { id, function: made } of called) {
      checkCall(`messages[${at}].tool_calls`, made.name, JSON.parse(made.arguments))
      if (id.length > 40)
        throw new Refusal(
          `Invalid 'messages[${at}].tool_calls[0].id': string too long. Expected at most 40 characters.`,
        )
    }
    open = called.map(({ id }) => id)
    const wanted = called.map(({ id }) => reasoningOfCall.get(id)).find((one) => one !== undefined)
    if (at > turn && wanted !== undefined && message['reasoning_content'] !== wanted)
      throw new Refusal(`Missing \`reasoning_content\` field in the assistant message at message index ${at}`)
    if (called.length === 0 && message['reasoning_content'] !== undefined)
      throw new Refusal(`messages[${at}]: reasoning_content is accepted only with tool calls`)
  }
  if (open.length > 0) throw new Refusal('A tool call has no response')
}
