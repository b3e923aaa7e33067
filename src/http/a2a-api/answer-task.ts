// A message to a task that needs a person: it decides what the task asked. A text answers a single
// question; data parts with `interactionId` answer any number of them.

import type { A2aState } from '../../dialects/a2a/a2a.ts'
import { isFinalState, type A2aTask } from '../../dialects/a2a/task.ts'
import { AppError } from '../../errors/app-error.ts'
import { agrees } from '../../jobs/consent-words.ts'
import type { EventData, JsonValue } from '../../journal/event.ts'
import type { Caller } from '../../kit/caller.ts'
import type { Services } from '../routes.ts'
import { dataOfMessage, type MessageOfClient, textOfMessage } from './message-params.ts'
import { isRecord } from '../../kit/is-record.ts'

type Question = EventData<'input.required'>
type Answer =
  | { question: Question; value: JsonValue; changes?: Record<string, JsonValue>; reason?: string }
  /** The result of a call that the client executes. */
  | { question: Question; result: { output: JsonValue } | { error: string } }

/** The reason of a rejection is stored and shown; a longer text is cut. */
const reasonCharsMax = 2000

/** Throws `task_over`, `task_not_waiting`, or what is wrong with the answer. */
export async function answerTask(
  { confirmations, clientTools }: Pick<Services, 'confirmations' | 'clientTools'>,
  caller: Caller,
  { task, state }: { task: A2aTask; state: A2aState },
  message: MessageOfClient,
): Promise<void> {
  if (isFinalState(task.status.state)) {
    throw new AppError(
      'task_over',
      'The task has ended and takes no more messages. Leave taskId out to start a new task in the same context.',
    )
  }
  if (message.contextId !== undefined && message.contextId !== task.contextId) {
    throw new AppError(
      'invalid_request',
      'params.message.contextId is not the context of the task; leave one of them out.',
    )
  }
  if (task.status.state !== 'TASK_STATE_INPUT_REQUIRED' || state.asked.size === 0) {
    throw new AppError(
      'task_not_waiting',
      'The task asks nothing at the moment. Wait until it needs input, or leave taskId out to start a new task in the same context.',
    )
  }
  for (const answer of answersIn(message, [...state.asked.values()])) {
    const { interactionId, kind } = answer.question
    if ('result' in answer) {
      await clientTools.resolve(caller, task.id, [{ toolCallId: interactionId, ...answer.result }])
    } else if (kind === 'question') await confirmations.confirm(caller, interactionId, { answer: answer.value })
    else if (agrees(answer.value)) await confirmations.confirm(caller, interactionId, answer.changes)
    else await confirmations.reject(caller, interactionId, answer.reason)
  }
}

function answersIn(message: MessageOfClient, asked: readonly Question[]): Answer[] {
  const named = dataOfMessage(message).filter((data) => 'interactionId' in data)
  if (named.length > 0) return named.map((data) => answerOf(data, asked))
  const [question, second] = asked
  if (question === undefined || second !== undefined) {
    throw new AppError(
      'invalid_request',
      `The task asks ${asked.length} things. Answer with one data part for each: {"interactionId": "${asked[0]?.interactionId}", "approved": true}.`,
    )
  }
  const [data] = dataOfMessage(message)
  if (data !== undefined) return [answerOf({ ...data, interactionId: question.interactionId }, asked)]
  const text = textOfMessage(message)
  if (question.kind === 'client_tool') return [{ question, result: { output: text } }]
  return [{ question, value: text, reason: text.slice(0, reasonCharsMax) }]
}

/**
 * `{"interactionId", "approved", "arguments"?, "reason"?}` for a call, `{"interactionId", "answer"}` for a question, and
 * `{"interactionId", "output"}` or `{"interactionId", "error"}` for a call that the client executes.
 */
function answerOf(data: Record<string, JsonValue>, asked: readonly Question[]): Answer {
  const { interactionId, approved, arguments: changed, reason, answer, output, error } = data
  const question = asked.find((open) => open.interactionId === interactionId)
  if (question === undefined) {
    throw new AppError(
      'tool_confirmation_not_found',
      `The task does not ask ${JSON.stringify(interactionId)} at the moment; its status has the ids of what it asks.`,
    )
  }
  if (question.kind === 'client_tool') {
    if (typeof error === 'string') return { question, result: { error } }
    if (output !== undefined) return { question, result: { output } }
    throw new AppError(
      'invalid_request',
      'This is a call that you execute; send its result as {"output": …} or {"error": "…"} in the data part.',
    )
  }
  if (question.kind === 'question') {
    if (answer !== undefined) return { question, value: answer }
    throw new AppError(
      'invalid_request',
      'This is a question; send its answer as text, or as {"answer": …} in the data part.',
    )
  }
  if (typeof approved !== 'boolean') {
    throw new AppError(
      'invalid_request',
      'This is a confirmation; send {"approved": true} or {"approved": false} in the data part.',
    )
  }
  const isObject = isRecord(changed)
  return {
    question,
    value: approved,
    ...(isObject ? { changes: changed } : {}),
    ...(typeof reason === 'string' ? { reason: reason.slice(0, reasonCharsMax) } : {}),
  }
}
