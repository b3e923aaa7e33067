// The fold that a run needs about itself: where it stands, what the model said
// in each finished step, which calls are open, what a person was asked. Live
// execution and recovery use the same fold, so a restart knows exactly what the
// running process knew.

import { AppError } from '../errors/app-error.ts'
import type { EventData, JsonValue, RunEvent, RunSpec, RunStatus, ToolEffect } from './event.ts'
import { type Phase, phaseAfter, refusal } from './transitions.ts'

export type CallState = {
  readonly callId: string
  readonly name: string
  readonly step: number
  readonly index: number
  /** What the call was known to do when it was made; a restart judges by this, also if the tool is gone or has changed. */
  readonly effect: ToolEffect
  readonly source: string | undefined
  readonly note: string
  readonly invalidInput: string | undefined
  input: JsonValue
  /** How often it was started; more than once only after a crash or an `unknown` that a person confirmed. */
  starts: number
  started: boolean
  /** The open or last interaction about this call. */
  interactionId: string | undefined
  decision: 'confirmed' | 'rejected' | 'expired' | 'closed' | undefined
  decisionReason: string | undefined
  /** What a person (or the deadline) answered to the question that this call asks. */
  reply: JsonValue | undefined
  askedUnknown: boolean
  done: EventData<'tool.done'> | undefined
}

export type InteractionState = EventData<'input.required'> & {
  /** The step in which it was asked. */
  step: number
  resolved: EventData<'input.resolved'> | undefined
}

export type StepState = {
  readonly step: number
  /** Empty after its text was superseded, until the new text names its own. */
  messageId: string
  startedAt: number
  /** Text shown under `messageId` so far. */
  text: string
  reasoningId: string | undefined
  reasoning: string
  finished: boolean
  finishReason: string | undefined
  readonly callIds: string[]
}

export type RunState = {
  phase: Phase
  lastSeq: number
  /** The latest time in the journal; the next event gets none before it, also after the clock was set back. */
  lastAt: number
  attempt: number
  accepted: EventData<'run.accepted'> | undefined
  acceptedAt: number
  startedAt: number | undefined
  endedAt: number | undefined
  ended: EventData<'run.ended'> | undefined
  /** Files that were uploaded for the run. */
  files: EventData<'run.prepared'>['files']
  /** The upload that the run needs has not come yet. */
  held: boolean
  /** Names the request among equal ones; undefined if its result may not be reused. */
  cacheKey: string | undefined
  /** The result of an earlier run that this run ends with. */
  reused: EventData<'run.prepared'>['reused']
  steps: StepState[]
  calls: Map<string, CallState>
  interactions: Map<string, InteractionState>
  /** Final answers that did not fit, by step, with what was wrong. */
  rejectedOutputs: Map<number, readonly string[]>
  /** How the interaction ended that was resolved last: for that reason a waiting run goes on. */
  lastResolution: EventData<'input.resolved'>['resolution'] | undefined
  /** Time spent running, over all attempts that were left in order. */
  activeMs: number
  runningSince: number | undefined
  /** Deaths of the process while this run was on its main thread, by id: the place where that was. */
  deaths: Map<string, string>
  usage: { inputTokens: number; outputTokens: number }
}

export function newRunState(): RunState {
  return {
    phase: 'new',
    lastSeq: 0,
    lastAt: 0,
    attempt: 1,
    accepted: undefined,
    acceptedAt: 0,
    startedAt: undefined,
    endedAt: undefined,
    ended: undefined,
    files: [],
    held: false,
    cacheKey: undefined,
    reused: undefined,
    steps: [],
    calls: new Map(),
    interactions: new Map(),
    rejectedOutputs: new Map(),
    lastResolution: undefined,
    activeMs: 0,
    runningSince: undefined,
    deaths: new Map(),
    usage: { inputTokens: 0, outputTokens: 0 },
  }
}

