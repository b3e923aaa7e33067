// The frames of A2A in the JSON of protocol 0.3: a `kind` on every object, roles and states in lower
// case, files in an object of their own, and `final` on the status that ends a stream.

import type { A2aFrame, A2aMessage, A2aPart, A2aTask, TaskState, TaskStatus } from './task.ts'
import { isFinalState } from './task.ts'

type LegacyObject = Readonly<Record<string, unknown>>

/** The result of a stream's frame. */
export function legacyResult(frame: A2aFrame): LegacyObject {
  switch (frame.name) {
    case 'task':
      return legacyTask(frame.data)
    case 'statusUpdate': {
      const { status, ...rest } = frame.data
      const { state } = status
      const final = isFinalState(state) || state === 'TASK_STATE_INPUT_REQUIRED'
      return { kind: 'status-update', ...rest, status: legacyStatus(status), final }
    }
    case 'artifactUpdate': {
      const { artifact, ...rest } = frame.data
      return { kind: 'artifact-update', ...rest, artifact: { ...artifact, parts: artifact.parts.map(legacyPart) } }
    }
  }
}

export function legacyTask({ status, artifacts, history, ...rest }: A2aTask): LegacyObject {
  return {
    kind: 'task',
    ...rest,
    status: legacyStatus(status),
    ...(artifacts === undefined
      ? {}
      : { artifacts: artifacts.map((artifact) => ({ ...artifact, parts: artifact.parts.map(legacyPart) })) }),
    ...(history === undefined ? {} : { history: history.map(legacyMessage) }),
  }
}

function legacyStatus({ state, message, timestamp }: TaskStatus): LegacyObject {
  return {
    state: legacyState(state),
    ...(message === undefined ? {} : { message: legacyMessage(message) }),
    timestamp,
  }
}

function legacyState(state: TaskState): string {
  return state.slice('TASK_STATE_'.length).toLowerCase().replaceAll('_', '-')
}

function legacyMessage({ role, parts, ...rest }: A2aMessage): LegacyObject {
  return { kind: 'message', ...rest, role: role === 'ROLE_USER' ? 'user' : 'agent', parts: parts.map(legacyPart) }
}

function legacyPart(part: A2aPart): LegacyObject {
  if ('text' in part) return { kind: 'text', text: part.text }
  if ('data' in part) return { kind: 'data', data: part.data }
  const { url, filename, mediaType } = part
  return {
    kind: 'file',
    file: { uri: url, mimeType: mediaType, ...(filename === undefined ? {} : { name: filename }) },
  }
}
