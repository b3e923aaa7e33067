// The OpenAPI description of streams: the media types of each kind, with a short example
// of the frames. The README of each dialect documents its frames.

import type { StreamKind } from './operations.ts'

export type MediaTypes = Record<string, { schema: { type: 'string'; description: string }; example: string }>

type Sample = { media: string; description: string; example: string }

const native: Sample = {
  media: 'text/event-stream',
  description: 'The native dialect: each frame has `id`, `event` and one JSON object. The last frame is `agent.end`.',
  example:
    'id: 4\nevent: agent.delta\ndata: {"event":"agent.delta","data":{"id":"01M7…","delta":"It is","role":"assistant"}}\n\n' +
    'id: 9\nevent: agent.end\ndata: {"event":"agent.end","data":{"runId":"01M7…","status":"succeeded"}}\n\n',
}
const dataStream: Sample = {
  media: 'text/plain',
  description: '`format=vercel-ai`: the data stream, version 1, of AI SDK 3.3 and 4. One line per part.',
  example: 'f:{"messageId":"01M7…"}\n0:"It is"\nd:{"finishReason":"stop"}\n',
}
const uiMessage: Sample = {
  media: 'text/event-stream',
  description: 'The UI message stream of the AI SDK: one JSON part per frame. The last frame is `[DONE]`.',
  example:
    'id: 1\ndata: {"type":"start","messageId":"01M7…"}\n\n' +
    'id: 5\ndata: {"type":"text-delta","id":"01M7…","delta":"It is"}\n\nid: 9.4\ndata: [DONE]\n\n',
}
const openAiChat: Sample = {
  media: 'text/event-stream',
  description: 'With `stream: true`: the chunks of a chat completion. The last frame is `[DONE]`.',
  example:
    'id: 4\ndata: {"id":"chatcmpl-01M7…","object":"chat.completion.chunk","created":1794783761,"model":"demo/demo","choices":[{"index":0,"delta":{"content":"It is"},"finish_reason":null}]}\n\n' +
    'id: 9.2\ndata: [DONE]\n\n',
}
const agUi: Sample = {
  media: 'text/event-stream',
  description: 'AG-UI: one JSON event per frame, from `RUN_STARTED` to `RUN_FINISHED` or `RUN_ERROR`.',
  example:
    'id: 1\ndata: {"type":"RUN_STARTED","threadId":"thread_1","runId":"run_1"}\n\n' +
    'id: 5\ndata: {"type":"TEXT_MESSAGE_CONTENT","messageId":"01M7…","delta":"It is"}\n\n' +
    'id: 9\ndata: {"type":"RUN_FINISHED","threadId":"thread_1","runId":"run_1","outcome":{"type":"success"}}\n\n',
}
const openAiResponses: Sample = {
  media: 'text/event-stream',
  description: 'With `stream: true`: the events of a response, numbered from 0 by `sequence_number`.',
  example:
    'id: 4.3\nevent: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_01M7…","output_index":0,"delta":"It is","content_index":0,"logprobs":[]}\n\n',
}
const chunks: Sample = {
  media: 'text/event-stream',
  description: 'Frames without an event name. The last one is `done` or `error`.',
  example:
    'id: 4\ndata: {"type":"chunk","content":"It is","conversation_id":"01M7…"}\n\n' +
    'id: 9\ndata: {"type":"done","conversation_id":"01M7…","message_id":"01M7…","trace_id":"01M7…"}\n\n',
}
const jsonLines: Sample = {
  media: 'application/x-ndjson',
  description: 'The same frames, one JSON object per line, for `Accept: application/x-ndjson`.',
  example: '{"type":"chunk","content":"It is","conversation_id":"01M7…"}\n',
}
const arms: Sample = {
  media: 'text/event-stream',
  description: 'The frames of both answers, each with its `arm`. The last two carry `vote_requested`.',
  example: 'id: a:6,b:5\ndata: {"type":"chunk","content":"It is","conversation_id":"01M7…","arm":"a"}\n\n',
}
const fcmp: Sample = {
  media: 'text/event-stream',
  description:
    'The first event is `snapshot`; then come `chat_event` events, each with one fcmp/1.0 envelope, and `heartbeat` events.',
  example:
    'id: 4\nevent: chat_event\ndata: {"protocol_version":"fcmp/1.0","seq":4,"type":"assistant.message.final","data":{}}\n\n',
}
const session: Sample = {
  media: 'text/event-stream',
  description: 'One JSON object per frame, from `start` to `done`, with `heartbeat` in between.',
  example: 'data: {"type":"text","content":"It is","timestamp":1794783761069}\n\n',
}
const doctor: Sample = {
  media: 'text/event-stream',
  description: 'Frames at known times: `sentMs` is the time since the first one, by the clock of the server.',
  example:
    'id: 1\nevent: doctor.frame\ndata: {"event":"doctor.frame","data":{"index":1,"frames":12,"intervalMs":250,"sentMs":250}}\n\n',
}
const feed: Sample = {
  media: 'text/event-stream',
  description:
    'One JSON object per frame, without an event name: `hello`, then `conversation.changed`, `conversation.deleted`, `run.changed`, `run.deleted`, `interaction.opened`, `interaction.decided`, `comparison.opened`, `comparison.voted`, `reset` and `ping`.',
  example:
    'id: 7f3a90c1d2e4-1z\ndata: {"type":"hello","cursor":"7f3a90c1d2e4-1z","resumed":false}\n\n' +
    'id: 7f3a90c1d2e4-20\ndata: {"type":"run.changed","run":{"runId":"01M7…","status":"running"}}\n\n',
}
const journal: Sample = {
  media: 'text/event-stream',
  description:
    'One JSON object per event of the journal, without an event name; `wires` has the bytes of each format. `{"type":"ping"}` comes in between.',
  example:
    'id: 5\ndata: {"seq":5,"at":"2026-11-16T09:36:01.069Z","atMs":1794821761069,"attempt":1,"type":"text.delta","data":{"messageId":"01M7…","text":"Hel"},"wires":{"vercel-ai":["0:\\"Hel\\"\\n"]},"ends":[]}\n\n',
}

const kinds: Readonly<Record<StreamKind, readonly Sample[]>> = {
  native: [native],
  formats: [
    {
      ...native,
      description: `${native.description} \`format=\` chooses another dialect: \`ui-message\`, \`ui-message-v5\`, \`ag-ui\`, \`chunks\`, \`fcmp\`, \`session\`, \`openai-chat\`, \`openai-responses\`, \`a2a\`, \`a2a-v0.3\` and \`langgraph\` are event streams too.`,
    },
    dataStream,
    { ...jsonLines, description: '`format=chunks-ndjson`: the dialect of the chat API, one JSON object per line.' },
  ],
  uiMessage: [uiMessage],
  openAiChat: [openAiChat],
  agUi: [agUi],
  openAiResponses: [openAiResponses],
  chunks: [chunks, jsonLines],
  arms: [arms, { ...jsonLines, description: 'The same frames, one JSON object per line.' }],
  fcmp: [fcmp],
  session: [session],
  doctor: [doctor],
  feed: [feed],
  journal: [journal],
}

export function mediaTypesOf(kind: StreamKind): MediaTypes {
  return Object.fromEntries(
    kinds[kind].map(({ media, description, example }) => [media, { schema: { type: 'string', description }, example }]),
  )
}
