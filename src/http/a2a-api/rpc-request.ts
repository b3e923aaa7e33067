// Reads the envelope of a JSON-RPC request to /a2a: its id, its method and the protocol version. The
// methods of 1.0 and 0.3 have different names, so a request without a version is told by its method.

import type { A2aVersion, RpcId } from '../../dialects/a2a/a2a.ts'
import { AppError } from '../../errors/app-error.ts'

type A2aMethod = 'send' | 'stream' | 'get' | 'list' | 'cancel' | 'subscribe' | 'extendedCard' | 'push'

export type RpcCall = { method: A2aMethod; version: A2aVersion; params: unknown }

const methods: Readonly<Record<A2aVersion, Readonly<Record<string, A2aMethod>>>> = {
  '1.0': {
    SendMessage: 'send',
    SendStreamingMessage: 'stream',
    GetTask: 'get',
    ListTasks: 'list',
    CancelTask: 'cancel',
    SubscribeToTask: 'subscribe',
    GetExtendedAgentCard: 'extendedCard',
    CreateTaskPushNotificationConfig: 'push',
    GetTaskPushNotificationConfig: 'push',
    ListTaskPushNotificationConfigs: 'push',
    DeleteTaskPushNotificationConfig: 'push',
  },
  '0.3': {
    'message/send': 'send',
    'message/stream': 'stream',
    'tasks/get': 'get',
    'tasks/cancel': 'cancel',
    'tasks/resubscribe': 'subscribe',
    'agent/getAuthenticatedExtendedCard': 'extendedCard',
    'tasks/pushNotificationConfig/set': 'push',
    'tasks/pushNotificationConfig/get': 'push',
    'tasks/pushNotificationConfig/list': 'push',
    'tasks/pushNotificationConfig/delete': 'push',
  },
}

/** The id is in every frame of a stream, so it is bounded. */
const idCharsMax = 200
const shownChars = 60

/** Null if the body has no usable id, as JSON-RPC wants it in the error then. */
export function rpcIdOf(body: unknown): RpcId {
  const id = typeof body === 'object' && body !== null ? (body as { id?: unknown }).id : undefined
  if (typeof id === 'number' && Number.isFinite(id)) return id
  return typeof id === 'string' && id.length <= idCharsMax ? id : null
}

/** `versionHeader` is A2A-Version, which may also be a query parameter. */
export function readRpcCall(body: unknown, versionHeader: string | undefined): RpcCall {
  if (Array.isArray(body)) throw invalidRequest('A batch of requests is not taken; send one request at a time.')
  if (typeof body !== 'object' || body === null) throw invalidRequest('The body must be a JSON-RPC request object.')
  const { jsonrpc, method, params } = body as { jsonrpc?: unknown; method?: unknown; params?: unknown }
  if (jsonrpc !== '2.0') throw invalidRequest('"jsonrpc" must be "2.0".')
  if (rpcIdOf(body) === null) {
    throw invalidRequest(
      `"id" must be a number or a text of at most ${idCharsMax} characters; every method here answers.`,
    )
  }
  if (typeof method !== 'string') throw invalidRequest('"method" must be the name of a method.')
  const version = versionOf(versionHeader) ?? (Object.hasOwn(methods['1.0'], method) ? '1.0' : '0.3')
  const known = Object.hasOwn(methods[version], method) ? methods[version][method] : undefined
  if (known === undefined) {
    throw new AppError(
      'rpc_method_unknown',
      `There is no method ${JSON.stringify(method.slice(0, shownChars))} in A2A ${version}; there are ${Object.keys(methods[version]).join(', ')}.`,
    )
  }
  return { method: known, version, params: params ?? {} }
}

/** Undefined if the request names no version. Patch levels and newer minor versions of 1 are compatible. */
export function versionOf(header: string | undefined): A2aVersion | undefined {
  const version = header?.trim() ?? ''
  if (version === '') return undefined
  if (/^1(\.\d{1,3}){0,2}$/.test(version)) return '1.0'
  if (/^0\.3(\.\d{1,3})?$/.test(version)) return '0.3'
  throw new AppError(
    'protocol_version_unsupported',
    `A2A ${JSON.stringify(version.slice(0, shownChars))} is not served here; send A2A-Version: 1.0 or 0.3.`,
  )
}

function invalidRequest(message: string): AppError {
  return new AppError('rpc_request_invalid', message)
}
