// The state of a run as a fold of its events: its phase, what the model said in each
// step, which calls are open, what a person was asked. Live execution and recovery must
// use this same fold, so that a restart has exactly the state of the process that died.

import { AppError } from '../errors/app-error.ts'
import { grown } from '../kit/growing-text.ts'
import { diagnosticCodes } from './diagnostic-codes.ts'
import type { EventData, EventOf, JsonValue, ProviderState, RunEvent, RunSpec, RunStatus, ToolEffect } from './event.ts'
import { type Phase, phaseAfter, refusal } from './transitions.ts'
import { addUsage, noUsage, usageOfStep, type UsageTotals } from './usage.ts'

export type CallState = {
  readonly callId: string
  readonly name: string
  readonly step: number
  readonly index: number
  /** The tool's effect when the call was made. A restart uses this value, even if the tool was removed or changed since. */
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
  /** The reply of a person (or of the deadline) to the question that this call asks. */
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
  /** Empty after the text was superseded, until the new text brings its own message id. */
  messageId: string
  /** `provider/model`. Another one if the step is asked again of a fallback. */
  model: string
  startedAt: number
  /** Text shown under `messageId` so far. */
  text: string
  reasoningId: string | undefined
  reasoning: string
  finished: boolean
  finishReason: string | undefined
  /** What the provider needs back with this step. */
  provider: ProviderState | undefined
  /** The calls that are executed here. Those that the provider ran itself are not among them. */
  readonly callIds: string[]
  /** What the text of this step is based on, by the provider's account. */
  readonly sources: EventData<'source.found'>[]
}

/** What this run decided about its prompt. Earlier runs left their decisions in the rows of the conversation. */
export type ContextState = {
  /** The first message of the history that the model is still given. */
  keptFrom: string | undefined
  summary: EventData<'context.summarised'> | undefined
  /** The first message of this run's own steps that the model is still given. */
  stepsFrom: string | undefined
}

export type RunState = {
  phase: Phase
  lastSeq: number
  /** The latest time in the journal. The next event gets no earlier time, even if the clock was set back. */
  lastAt: number
  attempt: number
  accepted: EventData<'run.accepted'> | undefined
  acceptedAt: number
  startedAt: number | undefined
  endedAt: number | undefined
  ended: EventData<'run.ended'> | undefined
  /** Files that were uploaded for the run. */
  files: EventData<'run.prepared'>['files']
  /** True while the run waits for its upload. */
  held: boolean
  /** Equal requests have equal cache keys; undefined if the result may not be reused. */
  cacheKey: string | undefined
  /** The result of an earlier run that this run ends with. */
  reused: EventData<'run.prepared'>['reused']
  steps: StepState[]
  calls: ReadonlyMap<string, CallState>
  interactions: ReadonlyMap<string, InteractionState>
  /** The errors of final answers that did not fit the output schema, by step. */
  rejectedOutputs: ReadonlyMap<number, readonly string[]>
  /** The resolution of the interaction that was resolved last; it is the reason why a waiting run goes on. */
  lastResolution: EventData<'input.resolved'>['resolution'] | undefined
  /** Time spent running, over all attempts that did not end in a crash. */
  activeMs: number
  runningSince: number | undefined
  /** The engine that took over because the one of the spec was not available. */
  fallbackEngine: string | undefined
  /** What the turn engine asked to have journaled last. */
  handle: JsonValue | undefined
  /** Process crashes while this run was on the main thread: crash id → the place in the run where it happened. */
  deaths: ReadonlyMap<string, string>
  /** Over all finished steps, summaries and discarded answers. */
  usage: UsageTotals
  /** The older messages that the model is no longer given, and the summary in their place. */
  context: ContextState
  /** The budgets for which the run has a warning. */
  budgetWarnings: ReadonlySet<string>
}

// Most runs never need these collections, and a run may be open for long, so all states share the empty ones.
const emptyMap: ReadonlyMap<never, never> = new Map<never, never>()
const emptySet: ReadonlySet<never> = new Set<never>()
const noFiles: RunState['files'] = []

/** The map with the entry. It is changed in place, unless it is the empty one that all states share. */
function withEntry<Key, Value>(map: ReadonlyMap<Key, Value>, key: Key, value: Value): ReadonlyMap<Key, Value> {
  return (map === (emptyMap as ReadonlyMap<Key, Value>) ? new Map<Key, Value>() : (map as Map<Key, Value>)).set(
    key,
    value,
  )
}

export function addInteraction(state: RunState, interaction: InteractionState): void {
  state.interactions = withEntry(state.interactions, interaction.interactionId, interaction)
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
    files: noFiles,
    held: false,
    cacheKey: undefined,
    reused: undefined,
    steps: [],
    calls: emptyMap,
    interactions: emptyMap,
    rejectedOutputs: emptyMap,
    lastResolution: undefined,
    activeMs: 0,
    runningSince: undefined,
    fallbackEngine: undefined,
    handle: undefined,
    deaths: emptyMap,
    usage: noUsage,
    context: { keptFrom: undefined, summary: undefined, stepsFrom: undefined },
    budgetWarnings: emptySet,
  }
}

