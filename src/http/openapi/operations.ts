// Facts about each route that its schemas cannot express: the operation id for generated
// clients, an example body, and the kind of stream that it returns. A test requires an entry
// for every route and sends every example to a real server.

export type StreamKind =
  | 'native'
  | 'formats'
  | 'uiMessage'
  | 'agUi'
  | 'openAiChat'
  | 'openAiResponses'
  | 'chunks'
  | 'arms'
  | 'fcmp'
  | 'session'
  | 'doctor'
  | 'feed'
  | 'journal'

export type OperationFacts = {
  /** The operationId: a verb and a noun, unique. */
  id: string
  /** A request body that a server with an empty database accepts. */
  example?: Record<string, unknown>
  /** The 200 answer is a stream. */
  stream?: StreamKind
  /** The 200 answer is JSON unless the client asks for the stream. */
  alsoJson?: true
  /** The 200 answer is a file of one of these media types. */
  file?: readonly string[]
  /** With `Accept: application/json` the 200 answer is an object of this schema instead of the file. */
  fileObject?: string
}

const jobOperations = (prefix: string, noun: string): Record<string, OperationFacts> => ({
  [`POST ${prefix}/{request_id}/upload`]: { id: `upload${noun}` },
  [`GET ${prefix}/{request_id}`]: { id: `get${noun}` },
  [`POST ${prefix}/{request_id}/cancel`]: { id: `cancel${noun}` },
  [`GET ${prefix}/{request_id}/interaction/pending`]: { id: `get${noun}Question` },
  [`POST ${prefix}/{request_id}/interaction/reply`]: { id: `reply${noun}Question` },
  [`GET ${prefix}/{request_id}/result`]: { id: `get${noun}Result` },
  [`GET ${prefix}/{request_id}/artifacts`]: { id: `list${noun}Artifacts` },
  [`GET ${prefix}/{request_id}/artifacts/{path}`]: { id: `get${noun}Artifact`, file: ['application/octet-stream'] },
  [`GET ${prefix}/{request_id}/bundle`]: { id: `get${noun}Bundle`, file: ['application/zip'] },
  [`GET ${prefix}/{request_id}/events`]: { id: `stream${noun}Events`, stream: 'fcmp' },
  [`GET ${prefix}/{request_id}/events/history`]: { id: `list${noun}Events` },
  [`GET ${prefix}/{request_id}/invariants`]: { id: `check${noun}` },
  [`GET ${prefix}/{request_id}/logs`]: { id: `get${noun}Logs` },
  [`GET ${prefix}/{request_id}/logs/range`]: { id: `get${noun}LogRange` },
})

const contactRecordOperations = (path: string, noun: string): Record<string, OperationFacts> => ({
  [`POST /v1/contacts/{contactId}/${path}`]: { id: `add${noun}` },
  [`GET /v1/contacts/{contactId}/${path}`]: { id: `list${noun}s` },
  [`PATCH /v1/contacts/{contactId}/${path}/{recordId}`]: { id: `update${noun}` },
  [`DELETE /v1/contacts/{contactId}/${path}/{recordId}`]: { id: `delete${noun}` },
})

const uiChatOperations = (path: string, noun: string): Record<string, OperationFacts> => ({
  [`POST ${path}`]: {
    id: `send${noun}Message`,
    example: {
      id: 'conv_ui',
      messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'what time is it' }] }],
      trigger: 'submit-message',
      userId,
    },
    stream: 'uiMessage',
  },
  [`GET ${path}/{conversationId}/stream`]: { id: `resume${noun}`, stream: 'uiMessage' },
  [`POST ${path}/{conversationId}/stop`]: { id: `stop${noun}` },
})

const userId = 'user_123'
const agUiExample = {
  threadId: 'thread_1',
  runId: 'run_1',
  messages: [{ id: 'm1', role: 'user', content: 'what time is it' }],
  tools: [],
  context: [],
  state: {},
  forwardedProps: {},
  userId,
}
const chatExample = { input: 'what time is it', userId, conversationId: 'conv_123' }
const questionExample = { message: 'what time is it', client_id: userId }

