// How the client speaks to each family: where a run is started, where its stream is attached
// again, how its bytes are divided into frames, and which frame is the last. The torture test
// drives all of them with one client.

import { formatDialects } from '../../src/http/formats.ts'

export type Wire = {
  name: string
  /** What separates two frames. */
  separator: '\n\n' | '\n'
  /** Frames carry ids, so a client that lost its connection gets only the rest. */
  resumes: boolean
  /** The body and the route of the request that starts a run. */
  start(user: string, prompt: string, conversation: string): { path: string; body: object }
  /** The response header (or the field of the JSON answer) that names what was started. */
  idFrom: { header: string } | { field: string }
  attach(user: string, id: string): string
  cancel(user: string, id: string): { path: string; body: object } | null
  /** False for frames that belong to the connection: keep-alives, opening frames. */
  isJournaled(frame: string): boolean
  isEnd(frame: string): boolean
  /**
   * The stream also ends when a person has to decide, with the same frames as at the end of the run. So the run has ended
   * only if the server answers 204 to the last cursor, and a replay needs as many connections as there were decisions.
   */
  parks?: true
  /** Tools that the prompt may make the model call on this wire. */
  tools: readonly string[]
}

const hasId = (frame: string) => frame.startsWith('id: ')
const userIn = (path: string, user: string) => `${path}${path.includes('?') ? '&' : '?'}userId=${user}`
const runStream = (format: string) => (user: string, id: string) =>
  userIn(`/v1/agent/runs/${id}/stream?format=${format}`, user)
const runCancel = (user: string, id: string) => ({ path: userIn(`/v1/agent/runs/${id}/cancel`, user), body: {} })
const chatTools = ['audit', 'remember_note', 'stamp', 'pay'] as const

const native: Wire = {
  name: 'native',
  separator: '\n\n',
  resumes: true,
  start: (user, prompt, conversation) => ({
    path: '/v1/agent/chat',
    body: { input: prompt, userId: user, conversationId: conversation },
  }),
  idFrom: { header: 'x-run-id' },
  attach: runStream('sse'),
  cancel: runCancel,
  isJournaled: hasId,
  isEnd: (frame) => frame.includes('\nevent: agent.end\n'),
  tools: chatTools,
}

const dataStream: Wire = {
  ...native,
  name: 'vercel-ai',
  separator: '\n',
  resumes: false,
  start: (user, prompt, conversation) => ({
    path: '/v1/agent/chat?format=vercel-ai',
    body: { messages: [{ role: 'user', content: prompt }], userId: user, sessionId: conversation },
  }),
  attach: runStream('vercel-ai'),
  isJournaled: (frame) => frame !== '' && !frame.startsWith('2:[{"type":"ping"'),
  isEnd: (frame) => frame.startsWith('d:'),
}

const chunks: Wire = {
  ...native,
  name: 'chunks',
  start: (user, prompt, conversation) => ({
    path: '/api/get_chat_response_stream',
    body: { message: prompt, client_id: user, conversation_id: conversation },
  }),
  idFrom: { header: 'x-trace-id' },
  attach: runStream('chunks'),
  cancel: (user, id) => ({ path: '/api/cancel_stream', body: { trace_id: id, client_id: user } }),
  isEnd: (frame) => /^data: \{"type":"(done|error)"/m.test(frame),
}

const jsonLines: Wire = {
  ...chunks,
  name: 'chunks-ndjson',
  separator: '\n',
  resumes: false,
  attach: runStream('chunks-ndjson'),
  isJournaled: (frame) => frame !== '',
  isEnd: (frame) => /^\{"type":"(done|error)"/.test(frame),
}

const session: Wire = {
  ...native,
  name: 'session',
  resumes: false,
  start: (user, prompt) => ({ path: '/api/chat/stream', body: { message: prompt, context: { userId: user } } }),
  attach: runStream('session'),
  isJournaled: (frame) => !frame.includes('"type":"heartbeat"'),
  isEnd: (frame) => frame.startsWith('data: {"type":"done"'),
  tools: ['current_time', 'fs_write'],
}

const job: Wire = {
  ...native,
  name: 'fcmp',
  start: (user, prompt) => ({
    path: userIn('/v1/jobs', user),
    body: {
      skill_id: 'errand',
      input: { what: `${prompt} json` },
      runtime_options: { execution_mode: 'interactive', no_cache: true },
    },
  }),
  idFrom: { field: 'request_id' },
  attach: (user, id) => userIn(`/v1/jobs/${id}/events`, user),
  cancel: (user, id) => ({ path: userIn(`/v1/jobs/${id}/cancel`, user), body: {} }),
  isEnd: (frame) => /"type":"conversation\.(completed|failed)"/.test(frame),
  tools: ['current_time', 'ask_user', 'stamp', 'pay'],
}

const comparison: Wire = {
  ...chunks,
  name: 'comparison',
  start: (user, prompt, conversation) => ({
    path: '/api/ab/compare',
    body: {
      message: prompt,
      client_id: user,
      conversation_id: conversation,
      config_a: 'default',
      config_b: 'default',
    },
  }),
  idFrom: { header: 'x-comparison-id' },
  attach: (user, id) => `/api/ab/${id}/stream?client_id=${user}`,
  cancel: () => null,
  // Both arms close in the last two frames; the faster one's end is held back until then.
  isEnd: (frame) => /"type":"(done|error)".*"arm":"(a|b)"/.test(frame) && frame.includes('"vote_requested":true'),
  tools: ['current_time'],
}

const withOwnRoutes: readonly Wire[] = [native, dataStream, chunks, jsonLines, session, job, comparison]

/** Every other format, on the routes of the native wire. A new dialect takes part when it is registered. */
const otherFormats = Object.entries(formatDialects)
  .filter(([name]) => name !== 'sse' && !withOwnRoutes.some((wire) => wire.name === name))
  .map(([name]): Wire => {
    return {
      ...native,
      name,
      start: (user, prompt, conversation) => ({
        path: `/v1/agent/chat?format=${name}`,
        body: { input: prompt, userId: user, conversationId: conversation },
      }),
      attach: runStream(name),
      isEnd: () => false,
      parks: true,
    }
  })

export const wires: readonly Wire[] = [...withOwnRoutes, ...otherFormats]
