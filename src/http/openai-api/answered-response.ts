// A request of the Responses API that brings results of calls. It continues the run that asked for them, unless its
// settings differ (a client that hands a chat over to another agent sends other instructions and tools): then the
// results are the history of a new run, and the one that waited is cancelled.

import { parseResponseId } from '../../dialects/openai-responses/response-object.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Caller } from '../../kit/caller.ts'
import type { EarlierMessage } from '../../runs/start-request.ts'
import type { Services } from '../routes.ts'
import { type AnsweredRun, findAnsweredRun } from './answered-calls.ts'
import { changedSetting, conversationName, type ResponseBody } from './response-body.ts'
import type { InputMessage, ReadInput } from './response-input.ts'
import { acceptedOf, responseFamily, responseNotFound } from './stored-response.ts'

export type AnsweredResponse = AnsweredRun & {
  /** A setting that the request has, and the run has not. */
  changed: string | undefined
  /** The run waits for results. */
  waits: boolean
}

/** Undefined if no run asked for the results. Throws if the request fits neither the run nor a new one. */
export async function findAnsweredResponse(
  services: Pick<Services, 'runs' | 'journal'>,
  caller: Caller,
  body: ResponseBody,
  { answers, messages }: ReadInput,
): Promise<AnsweredResponse | undefined> {
  if (answers.length === 0) return undefined
  const found = await findAnsweredRun(services, caller, answers)
  if (found === undefined) return undefined
  const { run } = found
  const previous = body.previous_response_id
  // A client that names no response has the ids of calls from a response of its own.
  if (run.family !== responseFamily && previous == null) return undefined
  if (previous != null) {
    if (parseResponseId(previous)?.runId !== run.id) throw responseNotFound(previous)
    if (messages.some(({ role }) => role === 'user')) {
      throw new AppError('messages_invalid', 'input: send the results of calls without new messages.')
    }
  }
  const open = await services.runs.openInteractions(run)
  const waits = open.length > 0
  // The settings of a run that another API started are not those of a request of this one.
  if (run.family !== responseFamily) return { ...found, changed: undefined, waits }
  const changed = changedSetting(body, (await acceptedOf(services, run))?.echo ?? {})
  // A decision about a call of the server belongs to its run.
  const onlyResults = [...found.rows, ...open].every(({ kind }) => kind === 'client_tool')
  if (changed !== undefined && !onlyResults) throw otherSettings(changed)
  return { ...found, changed, waits }
}

function otherSettings(name: string): AppError {
  return new AppError(
    'unsupported_parameter',
    `${name}: this answer continues the response that asked for it, with the settings of that response; send the same, or leave it out.`,
    { details: { param: name } },
  )
}

/** What a new run is given that takes the results along. Throws if the run that asked for them has used them already. */
export async function historyAfter(
  { runs }: Pick<Services, 'runs'>,
  body: ResponseBody,
  { messages }: ReadInput,
  { run, waits, changed = '' }: AnsweredResponse,
): Promise<{ messages: InputMessage[]; before: EarlierMessage[] }> {
  const isStored = body.previous_response_id != null || conversationName(body) !== undefined
  // The input has the calls that the results belong to.
  if (!isStored) return { messages, before: [] }
  if (!waits) throw otherSettings(changed)
  const tool_calls = (await runs.openInteractions(run)).map(({ id, toolName, input }) => ({
    id,
    function: { name: toolName ?? '', arguments: JSON.stringify(input) },
  }))
  const called: InputMessage = { role: 'assistant', content: '', tool_calls }
  // A conversation has the earlier messages.
  return { messages: [called, ...messages], before: body.conversation == null ? await runs.transcript(run) : [] }
}