/** Keyed by method and path, in OpenAPI spelling. */
export const operations: Readonly<Record<string, OperationFacts>> = {
  'GET /v1/agent/chat': { id: 'resumeChat', stream: 'formats' },
  'POST /v1/agent/chat': { id: 'chat', example: chatExample, stream: 'formats' },
  ...uiChatOperations('/v1/ui/chat', 'UiChat'),
  ...uiChatOperations('/v1/ui/v5/chat', 'UiChatOfVersionFive'),
  'POST /v1/agent/runs/{runId}/tool-results': { id: 'sendToolResults' },
  'POST /v1/chat/completions': {
    id: 'createChatCompletion',
    example: { model: 'chat_conversation', messages: [{ role: 'user', content: 'what time is it' }], userId },
    stream: 'openAiChat',
    alsoJson: true,
  },
  'POST /v1/ag-ui': { id: 'runAgUi', example: agUiExample, stream: 'agUi' },
  'POST /v1/ag-ui/{agentId}': { id: 'runAgUiAgent', stream: 'agUi' },
  'GET /v1/ag-ui/threads/{threadId}/stream': { id: 'attachAgUiThread', stream: 'agUi' },
  'POST /v1/ag-ui/threads/{threadId}/stop': { id: 'stopAgUiThread' },
  'POST /v1/responses': {
    id: 'createResponse',
    example: { model: 'chat_conversation', input: 'what time is it', userId },
    stream: 'openAiResponses',
    alsoJson: true,
  },
  'GET /v1/responses/{responseId}': { id: 'getResponse', stream: 'openAiResponses', alsoJson: true },
  'POST /v1/responses/{responseId}/cancel': { id: 'cancelResponse' },
  'DELETE /v1/responses/{responseId}': { id: 'deleteResponse' },
  'GET /v1/responses/{responseId}/input_items': { id: 'listResponseInputItems' },
  'GET /v1/agent/list': { id: 'listAgents' },
  'POST /v1/agent/run': {
    id: 'runAgent',
    example: {
      agentId: 'title_summary',
      input: {
        conversationId: 'conv_123',
        messages: [
          { role: 'user', content: 'The weather is fine today. Where should I walk?' },
          { role: 'assistant', content: 'Along the river, it has shade.' },
        ],
        language: 'en',
      },
      options: { useCache: true },
      userId,
    },
    stream: 'formats',
    alsoJson: true,
  },
  'GET /v1/agent/snapshots': { id: 'listSnapshots' },
  'GET /v1/agent/snapshots/{snapshotId}': { id: 'getSnapshot' },
  'GET /v1/agent/snapshots/{snapshotId}/diff': { id: 'compareSnapshots' },
  'GET /v1/agent/messages': { id: 'listChatMessages' },
  'DELETE /v1/agent/messages': { id: 'deleteChatMessages' },
  'GET /v1/agent/runs': { id: 'listRuns' },
  'GET /v1/agent/runs/{runId}': { id: 'getRun' },
  'GET /v1/agent/runs/{runId}/timeline': { id: 'getRunTimeline' },
  'GET /v1/agent/runs/{runId}/stream': { id: 'streamRun', stream: 'formats' },
  'GET /v1/agent/runs/{runId}/outputs/{outputId}': { id: 'getRunOutput' },
  'POST /v1/agent/runs/{runId}/cancel': { id: 'cancelRun' },
  'GET /v1/agent/runs/{runId}/invariants': { id: 'checkRun' },
  'GET /v1/agent/runs/{runId}/export': { id: 'exportRun' },
  'POST /v1/import': { id: 'importRun' },

  'POST /v1/conversations': { id: 'createConversation', example: { title: 'A first one', userId } },
  'GET /v1/usage': { id: 'getUsage' },
  'GET /v1/models': { id: 'listModels' },
  'POST /v1/files': { id: 'uploadFile' },
  'GET /v1/files': { id: 'listFiles' },
  'GET /v1/files/{fileId}': { id: 'getFile', file: ['application/octet-stream'], fileObject: 'File' },
  'GET /v1/files/{fileId}/content': { id: 'getFileContent', file: ['application/octet-stream'] },
  'DELETE /v1/files/{fileId}': { id: 'deleteFile' },
  'GET /v1/models/{model}': { id: 'getModel' },
  'GET /v1/doctor/stream': { id: 'testStream', stream: 'doctor' },
  'PATCH /v1/agent/runs/{runId}': { id: 'changeQueuedRun' },
  'DELETE /v1/agent/runs/{runId}': { id: 'withdrawQueuedRun' },
  'GET /v1/conversations': { id: 'listConversations' },
  'GET /v1/agent/runs/{runId}/events': { id: 'listRunEvents' },
  'GET /v1/agent/runs/{runId}/events/stream': { id: 'followRunEvents', stream: 'journal' },
  'GET /v1/interactions': { id: 'listInteractions' },
  'POST /v1/interactions/{id}/reply': { id: 'replyToInteraction' },
  'GET /v1/operations': { id: 'getOperationsOverview' },
  'GET /v1/feed': { id: 'followFeed', stream: 'feed' },
  'GET /v1/conversations/{conversationId}': { id: 'getConversation' },
  'PATCH /v1/conversations/{conversationId}': { id: 'updateConversation' },
  'DELETE /v1/conversations/{conversationId}': { id: 'deleteConversation' },
  'GET /v1/conversations/{conversationId}/messages': { id: 'listMessages' },

  'POST /v1/contacts': {
    id: 'createContact',
    example: { name: '张伟', company: 'Acme', email: 'zhangwei@example.com', tags: ['friend'], userId },
  },
  'GET /v1/contacts': { id: 'listContacts' },
  'POST /v1/contacts/import': { id: 'importContacts' },
  'GET /v1/contacts/export': { id: 'exportContacts', file: ['text/vcard', 'text/csv'] },
  'GET /v1/contacts/{contactId}': { id: 'getContact' },
  'PATCH /v1/contacts/{contactId}': { id: 'updateContact' },
  'DELETE /v1/contacts/{contactId}': { id: 'deleteContact' },
  'GET /v1/contacts/{contactId}/context': { id: 'getContactContext' },
  'GET /v1/contacts/{contactId}/conversations': { id: 'listContactConversations' },
  'GET /v1/contacts/{contactId}/brief': { id: 'getContactBrief' },
  'POST /v1/contacts/{contactId}/brief': { id: 'generateContactBrief' },
  'POST /v1/contacts/{contactId}/brief/refresh': { id: 'refreshContactBrief' },
  'POST /v1/conversations/{conversationId}/archive': { id: 'archiveConversation' },
  'GET /v1/conversations/{conversationId}/archive': { id: 'getNewestConversationArchive' },
  'GET /v1/conversation-archives/{archiveId}': { id: 'getConversationArchive' },
  'PATCH /v1/conversation-archives/{archiveId}': { id: 'updateConversationArchive' },
  'POST /v1/conversation-archives/{archiveId}/apply': { id: 'applyConversationArchive' },
  'POST /v1/conversation-archives/{archiveId}/discard': { id: 'discardConversationArchive' },
  ...contactRecordOperations('facts', 'ContactFact'),
  ...contactRecordOperations('todos', 'ContactTodo'),
  ...contactRecordOperations('events', 'ContactEvent'),

  'GET /v1/tool-confirmations': { id: 'listConfirmations' },
  'GET /v1/tool-confirmations/{id}': { id: 'getConfirmation' },
  'POST /v1/tool-confirmations/{id}/confirm': { id: 'confirmToolCall' },
  'POST /v1/tool-confirmations/{id}/reject': { id: 'rejectToolCall' },
  'POST /v1/tool-confirmations/batch/confirm': { id: 'confirmToolCalls' },
  'POST /v1/tool-confirmations/batch/reject': { id: 'rejectToolCalls' },

  'POST /api/get_chat_response_stream': { id: 'askStreaming', example: questionExample, stream: 'chunks' },
  'POST /api/get_chat_response': { id: 'ask', example: questionExample },
  'GET /api/trace/{trace_id}': { id: 'getTrace' },
  'GET /api/trace/by_message/{message_id}': { id: 'getTraceByMessage' },
  'GET /api/trace/message/{message_id}': { id: 'getTraceOfMessage' },
  'POST /api/cancel_stream': { id: 'cancelAnswer' },
  'POST /api/load_conversation': { id: 'loadConversation' },
  'GET /api/list_conversations': { id: 'listChats' },
  'POST /api/list_conversations': { id: 'listChatsByPost', example: { client_id: userId } },
  'POST /api/new_conversation': { id: 'startNewChat', example: { client_id: userId } },
  'POST /api/delete_conversation': { id: 'deleteChat' },
  'POST /api/like': { id: 'likeAnswer' },
  'POST /api/dislike': { id: 'dislikeAnswer' },
  'POST /api/text_feedback': { id: 'commentAnswer' },
  'GET /api/get_configs': { id: 'listConfigurations' },
  'GET /api/health': { id: 'getChatHealth' },
  'POST /api/ab/compare': {
    id: 'compare',
    example: { ...questionExample, config_a: 'default', config_b: 'default' },
    stream: 'arms',
  },
  'GET /api/ab/{comparison_id}/stream': { id: 'streamComparison', stream: 'arms' },
  'POST /api/ab/create': { id: 'createComparison' },
  'POST /api/ab/preference': { id: 'vote' },
  'GET /api/ab/pending': { id: 'listOpenComparisons' },
  'GET /api/ab/comparisons': { id: 'listComparisons' },
  'GET /api/ab/comparison/{comparison_id}': { id: 'getComparison' },
  'GET /api/ab/metrics': { id: 'getVoteMetrics' },

  'GET /v1/skills': { id: 'listSkills' },
  'GET /v1/skills/{skill_id}': { id: 'getSkill' },
  'GET /v1/jobs': { id: 'listJobs' },
  'POST /v1/jobs/cleanup': { id: 'cleanUpJobs' },
  'POST /v1/jobs': {
    id: 'createJob',
    example: { skill_id: 'text-digest', input: { text: 'One sentence. Another one.' }, userId },
  },
  ...jobOperations('/v1/jobs', 'Job'),
  'GET /v1/temp-skill-runs': { id: 'listSkillRuns' },
  'POST /v1/temp-skill-runs/cleanup': { id: 'cleanUpSkillRuns' },
  'POST /v1/temp-skill-runs': { id: 'createSkillRun', example: { userId } },
  ...jobOperations('/v1/temp-skill-runs', 'SkillRun'),

  'POST /api/chat/stream': {
    id: 'sendSessionMessage',
    example: { message: 'what time is it', context: { userId } },
    stream: 'session',
  },

  'GET /health': { id: 'getSessionHealth' },
  'GET /v1/health': { id: 'getHealth' },
  'GET /v1/ready': { id: 'getReadiness' },
  'GET /v1/tools': { id: 'listTools' },
  'GET /v1/providers': { id: 'listProviders' },
  'GET /metrics': { id: 'getMetrics', file: ['text/plain'] },
}