/** Throws `transition_refused` when the table does not allow the event here. */
export function checkTransition(state: Pick<RunState, 'phase'>, event: Pick<RunEvent, 'type' | 'data'>): void {
  const reason = refusal(state.phase, event)
  if (reason !== null) throw new AppError('transition_refused', `The journal refused an event: ${reason}.`)
}

/** Folds one event into the state, in place. Knows nothing of what is allowed; that is `checkTransition`. */
export function applyEvent(state: RunState, event: RunEvent): void {
  state.lastSeq = event.seq
  if (event.at > state.lastAt) state.lastAt = event.at
  state.phase = phaseAfter(state.phase, event)
  switch (event.type) {
    case 'text.delta': {
      const step = state.steps.at(-1)
      if (step === undefined) return
      // A new message id inside a step: the torn one was superseded.
      if (step.messageId === event.data.messageId) step.text += event.data.text
      else {
        step.messageId = event.data.messageId
        step.text = event.data.text
      }
      return
    }
    case 'reasoning.delta': {
      const step = state.steps.at(-1)
      if (step === undefined) return
      if (step.reasoningId === event.data.reasoningId) step.reasoning += event.data.text
      else {
        step.reasoningId = event.data.reasoningId
        step.reasoning = event.data.text
      }
      return
    }
    case 'run.accepted':
      state.accepted = event.data
      state.acceptedAt = event.at
      state.held = event.data.spec.job?.uploadUntil !== undefined
      state.cacheKey = event.data.spec.job?.cacheKey
      return
    case 'run.prepared': {
      const { accepted } = state
      state.held = false
      state.cacheKey = event.data.cacheKey
      state.reused = event.data.reused
      if (accepted === undefined) return
      const { input, skill } = event.data
      state.accepted = { ...accepted, input, spec: skill === undefined ? accepted.spec : { ...accepted.spec, skill } }
      state.files = event.data.files
      return
    }
    case 'run.state':
      state.attempt = event.attempt
      if (event.data.to === 'running') {
        state.startedAt ??= event.at
        state.runningSince = event.at
      } else if (state.runningSince !== undefined) {
        // After a crash nobody knows how long the run was really at work; that time is not counted.
        if (event.data.trigger !== 'restart.requeued') {
          state.activeMs += event.data.activeMs ?? Math.max(0, event.at - state.runningSince)
        }
        state.runningSince = undefined
      }
      return
    case 'step.started': {
      const open = state.steps.at(-1)
      if (open !== undefined && open.step === event.data.step) {
        // Asked again after a crash: the text shown so far still stands, unless it was superseded.
        if (open.messageId === '') open.messageId = event.data.messageId
        return
      }
      state.steps.push({
        step: event.data.step,
        messageId: event.data.messageId,
        startedAt: event.at,
        text: '',
        reasoningId: undefined,
        reasoning: '',
        finished: false,
        finishReason: undefined,
        callIds: [],
      })
      return
    }
    case 'message.done': {
      const step = state.steps.at(-1)
      if (step === undefined) return
      const active = event.data.state === 'active'
      step.messageId = active ? event.data.messageId : ''
      step.text = active ? event.data.text : ''
      return
    }
    case 'step.done': {
      const step = state.steps.at(-1)
      if (step === undefined) return
      step.finished = true
      step.messageId = event.data.messageId
      step.finishReason = event.data.finishReason
      state.usage.inputTokens += event.data.usage?.inputTokens ?? 0
      state.usage.outputTokens += event.data.usage?.outputTokens ?? 0
      return
    }
    case 'tool.called':
      state.steps.at(-1)?.callIds.push(event.data.callId)
      state.calls.set(event.data.callId, {
        callId: event.data.callId,
        name: event.data.name,
        step: event.data.step,
        index: event.data.index,
        effect: event.data.effect,
        source: event.data.source,
        note: event.data.note,
        invalidInput: event.data.invalidInput,
        input: event.data.input,
        starts: 0,
        started: false,
        interactionId: undefined,
        decision: undefined,
        decisionReason: undefined,
        reply: undefined,
        askedUnknown: false,
        done: undefined,
      })
      return
    case 'tool.started': {
      const call = state.calls.get(event.data.callId)
      if (call === undefined) return
      call.started = true
      call.starts += 1
      call.input = event.data.input
      return
    }
    case 'tool.done': {
      const call = state.calls.get(event.data.callId)
      if (call !== undefined) call.done = event.data
      return
    }
    case 'input.required': {
      state.interactions.set(event.data.interactionId, {
        ...event.data,
        step: state.steps.at(-1)?.step ?? 0,
        resolved: undefined,
      })
      const call = event.data.callId === undefined ? undefined : state.calls.get(event.data.callId)
      if (call !== undefined) {
        call.interactionId = event.data.interactionId
        call.decision = undefined
        call.askedUnknown = event.data.outcome === 'unknown'
      }
      return
    }
    case 'input.resolved': {
      const interaction = state.interactions.get(event.data.interactionId)
      if (interaction === undefined) return
      interaction.resolved = event.data
      state.lastResolution = event.data.resolution
      const call = interaction.callId === undefined ? undefined : state.calls.get(interaction.callId)
      if (call === undefined) return
      const { resolution } = event.data
      call.decision = resolution === 'replied' || resolution === 'auto_decided' ? 'confirmed' : resolution
      call.decisionReason = event.data.reason
      call.reply = event.data.response
      if (resolution === 'confirmed') {
        if (event.data.input !== undefined) call.input = event.data.input
        call.started = false
      }
      return
    }
    case 'output.rejected':
      state.rejectedOutputs.set(event.data.step, event.data.errors)
      return
    case 'run.ended':
      state.ended = withOutput(state, event.data)
      state.endedAt = event.at
      return
    case 'diagnostic': {
      const { code, details } = event.data
      if (code === processDied) state.deaths.set(String(details?.['id']), String(details?.['place']))
      return
    }
    case 'tool.progress':
    case 'context.patch':
      return
  }
}