/** Throws `transition_refused` if the transition table does not allow the event in this phase. */
export function checkTransition(phase: Phase, event: Pick<RunEvent, 'type' | 'data'>): void {
  const reason = refusal(phase, event)
  if (reason !== null) throw new AppError('transition_refused', `The journal refused an event: ${reason}.`)
}

/** Folds one event into the state, in place. Does not check whether the event is allowed; `checkTransition` does. */
export function applyEvent(state: RunState, event: RunEvent): void {
  state.lastSeq = event.seq
  if (event.at > state.lastAt) state.lastAt = event.at
  state.phase = phaseAfter(state.phase, event)
  switch (event.type) {
    case 'text.delta': {
      const step = state.steps.at(-1)
      if (step === undefined) return
      // A new message id inside a step: the unfinished message before it was superseded.
      if (step.messageId === event.data.messageId) step.text = grown(step.text, event.data.text)
      else {
        step.messageId = event.data.messageId
        step.text = event.data.text
      }
      return
    }
    case 'reasoning.delta': {
      const step = state.steps.at(-1)
      if (step === undefined) return
      if (step.reasoningId === event.data.reasoningId) step.reasoning = grown(step.reasoning, event.data.text)
      else {
        step.reasoningId = event.data.reasoningId
        step.reasoning = event.data.text
      }
      return
    }
    case 'source.found':
      state.steps.at(-1)?.sources.push(event.data)
      return
    case 'run.accepted':
      state.accepted = event.data
      state.acceptedAt = event.at
      state.held = event.data.spec.job?.uploadUntil !== undefined
      state.cacheKey = event.data.spec.job?.cacheKey
      return
    case 'run.prepared':
      applyPrepared(state, event.data)
      return
    case 'run.state':
      applyStateChange(state, event)
      return
    case 'step.started':
      startStep(state, event)
      return
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
      step.provider = event.data.provider
      state.usage = addUsage(state.usage, usageOfStep(event.data))
      return
    }
    case 'answer.discarded':
      state.usage = addUsage(state.usage, usageOfStep(event.data))
      return
    case 'tool.called':
      addCall(state, event.data)
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
    case 'input.required':
      askInteraction(state, event.data)
      return
    case 'input.resolved':
      resolveInteraction(state, event.data)
      return
    case 'output.rejected':
      state.rejectedOutputs = withEntry(state.rejectedOutputs, event.data.step, event.data.errors)
      return
    case 'context.cut':
      if (event.data.strategy === 'run_steps') state.context.stepsFrom = event.data.keptFromMessageId
      else state.context.keptFrom = event.data.keptFromMessageId
      return
    case 'context.summarised':
      state.context.keptFrom = event.data.keptFromMessageId
      state.context.summary = event.data
      state.usage = addUsage(state.usage, usageOfStep(event.data))
      return
    case 'run.ended':
      state.ended = withOutput(state, event.data)
      state.endedAt = event.at
      return
    case 'diagnostic':
      applyDiagnostic(state, event.data)
      return
    case 'engine.handle':
      state.handle = event.data.handle ?? undefined
      return
    case 'tool.progress':
    case 'context.patch':
      return
  }
}

function applyPrepared(state: RunState, { input, skill, files, cacheKey, reused }: EventData<'run.prepared'>): void {
  const { accepted } = state
  state.held = false
  state.cacheKey = cacheKey
  state.reused = reused
  if (accepted === undefined) return
  state.accepted = { ...accepted, input, spec: skill === undefined ? accepted.spec : { ...accepted.spec, skill } }
  state.files = files
}

function applyStateChange(state: RunState, { at, attempt, data }: EventOf<'run.state'>): void {
  state.attempt = attempt
  if (data.to === 'running') {
    state.startedAt ??= at
    state.runningSince = at
    return
  }
  if (state.runningSince === undefined) return
  // After a crash it is unknown how long the run really worked, so that time is not counted.
  if (data.trigger !== 'restart.requeued') state.activeMs += data.activeMs ?? Math.max(0, at - state.runningSince)
  state.runningSince = undefined
}

function startStep(state: RunState, { at, data: { step, messageId, model } }: EventOf<'step.started'>): void {
  const open = state.steps.at(-1)
  if (open !== undefined && open.step === step) {
    // The model is asked again after a crash. The text shown so far stays valid, unless it was superseded.
    if (open.messageId === '') open.messageId = messageId
    open.model = model
    return
  }
  const started: StepState = {
    step,
    messageId,
    model,
    startedAt: at,
    text: '',
    reasoningId: undefined,
    reasoning: '',
    finished: false,
    finishReason: undefined,
    provider: undefined,
    callIds: [],
    sources: [],
  }
  // Most runs have one step, and an empty list makes room for 17 entries at its first push.
  if (open === undefined) state.steps = [started]
  else state.steps.push(started)
}

