// The MCP server of one request: lists the agents as tools and runs them. It keeps nothing between requests; the
// caller, the cancellation and the run are those of this request.

import type { CallToolResult, Server as McpServer, ServerContext } from '@modelcontextprotocol/server'
import { AppError } from '../../errors/app-error.ts'
import type { Caller } from '../../kit/caller.ts'
import type { OneShotOutcome } from '../../one-shot/one-shot-outcome.ts'
import type { JsonObject } from '../../one-shot/sources/source.ts'
import type { Services } from '../routes.ts'
import type { AgentTool } from './agent-tools.ts'
import type { OpenCalls } from './open-calls.ts'
import { RunProgress } from './run-progress.ts'

export type AgentServerOptions = {
  services: Pick<Services, 'oneShot' | 'runs' | 'streams'>
  tools: readonly AgentTool[]
  /** The caller of a tool call; its arguments may name the user if nothing else does. Throws if the name is not valid. */
  callerOf(input: JsonObject): Caller
  openCalls: OpenCalls
  /** The key of the call with this JSON-RPC id; undefined if the client cannot name it in a second request. */
  callKey(requestId: string | number): string | undefined
  /** Whether a client that closes the connection cancels its call. */
  cancelsOnDisconnect: boolean
  onError(error: unknown): void
}

/** `unknownTool` makes the protocol's error for a tool that does not exist. */
export function installAgentTools(
  server: McpServer,
  options: AgentServerOptions,
  unknownTool: (name: string) => Error,
): void {
  server.setRequestHandler('tools/list', () => ({
    tools: options.tools.map(({ name, title, description, inputSchema, outputSchema }) => ({
      name,
      title,
      description,
      inputSchema,
      ...(outputSchema === undefined ? {} : { outputSchema }),
    })),
  }))
  server.setRequestHandler('tools/call', async ({ params }, context): Promise<CallToolResult> => {
    const tool = options.tools.find(({ name }) => name === params.name)
    if (tool === undefined) throw unknownTool(params.name)
    try {
      return resultOf(await runTool(tool, (params.arguments ?? {}) as JsonObject, context, options))
    } catch (error) {
      if (!(error instanceof AppError)) options.onError(error)
      return errorResult(error)
    }
  })
}

async function runTool(
  tool: AgentTool,
  input: JsonObject,
  context: ServerContext,
  { services, callerOf, openCalls, callKey, cancelsOnDisconnect }: AgentServerOptions,
): Promise<OneShotOutcome> {
  const { oneShot, runs, streams } = services
  const caller = callerOf(input)
  const disconnected = context.mcpReq.signal
  const key = callKey(context.mcpReq.id)
  const open = key === undefined ? undefined : openCalls.add(key)
  try {
    const request = { agentId: tool.agentId, operation: tool.operation, input, useCache: true, forceRefresh: false }
    const start = await oneShot.start(caller, request, null)
    const { run, started, snapshot } = start
    if (run === undefined || snapshot !== undefined) return await oneShot.outcome(start)
    // A run that another request started is not ours to cancel.
    const cancel = () => started && void runs.requestCancel(run.id, run.owner, 'the MCP client cancelled the call')
    const leave = () => started && cancelsOnDisconnect && void runs.clientLeft(run.id, run.owner)
    const stop = AbortSignal.any([streams.ending, disconnected, ...(open === undefined ? [] : [open.signal])])
    onAbort(open?.signal, cancel)
    onAbort(disconnected, leave)
    const [outcome] = await Promise.all([oneShot.outcome(start, stop), report(run.id, context, stop, streams)])
    return outcome
  } finally {
    open?.close()
  }
}

function onAbort(signal: AbortSignal | undefined, act: () => unknown): void {
  if (signal?.aborted === true) act()
  else signal?.addEventListener('abort', act, { once: true })
}

/** Reports the progress of the run if the client asked for it. Never fails: a report that cannot be sent is dropped. */
async function report(
  runId: string,
  { mcpReq }: ServerContext,
  stop: AbortSignal,
  streams: Services['streams'],
): Promise<void> {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined) return
  const follower = streams.follow(runId)
  onAbort(stop, () => follower.close())
  const sentences = new RunProgress()
  let progress = 0
  try {
    for (let batch = await follower.next(); batch !== null; batch = await follower.next()) {
      for (const event of batch.events) {
        const message = sentences.after(event)
        if (message === undefined) continue
        progress += 1
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, message } })
      }
    }
  } catch {
    // The connection is gone; the result says so too.
  } finally {
    follower.close()
  }
}

function resultOf({ data, runId, snapshotId, cached, generatedAt }: OneShotOutcome): CallToolResult {
  return {
    content: [{ type: 'text', text: JSON.stringify(data) }],
    structuredContent: data,
    _meta: {
      'polylog/runId': runId,
      'polylog/snapshotId': snapshotId,
      'polylog/cached': cached,
      'polylog/generatedAt': generatedAt,
    },
  }
}

/** The model of the client reads the text, so it has the code and the sentence that says what to do. */
function errorResult(error: unknown): CallToolResult {
  const { code, message, retryable, details } =
    error instanceof AppError
      ? error
      : new AppError('internal_error', 'The server failed; its log has the reason.', { cause: error })
  return {
    isError: true,
    content: [{ type: 'text', text: `${code}: ${message}` }],
    _meta: {
      'polylog/error': {
        code,
        message,
        ...(retryable === undefined ? {} : { retryable }),
        ...(details === undefined ? {} : { details }),
      },
    },
  }
}
