// What a run did when: its states, the requests to the model, the tool calls and the questions, each with the times in which it
// was queued, at work or waiting for a person. Built row by row, so that a live run costs what is new.

import type { JournalRow } from './journal-row.ts'

export type SegmentKind = 'queued' | 'active' | 'waiting'

/** `end` is null while it lasts. */
export type Segment = { kind: SegmentKind; start: number; end: number | null; attempt: number }

export type Span = {
  id: string
  kind: 'run' | 'model' | 'tool' | 'question'
  /** The model, the tool, the question. */
  label: string
  /** The event that it began with. */
  seq: number
  start: number
  end: number | null
  segments: Segment[]
  /** Of a model request: when its first text or reasoning came. */
  firstToken?: number
  step?: number
  outcome?: 'ok' | 'failed' | 'cancelled' | 'interrupted'
  /** What the bar says beside its duration: tokens, the reason of an end. */
  tokens?: number
  /** Moments of the run that are worth a mark. */
  marks: { seq: number; at: number; tone: 'warning' | 'error' }[]
}

export class Waterfall {
  /** The first one is the run itself. */
  readonly spans: Span[] = []
  private model: Span | null = null
  private readonly calls = new Map<string, Span>()
  private readonly questions = new Map<string, Span>()

  get run(): Span | undefined {
    return this.spans[0]
  }

  add(row: JournalRow, at: number): void {
    switch (row.type) {
      case 'run.accepted':
        this.open('run', 'run', '', row, at, 'queued')
        return
      case 'run.state':
        this.runState(row, at)
        return
      case 'step.started':
        this.endModel(at, 'interrupted')
        this.model = this.open('model', `model ${row.seq}`, row.data.model, row, at, 'active')
        this.model.step = row.data.step
        return
      case 'text.delta':
      case 'reasoning.delta':
        if (this.model !== null) this.model.firstToken ??= at
        return
      case 'step.done': {
        const { usage } = row.data
        if (this.model !== null && usage !== undefined) {
          this.model.tokens = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
        }
        this.endModel(at, 'ok')
        return
      }
      case 'tool.called':
        if (this.model !== null) this.model.firstToken ??= at
        this.calls.set(row.data.callId, this.open('tool', `tool ${row.seq}`, row.data.name, row, at, 'queued'))
        return
      case 'tool.started':
        this.turn(this.calls.get(row.data.callId), 'active', row, at)
        return
      case 'tool.done':
        this.endCall(row, at)
        return
      case 'input.required':
        this.asked(row, at)
        return
      case 'input.resolved':
        this.resolved(row, at)
        return
      case 'output.rejected':
        this.run?.marks.push({ seq: row.seq, at, tone: 'error' })
        return
      case 'diagnostic':
        this.run?.marks.push({ seq: row.seq, at, tone: 'warning' })
        return
      case 'run.ended': {
        const { status } = row.data
        const outcome = status === 'succeeded' ? 'ok' : status === 'failed' ? 'failed' : 'cancelled'
        this.endModel(at, outcome === 'ok' ? 'ok' : 'interrupted')
        for (const span of this.spans) {
          if (span.end === null) end(span, at, span.kind === 'run' ? outcome : 'cancelled')
        }
        return
      }
      default:
    }
  }

  private open(kind: Span['kind'], id: string, label: string, row: JournalRow, at: number, segment: SegmentKind): Span {
    const first: Segment = { kind: segment, start: at, end: null, attempt: row.attempt }
    const span: Span = { id, kind, label, seq: row.seq, start: at, end: null, segments: [first], marks: [] }
    this.spans.push(span)
    return span
  }

  /** Ends the open segment and begins the next. */
  private turn(span: Span | undefined, kind: SegmentKind, { attempt }: JournalRow, at: number): void {
    const last = span?.segments.at(-1)
    if (
      span === undefined ||
      last === undefined ||
      (last.end === null && last.kind === kind && last.attempt === attempt)
    )
      return
    last.end ??= at
    span.segments.push({ kind, start: at, end: null, attempt })
  }

  private runState(row: JournalRow & { type: 'run.state' }, at: number): void {
    const { to, trigger } = row.data
    if (trigger === 'restart.requeued') {
      this.endModel(at, 'interrupted')
      this.run?.marks.push({ seq: row.seq, at, tone: 'warning' })
    }
    const kind = to === 'running' ? 'active' : to === 'waiting_user' ? 'waiting' : to === 'queued' ? 'queued' : null
    if (kind !== null) this.turn(this.run, kind, row, at)
  }

  private endModel(at: number, outcome: NonNullable<Span['outcome']>): void {
    if (this.model !== null) end(this.model, at, outcome)
    this.model = null
  }

  private endCall(row: JournalRow & { type: 'tool.done' }, at: number): void {
    const span = this.calls.get(row.data.callId)
    if (span === undefined) return
    const { outcome } = row.data
    const isOver = outcome === 'denied' || outcome === 'cancelled'
    end(span, at, outcome === 'succeeded' ? 'ok' : isOver ? 'cancelled' : 'failed')
    if (span.outcome === 'failed') span.marks.push({ seq: row.seq, at, tone: 'error' })
  }

  private asked(row: JournalRow & { type: 'input.required' }, at: number): void {
    const { callId, interactionId, prompt } = row.data
    const call = callId === undefined ? undefined : this.calls.get(callId)
    if (call !== undefined) this.turn(call, 'waiting', row, at)
    this.questions.set(interactionId, call ?? this.open('question', interactionId, prompt, row, at, 'waiting'))
  }

  private resolved(row: JournalRow & { type: 'input.resolved' }, at: number): void {
    const span = this.questions.get(row.data.interactionId)
    if (span?.kind === 'tool') this.turn(span, 'queued', row, at)
    else if (span !== undefined) end(span, at, row.data.resolution === 'closed' ? 'cancelled' : 'ok')
  }
}

function end(span: Span, at: number, outcome: NonNullable<Span['outcome']>): void {
  if (span.end !== null) return
  span.end = at
  span.outcome = outcome
  const last = span.segments.at(-1)
  if (last !== undefined) last.end ??= at
}
