// What the engine keeps in the journal to find its work again. AG-UI cannot re-attach to a
// stream, so only a turn that waits for a person can be continued after a crash.

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import { reportedUsage } from '../../journal/event.ts'
import { json, type JsonValue } from '../../journal/json-value.ts'
import { defined } from '../../kit/defined.ts'

const interrupt = z.object({
  id: z.string(),
  reason: z.string(),
  message: z.string().optional(),
  /** The call that needs consent. Absent: the interrupt belongs to no call of the remote agent. */
  toolCallId: z.string().optional(),
  /** Name and arguments of the call. */
  name: z.string().optional(),
  input: json.optional(),
  responseSchema: z.record(z.string(), json).optional(),
  expiresAt: z.number().optional(),
})

export type Interrupt = z.infer<typeof interrupt>

const remoteRun = { threadId: z.string(), runId: z.string(), round: z.number().int().positive() }

const memory = {
  /** The state of the remote agent; absent if it is not known or too large. */
  remoteState: json.optional(),
  /** Ids of the remote agent's messages; see message-ids.ts. */
  messageIds: z.record(z.string(), z.string()),
}

const handleSchema = z.discriminatedUnion('state', [
  /** Written before the request is sent. */
  z.object({ ...remoteRun, state: z.literal('started') }),
  z.object({
    ...remoteRun,
    state: z.literal('interrupted'),
    interrupts: z.array(interrupt),
    /** Calls without a result. */
    openCalls: z.array(z.string()),
    /** What the turn has used so far. */
    usage: reportedUsage.optional(),
    ...memory,
  }),
  /** Written before the request with the decisions is sent. */
  z.object({ ...remoteRun, state: z.literal('resuming') }),
  /** Written before the end of the turn; the next turn of the thread begins with it. */
  z.object({ ...remoteRun, state: z.literal('finished'), ...memory }),
])

export type AgUiHandle = z.infer<typeof handleSchema>
export type Interrupted = Extract<AgUiHandle, { state: 'interrupted' }>
type Finished = Extract<AgUiHandle, { state: 'finished' }>
export type ThreadMemory = Pick<Finished, 'remoteState' | 'messageIds'>

/** A handle in the journal has at most 64 KiB. */
const handleCharsMax = 60 * 1024

export function readHandle(handle: JsonValue): AgUiHandle {
  const parsed = handleSchema.safeParse(handle)
  if (parsed.success) return parsed.data
  throw new AppError('engine_outcome_unknown', 'The handle of this turn was written by another version of the server.')
}

/** What the last turn of the thread left; nothing if it broke off or the handle is of another thread. */
export function memoryOf(previous: JsonValue | undefined, threadId: string): ThreadMemory {
  const parsed = handleSchema.safeParse(previous)
  if (!parsed.success || parsed.data.threadId !== threadId || !('messageIds' in parsed.data)) return { messageIds: {} }
  return parsed.data
}

export function fittingFinished(handle: Finished): Finished {
  if (JSON.stringify(handle).length <= handleCharsMax) return handle
  const { remoteState: _, ...rest } = handle
  return rest
}

/** Leaves out what is optional until the handle fits. Throws if it does not fit even so. */
export function fittingHandle(handle: Interrupted): Interrupted {
  const { remoteState: _, ...rest } = handle
  const fits = (value: Interrupted) => JSON.stringify(value).length <= handleCharsMax
  if (fits(handle)) return handle
  if (fits(rest)) return rest
  const bare = {
    ...rest,
    interrupts: rest.interrupts.map(({ id, reason, message, toolCallId, name, expiresAt }) => ({
      id,
      reason,
      ...defined({ message: message?.slice(0, 1000), toolCallId, name, expiresAt }),
    })),
  }
  if (fits(bare)) return bare
  throw new AppError('engine_failed', 'The remote agent asked for more at once than a handle of 64 KiB can hold.')
}
