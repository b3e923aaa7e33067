// Translates an error of the MCP library into the outcome of a call. `tool_unavailable` may
// be used only if the server has certainly done nothing.

import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client'
import { AppError } from '../errors/app-error.ts'
import { excerpt } from './excerpt.ts'
import { unreadable } from './mcp-answer.ts'
import { streamCut } from './mcp-transport.ts'

export type CallFailure = {
  error: AppError
  connectionIsLost: boolean
  /** The server does not know the session any more, and refused the request before it processed the call. */
  sessionIsGone: boolean
}

/** System errors that mean that no connection was established, so nothing was sent. */
const neverConnected = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

export function toCallFailure(error: unknown, server: string): CallFailure {
  const kept = { connectionIsLost: false, sessionIsGone: false }
  const lost = { connectionIsLost: true, sessionIsGone: false }

  const invalid = error instanceof SdkError && error.code === SdkErrorCode.InvalidResult
  if (invalid || (error instanceof ProtocolError && error.data === unreadable)) {
    // The connection works, because an answer came. Only the outcome of the call is unknown.
    const message = `The answer of the MCP server ${server} cannot be read. The call may have been carried out. ${toReason(error)}`
    return { ...kept, error: new AppError('tool_failed', message, { cause: error, details: { outcome: 'unknown' } }) }
  }
  if (error instanceof ProtocolError && error.data !== streamCut) {
    const message = `The MCP server ${server} refused the call: ${excerpt(error.message, 500)}`
    return { ...kept, error: new AppError('tool_failed', message, { cause: error, details: { mcpCode: error.code } }) }
  }
  if (error instanceof SdkHttpError && error.status < 500) {
    const message = `The MCP server ${server} answered with HTTP ${error.status}. Nothing was done.`
    return {
      connectionIsLost: true,
      sessionIsGone: error.status === 404,
      error: new AppError('tool_unavailable', message, { cause: error }),
    }
  }
  if (error instanceof SdkError && error.code === SdkErrorCode.UnsupportedResultType) {
    const message = `The MCP server ${server} asked for input in the middle of the call, which is not supported.`
    return { ...kept, error: new AppError('tool_failed', message, { cause: error }) }
  }
  if (
    (error instanceof SdkError && error.code === SdkErrorCode.NotConnected) ||
    neverConnected.has(systemCodeOf(error))
  ) {
    const message = `The MCP server ${server} is not there. Nothing was sent. ${toReason(error)}`
    return { ...lost, error: new AppError('tool_unavailable', message, { cause: error }) }
  }
  const message = `The MCP server ${server} went away during the call. It may have been carried out. ${toReason(error)}`
  return { ...lost, error: new AppError('tool_failed', message, { cause: error, details: { outcome: 'unknown' } }) }
}

/** The messages of an error and its causes in one line, for the operator. */
export function toReason(error: unknown): string {
  const messages: string[] = []
  for (let current = error; current instanceof Error && messages.length < 3; current = current.cause) {
    const message = current.message.trim().replace(/\.$/, '')
    if (message !== '' && !messages.some((earlier) => earlier.includes(message))) messages.push(message)
  }
  return `${excerpt(messages.join(': ') || 'It gave no reason', 300)}.`
}

function systemCodeOf(error: unknown): string {
  for (let current = error; current instanceof Error; current = current.cause) {
    if ('code' in current && typeof current.code === 'string' && neverConnected.has(current.code)) return current.code
  }
  return ''
}
