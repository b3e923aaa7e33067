// A strict stand-in for the Gemini API: it signs its function calls, and refuses what the real API
// refuses of Gemini 3. The placeholder for a signature is meant for the calls of other models; unlike the
// real API it refuses it for its own.
// See strict-server.ts.

import {
  type JsonObject,
  PrefixCache,
  Refusal,
  refuseUnknown,
  serveStrict,
  signatureOf,
  checkCall,
  checkFile,
} from './strict-server.ts'

const bodyFields =
  'contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent labels serviceTier'.split(
    ' ',
  )
const partFields = [
  'text',
  'thought',
  'thoughtSignature',
  'functionCall',
  'functionResponse',
  'inlineData',
  'fileData',
  'toolCall',
  'toolResponse',
]

type Content = { role?: string; parts: JsonObject[] }
type Call = { name: string; args: unknown }

const placeholder = 'skip_thought_signature_validator'
/** The calls of this stand-in, with the path of the model that made them. */
let made = new Map<string, string>()
/** A name that no function can have comes back as one that it could have. */
const plain = (name: string) => name.replaceAll(/[^a-zA-Z0-9_-]/g, '_')

const keyOf = ({ name, args }: Call) => JSON.stringify([name, args])

let asked = ''
const cache = new PrefixCache()

serveStrict({
  serves: (path) => path.endsWith(':streamGenerateContent'),

  check(body, headers, path) {
    if (headers['x-goog-api-key'] === undefined) throw new Refusal('Method doesn’t allow unregistered callers.', 403)
    refuseUnknown(body, bodyFields, unknownName)
    const contents = body['contents'] as Content[] | undefined
    if (contents === undefined || contents.length === 0)
      throw new Refusal('* GenerateContentRequest.contents: contents is not specified')
    checkContents(contents, path)
    asked = path
    checkFiles(contents, path)
    const { tokens, cached } = cache.read([body['systemInstruction'], body['tools'], ...contents])
    return { promptTokenCount: tokens, ...(cached > 0 && { cachedContentTokenCount: cached }) }
  },

  tooLong: (tokens, window) =>
    `The input token count (${tokens}) exceeds the maximum number of tokens allowed (${window}).`,

  refusal: ({ message, status }) => ({
    error: { code: status, message, status: status === 403 ? 'PERMISSION_DENIED' : 'INVALID_ARGUMENT' },
  }),

  overloaded: {
    status: 503,
    body: { error: { code: 503, message: 'The model is overloaded. Please try again later.', status: 'UNAVAILABLE' } },
    frame: [{ error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }],
  },

  answer(_body, usage) {
    let calls = 0
    let searches = 0
    const frame = (parts: JsonObject[], more: JsonObject = {}) => ({
      candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
    })
    return {
      begin() {},
      block(block, writer) {
        if ('think' in block) {
          if (block.redacted !== true) writer.frame(frame([{ text: block.think, thought: true }]))
        } else if ('text' in block) {
          for (const text of block.text) writer.frame(frame([{ text }]))
        } else if ('search' in block) {
          const tool = { toolType: 'GOOGLE_SEARCH_WEB', id: `search_${(searches += 1)}` }
          const toolCall = { ...tool, args: { queries: [block.search] } }
          writer.frame(frame([{ toolCall, thoughtSignature: signatureOf(block.search) }]))
          const response = { pages: block.pages.length }
          writer.frame(
            frame([{ toolResponse: { ...tool, response }, thoughtSignature: signatureOf(block.search) }], {
              groundingMetadata: {
                webSearchQueries: [block.search],
                groundingChunks: block.pages.map(({ url, title }) => ({ web: { uri: url, title } })),
              },
            }),
          )
        } else {
          const functionCall: Call = { name: block.call, args: block.input }
          calls += 1
          made.set(keyOf(functionCall), asked)
          // Only the first of parallel calls is signed.
          const signed = calls === 1 ? { thoughtSignature: signatureOf(plain(block.call)) } : {}
          writer.frame(frame([{ functionCall, ...signed }]))
        }
      },
      finish(reason, writer) {
        const reasons = { stop: 'STOP', tool: 'STOP', pause: 'STOP', length: 'MAX_TOKENS', refusal: 'SAFETY' }
        const finishReason = reasons[reason]
        writer.frame({
          ...frame([], { finishReason }),
          usageMetadata: { ...usage, candidatesTokenCount: 7, totalTokenCount: 7 + Number(usage['promptTokenCount']) },
        })
      },
    }
  },

  reset() {
    made = new Map()
    cache.reset()
  },
})

function unknownName(name: string): Refusal {
  return new Refusal(`Invalid JSON payload received. Unknown name "${name}": Cannot find field.`)
}

/** In a message of the user, and in the response of a function. */
function checkFiles(contents: Content[], path: string): void {
  for (const { role, parts } of contents)
    for (const part of parts) {
      const response = part['functionResponse'] as { parts?: JsonObject[] } | undefined
      for (const one of [part, ...(response?.parts ?? [])]) {
        const file = one['inlineData'] as { mimeType?: string; data?: string } | undefined
        if (file === undefined) continue
        if (role !== 'user') throw new Refusal('Please use a valid role for inline data.')
        checkFile(path, file.mimeType, file.data)
      }
    }
}

const callsOf = ({ parts }: Content) => parts.filter((part) => part['functionCall'] !== undefined)
const responsesOf = ({ parts }: Content) => parts.filter((part) => part['functionResponse'] !== undefined)

function checkContents(contents: Content[], path: string): void {
  for (const [at, content] of contents.entries()) {
    if (content.role !== 'user' && content.role !== 'model') throw new Refusal('Please use a valid role: user, model.')
    if (content.parts.length === 0)
      throw new Refusal(`* GenerateContentRequest.contents[${at}].parts: must not be empty`)
    for (const part of content.parts) refuseUnknown(part, partFields, unknownName)
    const before = contents[at - 1]
    const calls = callsOf(content)
    for (const { functionCall } of calls) {
      const { name, args } = functionCall as Call
      checkCall(`contents[${at}].parts.function_call`, name, args)
    }
    if (calls.length > 0 && before?.role !== 'user')
      throw new Refusal(
        'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
      )
    const responses = responsesOf(content)
    const wanted = before === undefined ? [] : callsOf(before)
    if (responses.length > 0 && wanted.length === 0)
      throw new Refusal('Please ensure that function response turn comes immediately after a function call turn.')
    if (responses.length !== wanted.length)
      throw new Refusal(
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      )
    const names = (parts: JsonObject[], field: string) =>
      parts.map((part) => (part[field] as { name: string }).name).join()
    if (names(responses, 'functionResponse') !== names(wanted, 'functionCall'))
      throw new Refusal('Please ensure that function response names match the function call names.')
  }
  if (contents[0]?.role !== 'user') throw new Refusal('Please ensure that single turn requests start with a user turn.')
  if (contents.at(-1)?.role !== 'user') throw new Refusal('Please ensure that the last turn is a user turn.')
  const turn = contents.findLastIndex((content) => content.role === 'user' && responsesOf(content).length === 0)
  for (const content of contents.slice(turn)) {
    const [first] = callsOf(content)
    if (first === undefined) continue
    const call = first['functionCall'] as Call
    const { name } = call
    if (first['thoughtSignature'] === placeholder && made.get(keyOf(call)) !== path) continue
    if (first['thoughtSignature'] === undefined)
      throw new Refusal(
        `Function call is missing a thought_signature in functionCall parts. Function call \`${name}\`.`,
      )
    if (first['thoughtSignature'] !== signatureOf(name)) throw new Refusal('Corrupted thought signature.')
  }
}
