// The list of all routes of the server.

import { a2aRoutes } from './a2a-api/a2a-routes.ts'
import { agUiRoutes } from './ag-ui-api/ag-ui-routes.ts'
import { chatRoute } from './agent-v1/chat-route.ts'
import { eventsRoute } from './agent-v1/events-route.ts'
import { invariantsRoute } from './agent-v1/invariants-route.ts'
import { agentListRoute } from './agent-v1/list-route.ts'
import { messagesRoute } from './agent-v1/messages-route.ts'
import { queuedRunRoutes } from './agent-v1/queued-run-routes.ts'
import { resumeChatRoute } from './agent-v1/resume-chat-route.ts'
import { runAgentRoute } from './agent-v1/run-agent-route.ts'
import { runRoutes } from './agent-v1/run-routes.ts'
import { snapshotRoutes } from './agent-v1/snapshot-routes.ts'
import { toolResultsRoute } from './agent-v1/tool-results-route.ts'
import { transferRoutes } from './agent-v1/transfer-routes.ts'
import { comparisonRoutes } from './chat-api/ab-routes.ts'
import { answerRoutes } from './chat-api/answer-routes.ts'
import { configRoutes } from './chat-api/config-routes.ts'
import { chatConversationRoutes } from './chat-api/conversation-routes.ts'
import { feedbackRoutes } from './chat-api/feedback-routes.ts'
import { traceRoutes } from './chat-api/trace-routes.ts'
import { confirmationRoutes } from './confirmations-v1/confirmation-routes.ts'
import { consoleRoutes } from './console/console-routes.ts'
import { archiveRoutes } from './contacts-v1/archive-routes.ts'
import { briefRoutes } from './contacts-v1/brief-routes.ts'
import { contactRoutes } from './contacts-v1/contact-routes.ts'
import { contactFileRoutes } from './contacts-v1/file-routes.ts'
import { conversationRoutes } from './conversations-v1/conversation-routes.ts'
import { feedRoutes } from './feed-v1/feed-routes.ts'
import { interactionRoutes } from './feed-v1/interaction-routes.ts'
import { fileRoutes } from './files-v1/file-routes.ts'
import { jobRoutes } from './jobs-v1/job-routes.ts'
import { langGraphRoutes } from './langgraph-api/langgraph-routes.ts'
import { mcpRoute } from './mcp/mcp-route.ts'
import { chatCompletionRoutes } from './openai-api/chat-completion-routes.ts'
import { responseRoutes } from './openai-api/response-routes.ts'
import { referencePage } from './openapi/reference-page.ts'
import { doctorRoute } from './operations/doctor-route.ts'
import { modelsRoute } from './operations/models-route.ts'
import { operationRoutes } from './operations/operation-routes.ts'
import { overviewRoute } from './operations/overview-route.ts'
import { sessionRoutes } from './session-api/session-routes.ts'
import { uiChatRoutes } from './ui-chat/ui-chat-routes.ts'
import { usageRoutes } from './usage-v1/usage-routes.ts'
import type { Server, Services } from './routes.ts'

export type RouteSettings = {
  version: string
  withConsole: boolean
  /** Makes the OpenAPI document of all routes. */
  apiDocument: () => Promise<object>
}

export async function registerRoutes(
  server: Server,
  services: Services,
  { version, withConsole, apiDocument }: RouteSettings,
): Promise<void> {
  chatRoute(server, services)
  resumeChatRoute(server, services)
  uiChatRoutes(server, services)
  chatCompletionRoutes(server, services)
  agUiRoutes(server, services)
  responseRoutes(server, services)
  messagesRoute(server, services)
  runAgentRoute(server, services)
  snapshotRoutes(server, services)
  agentListRoute(server, services)
  runRoutes(server, services)
  queuedRunRoutes(server, services)
  toolResultsRoute(server, services)
  usageRoutes(server, services)
  modelsRoute(server, services)
  doctorRoute(server, services)
  invariantsRoute(server, services)
  eventsRoute(server, services)
  await transferRoutes(server, services)
  conversationRoutes(server, services)
  feedRoutes(server, services)
  interactionRoutes(server, services)
  contactRoutes(server, services)
  await contactFileRoutes(server, services)
  await fileRoutes(server, services)
  briefRoutes(server, services)
  archiveRoutes(server, services)
  confirmationRoutes(server, services)
  answerRoutes(server, services)
  traceRoutes(server, services)
  chatConversationRoutes(server, services)
  feedbackRoutes(server, services)
  configRoutes(server, services)
  comparisonRoutes(server, services)
  await jobRoutes(server, services)
  sessionRoutes(server, services)
  mcpRoute(server, services, version)
  a2aRoutes(server, services, version)
  langGraphRoutes(server, services, version)
  operationRoutes(server, services, { version, apiDocument })
  overviewRoute(server, services)
  referencePage(server)
  if (withConsole) await consoleRoutes(server)
}
