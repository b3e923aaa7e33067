// The objects of A2A in the JSON of protocol 1.0, and the task that the frames of a stream add up to.
// GetTask, lists and the first frame of a subscription are this fold of the same frames that a
// stream sends, so a stream and a snapshot cannot disagree.

import type { JsonValue } from '../../journal/event.ts'
import type { Frame } from '../dialect.ts'

export type TaskState =
  | 'TASK_STATE_SUBMITTED'
  | 'TASK_STATE_WORKING'
  | 'TASK_STATE_INPUT_REQUIRED'
  | 'TASK_STATE_COMPLETED'
  | 'TASK_STATE_FAILED'
  | 'TASK_STATE_CANCELED'

export type A2aPart =
  | { readonly text: string }
  | { readonly data: JsonValue }
  | { readonly url: string; readonly filename?: string; readonly mediaType: string }

export type A2aMessage = {
  readonly messageId: string
  readonly contextId: string
  readonly taskId: string
  readonly role: 'ROLE_USER' | 'ROLE_AGENT'
  readonly parts: readonly A2aPart[]
}

export type TaskStatus = { readonly state: TaskState; readonly message?: A2aMessage; readonly timestamp: string }

export type A2aArtifact = {
  readonly artifactId: string
  readonly name?: string
  readonly parts: readonly A2aPart[]
  readonly metadata?: Readonly<Record<string, JsonValue>>
}

export type A2aTask = {
  readonly id: string
  readonly contextId: string
  readonly status: TaskStatus
  readonly artifacts?: readonly A2aArtifact[]
  readonly history?: readonly A2aMessage[]
}

type StatusUpdate = {
  readonly taskId: string
  readonly contextId: string
  readonly status: TaskStatus
  readonly metadata?: Readonly<Record<string, JsonValue>>
}

export type ArtifactUpdate = {
  readonly taskId: string
  readonly contextId: string
  readonly artifact: A2aArtifact
  readonly append?: true
  readonly lastChunk?: true
}

/** The name of a frame is the field of the result that holds its data. */
export type A2aFrame =
  | { readonly name: 'task'; readonly data: A2aTask }
  | { readonly name: 'statusUpdate'; readonly data: StatusUpdate }
  | { readonly name: 'artifactUpdate'; readonly data: ArtifactUpdate }

const finalStates: ReadonlySet<TaskState> = new Set([
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
])

export function isFinalState(state: TaskState): boolean {
  return finalStates.has(state)
}

type FoldedArtifact = Omit<A2aArtifact, 'parts'> & { parts: A2aPart[] }

/** Adds up the frames of one run. */
export class TaskFold {
  #first: A2aTask | undefined
  #status: TaskStatus | undefined
  readonly #history: A2aMessage[] = []
  readonly #artifacts = new Map<string, FoldedArtifact>()

  /** `frame` must come from the A2A dialect. */
  add(frame: Frame): void {
    const { name, data } = frame as A2aFrame
    if (name === 'task') {
      this.#first = data
      this.#status = data.status
      this.#history.push(...(data.history ?? []))
      for (const artifact of data.artifacts ?? []) {
        this.#artifacts.set(artifact.artifactId, { ...artifact, parts: [...artifact.parts] })
      }
    } else if (name === 'statusUpdate') {
      // A message stays readable after the status that brought it.
      if (this.#status?.message !== undefined) this.#history.push(this.#status.message)
      this.#status = data.status
    } else this.#addArtifact(data)
  }

  /** Undefined before the first frame. */
  task(): A2aTask | undefined {
    if (this.#first === undefined || this.#status === undefined) return undefined
    const { id, contextId } = this.#first
    return {
      id,
      contextId,
      status: this.#status,
      artifacts: [...this.#artifacts.values()],
      history: [...this.#history],
    }
  }

  #addArtifact({ artifact, append }: ArtifactUpdate): void {
    const { artifactId, parts, metadata } = artifact
    const before = this.#artifacts.get(artifactId)
    // A restart replaced this text by another one; a stream could not take it back, a snapshot can.
    if (metadata?.['state'] === 'superseded') this.#artifacts.delete(artifactId)
    else if (before === undefined || append !== true)
      this.#artifacts.set(artifactId, { ...artifact, parts: [...parts] })
    else {
      for (const part of parts) addPart(before.parts, part)
      if (metadata !== undefined) this.#artifacts.set(artifactId, { ...before, metadata })
    }
  }
}

/** Pieces of text become one part. */
function addPart(parts: A2aPart[], part: A2aPart): void {
  const last = parts.at(-1)
  if (last !== undefined && 'text' in last && 'text' in part) parts[parts.length - 1] = { text: last.text + part.text }
  else parts.push(part)
}
