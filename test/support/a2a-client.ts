// The real A2A clients of both protocol generations behind one small interface, so that one test can
// be told to both. What they return is reduced to what both can say.

import { randomUUID } from 'node:crypto'
import * as sdk1 from '@a2a-js/sdk/client'
import { Role, TaskState, type Message, type Part, type StreamResponse, type Task } from '@a2a-js/sdk'
import * as sdk0 from 'a2a-sdk-0/client'
import type * as types0 from 'a2a-sdk-0'
import type { JsonValue } from '../../src/journal/event.ts'

/** A part as both generations have it; `file` is a file by its address. */
export type PlainPart =
  | { text: string }
  | { data: unknown }
  | { file: { url?: string; bytes?: string; name?: string; mediaType?: string } }

type PlainTask = {
  id: string
  contextId: string
  state: string
  /** The parts of the message of the status. */
  asks: PlainPart[]
  /** The text of each artifact. */
  artifacts: string[]
  artifactIds: string[]
  files: PlainPart[]
  history: { role: string; parts: PlainPart[] }[]
}

export type PlainUpdate =
  | { task: PlainTask }
  | { status: string; asks: PlainPart[]; taskId: string }
  | { artifactId: string; parts: PlainPart[]; append: boolean; lastChunk: boolean }

type SendOptions = {
  contextId?: string
  taskId?: string
  messageId?: string
  returnAtOnce?: boolean
  push?: true
  modes?: string[]
  historyLength?: number
  signal?: AbortSignal
}

export type PlainClient = {
  name: string
  send(parts: PlainPart[] | string, options?: SendOptions): Promise<PlainTask>
  stream(parts: PlainPart[] | string, options?: SendOptions): AsyncGenerator<PlainUpdate, void>
  get(id: string, historyLength?: number): Promise<PlainTask>
  cancel(id: string): Promise<PlainTask>
  subscribe(id: string, signal?: AbortSignal): AsyncGenerator<PlainUpdate, void>
  /** The names of the skills in the extended card. */
  skills(): Promise<string[]>
  setPush(taskId: string): Promise<unknown>
}

export type ClientSettings = { baseUrl: string; headers?: Record<string, string>; cardPath?: string }

function fetchWith(headers: Record<string, string>): typeof fetch {
  return async (input, init) =>
    await fetch(input, { ...init, headers: { ...(init?.headers as Record<string, string>), ...headers } })
}

export const a2aClients: readonly { name: string; open(settings: ClientSettings): Promise<PlainClient> }[] = [
  { name: '@a2a-js/sdk 1 (protocol 1.0)', open: openNew },
  { name: '@a2a-js/sdk 0.3 (protocol 0.3)', open: openOld },
]

const text = (parts: PlainPart[] | string): PlainPart[] => (typeof parts === 'string' ? [{ text: parts }] : parts)

async function openNew({ baseUrl, headers = {}, cardPath }: ClientSettings): Promise<PlainClient> {
  const fetchImpl = fetchWith(headers)
  const factory = new sdk1.ClientFactory({
    transports: [new sdk1.JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new sdk1.DefaultAgentCardResolver({ fetchImpl }),
  })
  const client = await factory.createFromUrl(baseUrl, cardPath)
  const request = (parts: PlainPart[] | string, options: SendOptions) => ({
    tenant: '',
    metadata: undefined,
    message: {
      messageId: options.messageId ?? randomUUID(),
      contextId: options.contextId ?? '',
      taskId: options.taskId ?? '',
      role: Role.ROLE_USER,
      parts: text(parts).map(partToNew),
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    },
    configuration: {
      acceptedOutputModes: options.modes ?? [],
      returnImmediately: options.returnAtOnce ?? false,
      historyLength: options.historyLength,
      taskPushNotificationConfig:
        options.push === undefined
          ? undefined
          : { tenant: '', id: '', taskId: '', url: 'https://example.com/hook', token: '', authentication: undefined },
    },
  })
  return {
    name: '1.0',
    async send(parts, options = {}) {
      const result = await client.sendMessage(request(parts, options), callOptions(options.signal))
      if (!('status' in result)) throw new Error('a message came instead of a task')
      return taskOfNew(result)
    },
    async *stream(parts, options = {}) {
      for await (const event of client.sendMessageStream(request(parts, options), callOptions(options.signal)))
        yield updateOfNew(event)
    },
    get: async (id, historyLength) => taskOfNew(await client.getTask({ tenant: '', id, historyLength })),
    cancel: async (id) => taskOfNew(await client.cancelTask({ tenant: '', id, metadata: undefined })),
    async *subscribe(id, signal) {
      for await (const event of client.resubscribeTask({ tenant: '', id }, callOptions(signal)))
        yield updateOfNew(event)
    },
    skills: async () => (await client.getAgentCard()).skills.map(({ id }) => id),
    setPush: async (taskId) =>
      await client.createTaskPushNotificationConfig({
        tenant: '',
        id: 'x',
        taskId,
        url: 'https://example.com',
        token: '',
        authentication: undefined,
      }),
  }
}

const callOptions = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal })

