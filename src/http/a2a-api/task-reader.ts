// Reads runs as A2A tasks. A task is the fold of the frames that a stream of the run sends (TaskFold),
// so its state is always that of some point of the stream: `seq`.

import type { A2aOptions, A2aState } from '../../dialects/a2a/a2a.ts'
import { a2aDialect, encodeSnapshot } from '../../dialects/a2a/a2a.ts'
import { type A2aFrame, type A2aTask, TaskFold } from '../../dialects/a2a/task.ts'
import { undecidedArm } from '../../dialects/undecided-arm.ts'
import { AppError } from '../../errors/app-error.ts'
import { cutText } from '../../kit/cut-text.ts'
import type { RunRow } from '../../stores/run-store.ts'
import type { Services } from '../routes.ts'
import { foldStoredFrames } from '../stored-frames.ts'

export type ReadTask = { task: A2aTask; state: A2aState; seq: number }

export async function readTask(
  { services, origin }: { services: Pick<Services, 'journal' | 'comparisons'>; origin: string },
  run: RunRow,
): Promise<ReadTask> {
  const undecided = run.conversationId !== null && (await services.comparisons.isUndecided(run.id))
  const dialect = undecided ? undecidedArm(a2aDialect({ origin })) : a2aDialect({ origin })
  const fold = new TaskFold()
  let seq = 0
  const { state } = await foldStoredFrames(services.journal, run.id, dialect, {
    event: (event) => (seq = event.seq),
    frame: ({ frame }) => fold.add(frame),
  })
  const task = fold.task()
  if (task === undefined) throw new AppError('run_not_found', `The task ${JSON.stringify(run.id)} cannot be read.`)
  return { task, state, seq }
}

/** The newest `length` messages of the history; all if `length` is absent. */
export function withHistory(task: A2aTask, length: number | null | undefined): A2aTask {
  if (length == null) return task
  return { ...task, history: length === 0 ? [] : (task.history ?? []).slice(-length) }
}

/** In UTF-16 units. Clients refuse an event of more than 4 MiB, and JSON may take six bytes for a character. */
const snapshotCharsMax = 512 * 1024

/**
 * The frames that open a subscription: the task, and text that is too long for one event after it, in pieces. Of a long
 * history only the newest messages are there.
 */
export function encodeOpening(task: A2aTask, options: A2aOptions): string {
  const history = newestWithin(task.history ?? [], snapshotCharsMax)
  const whole = { ...task, history }
  if (JSON.stringify(task.artifacts ?? []).length <= snapshotCharsMax) {
    return encodeSnapshot({ name: 'task', data: whole }, options)
  }
  const frames: A2aFrame[] = [{ name: 'task', data: { ...whole, artifacts: [] } }]
  for (const artifact of task.artifacts ?? []) {
    for (const [index, part] of artifact.parts.flatMap(inPieces).entries()) {
      const data = { taskId: task.id, contextId: task.contextId, artifact: { ...artifact, parts: [part] } }
      frames.push({ name: 'artifactUpdate', data: index === 0 ? data : { ...data, append: true } })
    }
  }
  return frames.map((frame) => encodeSnapshot(frame, options)).join('')
}

type Part = NonNullable<A2aTask['artifacts']>[number]['parts'][number]

function inPieces(part: Part): Part[] {
  return 'text' in part ? cutText(part.text, snapshotCharsMax).map((text) => ({ text })) : [part]
}

function newestWithin<Item>(items: readonly Item[], charsMax: number): Item[] {
  const kept: Item[] = []
  let chars = 0
  for (const item of items.toReversed()) {
    chars += JSON.stringify(item).length
    if (chars > charsMax) break
    kept.unshift(item)
  }
  return kept
}