/** A long answer is not repeated in the event that ends the run. */
function withOutput(state: RunState, ended: EventData<'run.ended'>): EventData<'run.ended'> {
  if (ended.status !== 'succeeded' || ended.output !== undefined || ended.messageId === undefined) return ended
  const answer = state.steps.findLast((step) => step.messageId === ended.messageId)
  return answer === undefined ? ended : { ...ended, output: answer.text }
}

/** The code of the `diagnostic` by which a run remembers that the process died while it was on the main thread. */
export const processDied = 'process_died'

/** How often the process died while this run was at one and the same place. */
export function deathsAtOnePlace(state: RunState): number {
  const counts = new Map<string, number>()
  for (const place of state.deaths.values()) counts.set(place, (counts.get(place) ?? 0) + 1)
  return Math.max(0, ...counts.values())
}

export function foldRun(events: Iterable<RunEvent>): RunState {
  const state = newRunState()
  for (const event of events) applyEvent(state, event)
  return state
}

export function statusOf(state: RunState): RunStatus {
  if (state.phase === 'new') return 'queued'
  if (state.phase === 'ended') return state.ended?.status ?? 'failed'
  return state.phase
}

export function specOf(state: RunState): RunSpec {
  if (state.accepted === undefined)
    throw new AppError('run_unrecoverable', 'The run has lost its first event, so it cannot go on.')
  return state.accepted.spec
}

export function openCalls(state: RunState): CallState[] {
  return [...state.calls.values()].filter((call) => call.done === undefined)
}

/** What a step asked in its own words, without a tool. */
export function questionOf(state: RunState, step: number): InteractionState | undefined {
  return [...state.interactions.values()].find((asked) => asked.callId === undefined && asked.step === step)
}

export function openInteractions(state: RunState): InteractionState[] {
  return [...state.interactions.values()].filter((interaction) => interaction.resolved === undefined)
}