function partToNew(part: PlainPart): Part {
  const rest = { metadata: undefined, filename: '', mediaType: '' }
  if ('text' in part) return { ...rest, content: { $case: 'text', value: part.text } }
  if ('data' in part) return { ...rest, content: { $case: 'data', value: part.data } }
  const { url, bytes, name = '', mediaType = '' } = part.file
  const content: Part['content'] =
    bytes === undefined ? { $case: 'url', value: url ?? '' } : { $case: 'raw', value: Buffer.from(bytes, 'base64') }
  return { metadata: undefined, content, filename: name, mediaType }
}

function partOfNew({ content, filename, mediaType }: Part): PlainPart {
  switch (content?.$case) {
    case 'text':
      return { text: content.value }
    case 'data':
      return { data: content.value as JsonValue }
    case 'url':
      return { file: { url: content.value, name: filename, mediaType } }
    case 'raw':
      return { file: { bytes: content.value.toString('base64'), name: filename, mediaType } }
    case undefined:
      throw new Error('a part without content')
  }
}

const messageOfNew = (message: Message | undefined) => (message?.parts ?? []).map(partOfNew)
const stateOfNew = (state: TaskState | undefined) => String(TaskState[state ?? 0]).slice('TASK_STATE_'.length)

function taskOfNew({ id, contextId, status, artifacts, history }: Task): PlainTask {
  const parts = artifacts.map((artifact) => artifact.parts.map(partOfNew))
  return {
    id,
    contextId,
    state: stateOfNew(status?.state),
    asks: messageOfNew(status?.message),
    ...contentOf(parts),
    artifactIds: artifacts.map(({ artifactId }) => artifactId),
    history: history.map((message) => ({
      role: Role[message.role].slice('ROLE_'.length).toLowerCase(),
      parts: messageOfNew(message),
    })),
  }
}

function updateOfNew({ payload }: StreamResponse): PlainUpdate {
  switch (payload?.$case) {
    case 'task':
      return { task: taskOfNew(payload.value) }
    case 'statusUpdate':
      return {
        status: stateOfNew(payload.value.status?.state),
        asks: messageOfNew(payload.value.status?.message),
        taskId: payload.value.taskId,
      }
    case 'artifactUpdate': {
      const { artifact, append, lastChunk } = payload.value
      return {
        artifactId: artifact?.artifactId ?? '',
        parts: (artifact?.parts ?? []).map(partOfNew),
        append,
        lastChunk,
      }
    }
    default:
      throw new Error(`unexpected ${payload?.$case}`)
  }
}