function addCall(state: RunState, called: EventData<'tool.called'>): void {
  const { callId, name, step, index, effect, source, note, invalidInput, input } = called
  if (!isProviderCall(called)) state.steps.at(-1)?.callIds.push(callId)
  state.calls = withEntry(state.calls, callId, {
    callId,
    name,
    step,
    index,
    effect,
    source,
    note,
    invalidInput,
    input,
    starts: 0,
    started: false,
    interactionId: undefined,
    decision: undefined,
    decisionReason: undefined,
    reply: undefined,
    askedUnknown: false,
    done: undefined,
  })
}

function askInteraction(state: RunState, required: EventData<'input.required'>): void {
  const { interactionId, callId, outcome } = required
  addInteraction(state, { ...required, step: state.steps.at(-1)?.step ?? 0, resolved: undefined })
  const call = callId === undefined ? undefined : state.calls.get(callId)
  if (call === undefined) return
  call.interactionId = interactionId
  call.decision = undefined
  call.askedUnknown = outcome === 'unknown'
}

function resolveInteraction(state: RunState, resolved: EventData<'input.resolved'>): void {
  const { interactionId, resolution, reason, response, input } = resolved
  const interaction = state.interactions.get(interactionId)
  if (interaction === undefined) return
  interaction.resolved = resolved
  state.lastResolution = resolution
  const call = interaction.callId === undefined ? undefined : state.calls.get(interaction.callId)
  if (call === undefined) return
  call.decision = resolution === 'replied' || resolution === 'auto_decided' ? 'confirmed' : resolution
  call.decisionReason = reason
  call.reply = response
  if (resolution !== 'confirmed') return
  if (input !== undefined) call.input = input
  call.started = false
}

/** Fills in the output of a long answer, which `run.ended` does not repeat, from its message. */
function withOutput(state: RunState, ended: EventData<'run.ended'>): EventData<'run.ended'> {
  if (ended.status !== 'succeeded' || ended.output !== undefined || ended.messageId === undefined) return ended
  const answer = state.steps.findLast((step) => step.messageId === ended.messageId)
  return answer === undefined ? ended : { ...ended, output: answer.text }
}

function applyDiagnostic(state: RunState, { code, details = {} }: EventData<'diagnostic'>): void {
  switch (code) {
    case diagnosticCodes.engineFallback:
      state.fallbackEngine = String(details['to'])
      return
    case diagnosticCodes.modelFallback:
      switchModel(state, details['to'])
      return
    case diagnosticCodes.budgetNearlyUsed:
      state.budgetWarnings = new Set([...state.budgetWarnings, String(details['scope'])])
      return
    case diagnosticCodes.processDied:
      state.deaths = withEntry(state.deaths, String(details['id']), String(details['place']))
  }
}

function switchModel(state: RunState, model: JsonValue | undefined): void {
  const { accepted } = state
  if (accepted === undefined || typeof model !== 'string') return
  state.accepted = { ...accepted, spec: { ...accepted.spec, model } }
}

/** The model to ask if that of the spec cannot answer; undefined if there is none left. */
export function nextModel({ model, fallbackModels = [] }: RunSpec): string | undefined {
  return fallbackModels[fallbackModels.indexOf(model) + 1]
}

/** The name of the engine that executes the run. */
export function engineOf(state: RunState): string {
  return state.fallbackEngine ?? specOf(state).engine
}

/** The highest number of process crashes at any one place in this run. */
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

/** The number of the step that is asked next. An interrupted step is asked again under its number. */
export function nextStepNumber({ steps }: Pick<RunState, 'steps'>): number {
  const last = steps.at(-1)
  return last === undefined ? 1 : last.finished ? last.step + 1 : last.step
}

export function specOf(state: RunState): RunSpec {
  if (state.accepted === undefined)
    throw new AppError('run_unrecoverable', 'The run has lost its first event, so it cannot go on.')
  return state.accepted.spec
}

export function openCalls(state: RunState): CallState[] {
  return [...state.calls.values()].filter((call) => call.done === undefined)
}

const providerSource = 'provider:'

/** The `source` of a call that the provider of the model runs itself. */
export function providerSourceOf(provider: string): string {
  return `${providerSource}${provider}`
}

/** True if the provider runs the call itself while it answers: it is never executed here and needs no consent. */
export function isProviderCall({ source }: { source?: string | undefined }): boolean {
  return source?.startsWith(providerSource) === true
}

/** The open calls that have to be executed here, or that wait for a person. */
export function callsToRun(state: RunState): CallState[] {
  return openCalls(state).filter((call) => !isProviderCall(call))
}

/** The question that a step asked in its text, without a tool call. */
export function questionOf(state: RunState, step: number): InteractionState | undefined {
  return [...state.interactions.values()].find((asked) => asked.callId === undefined && asked.step === step)
}

export function openInteractions(state: RunState): InteractionState[] {
  return [...state.interactions.values()].filter((interaction) => interaction.resolved === undefined)
}
