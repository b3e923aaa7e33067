// A strict stand-in for OpenAI's Responses API without storage: it encrypts what it thinks, and
// refuses what the real API refuses of a stateless client. See strict-server.ts.

import {
  type JsonObject,
  PrefixCache,
  Refusal,
  refuseUnknown,
  serveStrict,
  signatureOf,
  checkCall,
  checkDataUrl,
} from './strict-server.ts'

const bodyFields = (
  'model input instructions stream store include tools tool_choice temperature top_p max_output_tokens ' +
  'metadata parallel_tool_calls reasoning service_tier text truncation user prompt_cache_key ' +
  'safety_identifier top_logprobs stream_options max_tool_calls'
).split(' ')
const itemFields: Record<string, string[]> = {
  message: ['type', 'role', 'content', 'id', 'status', 'phase'],
  function_call: ['type', 'call_id', 'name', 'arguments', 'id', 'status', 'namespace'],
  function_call_output: ['type', 'call_id', 'output', 'id', 'status'],
  reasoning: ['type', 'id', 'encrypted_content', 'summary', 'content', 'status'],
  web_search_call: ['type', 'id', 'status', 'action'],
}
const roles = ['user', 'assistant', 'system', 'developer']

let answers = 0
/** The reasoning item that the real API requires before each call, and the model that made both. */
let reasoningOfCall = new Map<string, { reasoning: string; model: unknown }>()
const cache = new PrefixCache()

const thinks = (body: JsonObject) => /^(?:gpt-5|o\d)/.test(String(body['model']))

serveStrict({
  serves: (path) => path.endsWith('/responses'),

  check(body, headers) {
    if (headers['authorization'] === undefined) throw new Refusal('You didn’t provide an API key.', 401)
    refuseUnknown(body, bodyFields, (name) => new Refusal(`Unknown parameter: '${name}'.`))
    if (body['store'] !== false) throw new Refusal('This stand-in stores nothing: send store: false.')
    if (thinks(body) && !((body['include'] ?? []) as string[]).includes('reasoning.encrypted_content'))
      throw new Refusal('This stand-in wants include: ["reasoning.encrypted_content"] for a model that thinks.')
    for (const name of ['temperature', 'top_p'])
      if (thinks(body) && body[name] !== undefined)
        throw new Refusal(`Unsupported parameter: '${name}' is not supported with this model.`)
    if (body['max_output_tokens'] !== undefined && Number(body['max_output_tokens']) < 16)
      throw new Refusal("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.")
    checkInput(body['input'], body['model'])
    checkFiles(body['input'] as JsonObject[], body['model'])
    const { tokens, cached } = cache.read([body['instructions'], body['tools'], ...(body['input'] as JsonObject[])])
    return { input_tokens: tokens, input_tokens_details: { cached_tokens: cached } }
  },

  tooLong: (tokens, window) =>
    `Your input exceeds the context window of this model (${tokens} > ${window}). Please adjust your input and try again.`,

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
    body: { error: { message: 'The server is currently overloaded.', type: 'server_error', param: null, code: null } },
    frame: [
      {
        type: 'error',
        sequence_number: 99,
        error: {
          type: 'server_error',
          code: 'server_error',
          message: 'The server is currently overloaded.',
          param: null,
        },
      },
      'error',
    ],
  },

  answer(body, usage) {
    answers += 1
    const number = answers
    const output: JsonObject[] = []
    let sequence = 0
    let reasoning: string | undefined
    type Frames = { frame(data: JsonObject, event?: string): void }
    const send = (writer: Frames, type: string, data: JsonObject) =>
      writer.frame({ type, sequence_number: sequence++, ...data }, type)
    const response = (status: string, more: JsonObject = {}) => ({
      id: `resp_${number}`,
      object: 'response',
      created_at: 1_700_000_000,
      model: body['model'],
      status,
      output,
      error: null,
      incomplete_details: null,
      ...more,
    })
    return {
      begin: (writer) => send(writer, 'response.created', { response: response('in_progress') }),
      block(block, writer) {
        const output_index = output.length
        const added = (item: JsonObject) => send(writer, 'response.output_item.added', { output_index, item })
        const done = (item: JsonObject) => {
          output.push(item)
          send(writer, 'response.output_item.done', { output_index, item })
        }
        if ('think' in block) {
          const id = `rs_${number}_${output_index}`
          reasoning = id
          added({ type: 'reasoning', id, summary: [], encrypted_content: '' })
          const summary = block.redacted === true ? [] : [{ type: 'summary_text', text: block.think }]
          if (block.redacted !== true) {
            const at = { item_id: id, output_index, summary_index: 0 }
            send(writer, 'response.reasoning_summary_part.added', { ...at, part: { type: 'summary_text', text: '' } })
            for (const delta of block.think.split(/(?<= )/))
              send(writer, 'response.reasoning_summary_text.delta', { ...at, delta })
            send(writer, 'response.reasoning_summary_part.done', { ...at, part: summary[0] })
          }
          done({ type: 'reasoning', id, summary, encrypted_content: `${id}.${signatureOf(id)}` })
        } else if ('text' in block) {
          const id = `msg_${number}_${output_index}`
          const at = { item_id: id, output_index, content_index: 0 }
          added({ type: 'message', id, role: 'assistant', status: 'in_progress', content: [] })
          for (const delta of block.text) send(writer, 'response.output_text.delta', { ...at, delta, logprobs: [] })
          const content = [{ type: 'output_text', text: block.text.join(''), annotations: [], logprobs: [] }]
          done({ type: 'message', id, role: 'assistant', status: 'completed', content })
        } else if ('search' in block) {
          const id = `ws_${number}_${output_index}`
          const sources = block.pages.map(({ url }) => ({ type: 'url', url }))
          added({ type: 'web_search_call', id, status: 'in_progress', action: { type: 'search' } })
          const action = { type: 'search', query: block.search, queries: [block.search], sources }
          done({ type: 'web_search_call', id, status: 'completed', action })
        } else {
          const id = `fc_${number}_${output_index}`
          const call_id = block.id ?? `call_${number}_${output_index}`
          if (reasoning !== undefined) reasoningOfCall.set(call_id, { reasoning, model: body['model'] })
          const item = { type: 'function_call', id, call_id, name: block.call }
          added({ ...item, arguments: '', status: 'in_progress' })
          const given = JSON.stringify(block.input)
          send(writer, 'response.function_call_arguments.delta', { item_id: id, output_index, delta: given })
          send(writer, 'response.function_call_arguments.done', { item_id: id, output_index, arguments: given })
          done({ ...item, arguments: given, status: 'completed' })
        }
      },
      finish(reason, writer) {
        const spent = {
          usage: {
            ...usage,
            output_tokens: 7,
            output_tokens_details: { reasoning_tokens: 0 },
            total_tokens: 7,
          },
        }
        if (reason === 'length' || reason === 'refusal') {
          const incomplete_details = { reason: reason === 'length' ? 'max_output_tokens' : 'content_filter' }
          send(writer, 'response.incomplete', { response: response('incomplete', { ...spent, incomplete_details }) })
        } else send(writer, 'response.completed', { response: response('completed', spent) })
      },
    }
  },

  reset() {
    reasoningOfCall = new Map()
    cache.reset()
  },
})

