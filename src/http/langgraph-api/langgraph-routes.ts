// /langgraph: the part of LangGraph's API that its SDK needs to talk to an agent. Described by LangGraph's own
// documents, and by docs/clients/langgraph.md, not by OpenAPI.

import type { Server, Services } from '../routes.ts'
import { assistantRoutes } from './assistant-routes.ts'
import { langGraphRunRoutes } from './run-routes.ts'
import { threadRoutes } from './thread-routes.ts'

export function langGraphRoutes(server: Server, services: Services, version: string): void {
  assistantRoutes(server, services)
  threadRoutes(server, services)
  langGraphRunRoutes(server, services)
  server.get('/langgraph/ok', { schema: { hide: true } }, async () => ({ ok: true }))
  server.get('/langgraph/info', { schema: { hide: true } }, async () => ({
    version,
    flags: { assistants: true, crons: false, langsmith: false },
  }))
}
