// A stored response: which run it is, what it looks like now, and where in the stream of its run it
// begins. Every run can be read as a response, whatever API started it. A run that waited for its
// client has several responses.

import { beginning, compareCursors, type Cursor, cursorText } from '../../dialects/cursor.ts'
import {
  currentResponse,
  nextResponse,
  openAiResponsesDialect,
  type ResponsesState,
} from '../../dialects/openai-responses/openai-responses.ts'
import { parseResponseId, responseId, type ResponseObject } from '../../dialects/openai-responses/response-object.ts'
import type { Dialect } from '../../dialects/dialect.ts'
import { undecidedArm } from '../../dialects/undecided-arm.ts'
import { AppError } from '../../errors/app-error.ts'
import type { EventData } from '../../journal/event.ts'
import { type EventReader, eventPages } from '../../journal/event-pages.ts'
import type { Caller } from '../../kit/caller.ts'
import type { RunRow } from '../../stores/run-store.ts'
import type { Services } from '../routes.ts'
import { foldStoredFrames } from '../stored-frames.ts'

export const responseFamily = 'openai-responses'

/** `index` counts the responses of the run from 0. */
export type ResponsePlace = { run: RunRow; index: number }

type ResponseServices = Pick<Services, 'runs' | 'journal' | 'comparisons'>

/** Throws `response_not_found` if the caller has no such response, or if it was not to be stored. */
export async function findResponse(
  services: Pick<Services, 'runs' | 'journal'>,
  caller: Caller,
  id: string,
): Promise<ResponsePlace> {
  const place = parseResponseId(id)
  const run = place === undefined ? undefined : await services.runs.find(caller, place.runId)
  if (place === undefined || run === undefined) throw responseNotFound(id)
  const accepted = await acceptedOf(services, run)
  if (accepted?.echo?.['store'] === false) throw responseNotFound(id)
  return { run, index: place.index }
}

export function responseNotFound(id: string): AppError {
  return new AppError('response_not_found', `There is no response ${JSON.stringify(id)}.`)
}

export async function acceptedOf(
  { journal }: Pick<Services, 'journal'>,
  run: RunRow,
): Promise<EventData<'run.accepted'> | undefined> {
  const [first] = (await journal.readEvents(run.id, 0, 1)).events
  return first?.type === 'run.accepted' ? first.data : undefined
}

/** The same dialect as that of the stream, so that the numbers of events are the same. */
async function dialectOf({ comparisons }: ResponseServices, run: RunRow): Promise<Dialect<ResponsesState>> {
  const undecided = run.conversationId !== null && (await comparisons.isUndecided(run.id))
  return undecided ? undecidedArm(openAiResponsesDialect) : openAiResponsesDialect
}

/** How many responses of the run ended up to this event. */
export async function responsesUpTo(journal: EventReader, runId: string, seq: number): Promise<number> {
  let count = 0
  for await (const { events, nextAfter } of eventPages(journal, runId)) {
    for (const event of events)
      if (event.seq <= seq && event.type === 'run.state' && event.data.to === 'waiting_user') count += 1
    if (nextAfter >= seq) break
  }
  return count
}

type Lifecycle = { type: string; sequence_number: number; response?: ResponseObject }

/** The response as it is now. Throws `response_not_found` if the run has not come to it. */
export async function readResponse(services: ResponseServices, place: ResponsePlace): Promise<ResponseObject> {
  const { run, index } = place
  const id = responseId(run.id, index)
  let ended: ResponseObject | undefined
  const { state } = await foldStoredFrames(services.journal, run.id, await dialectOf(services, run), {
    frame: ({ frame }) => {
      const { response } = frame.data as Lifecycle
      if (response?.id === id) ended = response
    },
  })
  if (index < state.response && ended !== undefined) return ended
  if (index === state.response && state.isOpen) return currentResponse(state)
  if (await isAbout(services, place, state)) return nextResponse(state)
  throw responseNotFound(id)
}

/** The results have come, and the run has not gone on yet. */
async function isAbout(
  { runs }: ResponseServices,
  { run, index }: ResponsePlace,
  state: ResponsesState,
): Promise<boolean> {
  if (index === 0 || index !== state.response || run.endedAt !== null) return false
  return (await runs.openInteractions(run)).length === 0
}

export type ResponseCursor = {
  cursor: Cursor
  /** True if the reader has the last event of the response. What follows in the run belongs to the next response. */
  isAtEnd: boolean
}

const lastEvents: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.failed'])

/** What a reader has of a response. `frame` is the beginning if it did not say. */
export type ReadUpTo = { number?: number; frame: Cursor }

/**
 * The cursor of a reader that has the events of the response up to the later of two positions; without them, of one that has
 * none of the events. Throws `unknown_cursor` if the response has no such event.
 */
export async function cursorInResponse(
  services: ResponseServices,
  { run, index }: ResponsePlace,
  { number: after, frame: lastFrame }: ReadUpTo,
): Promise<ResponseCursor> {
  const wantsFrame = lastFrame.seq > 0
  if (index === 0 && after === undefined && !wantsFrame) return { cursor: beginning, isAtEnd: false }
  let response = -1
  let before: Cursor = beginning
  let byNumber: ResponseCursor | undefined
  let byFrame: ResponseCursor | undefined
  await foldStoredFrames(services.journal, run.id, await dialectOf(services, run), {
    frame: ({ frame, cursor }) => {
      const { type, sequence_number: number } = frame.data as Lifecycle
      if (number === 0) response += 1
      if (response < index) before = cursor
      if (response !== index) return
      const here = { cursor, isAtEnd: lastEvents.has(type) }
      if (number === after) byNumber = here
      // The address of an event without an index is that of its last frame.
      if (cursor.seq === lastFrame.seq && (lastFrame.index ?? cursor.index) === cursor.index) byFrame = here
    },
  })
  if (after !== undefined && byNumber === undefined) {
    throw new AppError(
      'unknown_cursor',
      `The response has no event ${after} yet; send the last sequence_number you got.`,
      { details: { param: 'starting_after' } },
    )
  }
  if (wantsFrame && byFrame === undefined) {
    throw new AppError(
      'unknown_cursor',
      `The response has no frame ${cursorText(lastFrame)}; send the id of the last one you got.`,
    )
  }
  if (byNumber === undefined || byFrame === undefined) {
    return byNumber ?? byFrame ?? { cursor: before, isAtEnd: false }
  }
  return compareCursors(byNumber.cursor, byFrame.cursor) >= 0 ? byNumber : byFrame
}