function checkInput(given: unknown, model: unknown): void {
  if (!Array.isArray(given) || given.length === 0) throw new Refusal("Missing required parameter: 'input'.")
  const items = given as JsonObject[]
  const typeOf = (item: JsonObject) => String(item['type'] ?? 'message')
  for (const [at, item] of items.entries()) {
    const fields = itemFields[typeOf(item)]
    if (typeOf(item) === 'item_reference')
      throw new Refusal(
        `Item with id '${String(item['id'])}' not found. Items are not persisted when \`store\` is set to false.`,
        404,
      )
    if (fields === undefined) throw new Refusal(`Invalid value: '${String(item['type'])}'.`)
    refuseUnknown(item, fields, (name) => new Refusal(`Unknown parameter: 'input[${at}].${name}'.`))
    if (typeOf(item) === 'message' && !roles.includes(String(item['role'])))
      throw new Refusal(`Invalid value: '${String(item['role'])}'. Supported values are: ${roles.join(', ')}.`)
    if (String(item['call_id'] ?? '').length > 64)
      throw new Refusal(
        `Invalid 'input[${at}].call_id': string too long. Expected a string with maximum length 64, but got a string with length ${String(item['call_id']).length} instead.`,
      )
    if (typeOf(item) === 'reasoning') checkReasoning(item, items[at + 1])
  }
  const idsOf = (type: string) => items.filter((item) => typeOf(item) === type).map((item) => item['call_id'])
  const outputs = idsOf('function_call_output')
  const called = new Set<unknown>()
  let seen: unknown[] = []
  for (const item of items) {
    if (typeOf(item) === 'reasoning') seen.push(item['id'])
    if (typeOf(item) === 'message' && item['role'] === 'user') seen = []
    if (typeOf(item) === 'function_call') {
      checkCall('input.function_call', item['name'], JSON.parse(String(item['arguments'])))
      called.add(item['call_id'])
      if (!outputs.includes(item['call_id']))
        throw new Refusal(`No tool output found for function call ${String(item['call_id'])}.`)
      const made = reasoningOfCall.get(String(item['call_id']))
      const required = made?.model === model ? made?.reasoning : undefined
      if (required !== undefined && isInTurn(items, item) && !seen.includes(required))
        throw new Refusal(
          `Item '${String(item['id'] ?? item['call_id'])}' of type 'function_call' was provided without its required 'reasoning' item: '${required}'.`,
        )
    }
    if (typeOf(item) === 'function_call_output' && !called.has(item['call_id']))
      throw new Refusal(`No tool call found for function call output with call_id ${String(item['call_id'])}.`)
  }
}

/** The parts of messages and of the outputs of functions. */
function checkFiles(items: JsonObject[], model: unknown): void {
  for (const item of items) {
    const content = item['type'] === 'function_call_output' ? item['output'] : item['content']
    if (!Array.isArray(content)) continue
    for (const part of content as JsonObject[]) {
      const known = ['input_text', 'output_text', 'refusal', 'input_image', 'input_file']
      if (!known.includes(String(part['type']))) throw new Refusal(`Invalid value: '${String(part['type'])}'.`)
      if (part['type'] === 'input_image') checkDataUrl(model, part['image_url'])
      if (part['type'] === 'input_file') {
        if (typeof part['filename'] !== 'string') throw new Refusal("Missing required parameter: 'filename'.")
        checkDataUrl(model, part['file_data'])
      }
    }
  }
}

function checkReasoning(item: JsonObject, next: JsonObject | undefined): void {
  const id = String(item['id'])
  if (item['encrypted_content'] !== `${id}.${signatureOf(id)}`)
    throw new Refusal(`The encrypted content for item ${id} could not be verified.`)
  const follows =
    next?.['type'] === 'reasoning' ||
    next?.['type'] === 'function_call' ||
    next?.['type'] === 'web_search_call' ||
    next?.['role'] === 'assistant'
  if (!follows) throw new Refusal(`Item '${id}' of type 'reasoning' was provided without its required following item.`)
}

/** Whether no message of the user comes after the item. */
function isInTurn(items: JsonObject[], item: JsonObject): boolean {
  return !items.slice(items.indexOf(item)).some((later) => later['role'] === 'user')
}