async function openOld({ baseUrl, headers = {}, cardPath }: ClientSettings): Promise<PlainClient> {
  const fetchImpl = fetchWith(headers)
  const factory = new sdk0.ClientFactory({
    transports: [new sdk0.JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new sdk0.DefaultAgentCardResolver({ fetchImpl }),
  })
  const client = await factory.createFromUrl(baseUrl, cardPath)
  const request = (parts: PlainPart[] | string, options: SendOptions): types0.MessageSendParams => ({
    message: {
      kind: 'message',
      messageId: options.messageId ?? randomUUID(),
      role: 'user',
      parts: text(parts).map(partToOld),
      ...(options.contextId === undefined ? {} : { contextId: options.contextId }),
      ...(options.taskId === undefined ? {} : { taskId: options.taskId }),
    },
    configuration: {
      blocking: options.returnAtOnce !== true,
      ...(options.modes === undefined ? {} : { acceptedOutputModes: options.modes }),
      ...(options.historyLength === undefined ? {} : { historyLength: options.historyLength }),
      ...(options.push === undefined ? {} : { pushNotificationConfig: { url: 'https://example.com/hook' } }),
    },
  })
  return {
    name: '0.3',
    async send(parts, options = {}) {
      const result = await client.sendMessage(request(parts, options), callOptions(options.signal))
      if (result.kind !== 'task') throw new Error('a message came instead of a task')
      return taskOfOld(result)
    },
    async *stream(parts, options = {}) {
      for await (const event of client.sendMessageStream(request(parts, options), callOptions(options.signal)))
        yield updateOfOld(event)
    },
    get: async (id, historyLength) =>
      taskOfOld(await client.getTask({ id, ...(historyLength === undefined ? {} : { historyLength }) })),
    cancel: async (id) => taskOfOld(await client.cancelTask({ id })),
    async *subscribe(id, signal) {
      for await (const event of client.resubscribeTask({ id }, callOptions(signal))) yield updateOfOld(event)
    },
    skills: async () => (await client.getAgentCard()).skills.map(({ id }) => id),
    setPush: async (taskId) =>
      await client.setTaskPushNotificationConfig({ taskId, pushNotificationConfig: { url: 'https://example.com' } }),
  }
}

function partToOld(part: PlainPart): types0.Part {
  if ('text' in part) return { kind: 'text', text: part.text }
  if ('data' in part) return { kind: 'data', data: part.data as Record<string, unknown> }
  const { url, bytes, name, mediaType } = part.file
  const about = { ...(name === undefined ? {} : { name }), ...(mediaType === undefined ? {} : { mimeType: mediaType }) }
  return { kind: 'file', file: bytes === undefined ? { uri: url ?? '', ...about } : { bytes, ...about } }
}

function partOfOld(part: types0.Part): PlainPart {
  if (part.kind === 'text') return { text: part.text }
  if (part.kind === 'data') return { data: part.data }
  const { name = '', mimeType = '' } = part.file
  const where = 'uri' in part.file ? { url: part.file.uri } : { bytes: part.file.bytes }
  return { file: { ...where, name, mediaType: mimeType } }
}

const messageOfOld = (message: types0.Message | undefined) => (message?.parts ?? []).map(partOfOld)
const stateOfOld = (state: string) => state.toUpperCase().replaceAll('-', '_')

function taskOfOld({ id, contextId, status, artifacts = [], history = [] }: types0.Task): PlainTask {
  return {
    id,
    contextId,
    state: stateOfOld(status.state),
    asks: messageOfOld(status.message),
    ...contentOf(artifacts.map((artifact) => artifact.parts.map(partOfOld))),
    artifactIds: artifacts.map(({ artifactId }) => artifactId),
    history: history.map((message) => ({ role: message.role, parts: messageOfOld(message) })),
  }
}

function updateOfOld(
  event: types0.Task | types0.Message | types0.TaskStatusUpdateEvent | types0.TaskArtifactUpdateEvent,
): PlainUpdate {
  switch (event.kind) {
    case 'task':
      return { task: taskOfOld(event) }
    case 'status-update':
      return { status: stateOfOld(event.status.state), asks: messageOfOld(event.status.message), taskId: event.taskId }
    case 'artifact-update':
      return {
        artifactId: event.artifact.artifactId,
        parts: event.artifact.parts.map(partOfOld),
        append: event.append === true,
        lastChunk: event.lastChunk === true,
      }
    case 'message':
      throw new Error('unexpected message')
  }
}

function contentOf(artifacts: PlainPart[][]): Pick<PlainTask, 'artifacts' | 'files'> {
  return {
    artifacts: artifacts.map((parts) => parts.map((part) => ('text' in part ? part.text : '')).join('')),
    files: artifacts.flat().filter((part) => 'file' in part),
  }
}

/** The text of all artifacts, as a client shows it that follows a stream. */
export function textShown(updates: readonly PlainUpdate[]): string[] {
  const texts = new Map<string, string>()
  for (const update of updates) {
    if ('task' in update) {
      for (const [index, shown] of update.task.artifacts.entries()) {
        texts.set(update.task.artifactIds[index] ?? '', shown)
      }
    }
    if (!('artifactId' in update)) continue
    const { artifactId, parts, append } = update
    const words = parts.map((part) => ('text' in part ? part.text : '')).join('')
    texts.set(artifactId, append ? (texts.get(artifactId) ?? '') + words : words)
  }
  return [...texts.values()]
}

export function statesOf(updates: readonly PlainUpdate[]): string[] {
  return updates.flatMap((update) =>
    'task' in update ? [update.task.state] : 'status' in update ? [update.status] : [],
  )
}

export async function allOf(stream: AsyncGenerator<PlainUpdate, void>): Promise<PlainUpdate[]> {
  return await Array.fromAsync(stream)
}
