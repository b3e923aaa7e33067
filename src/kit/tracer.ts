// The interface to a tracing system. `app/` hands in an implementation, if tracing is switched on;
// nothing below it knows the system. A trace context is the text of a `traceparent` header.

export type SpanAttributes = Record<string, string | number | boolean | string[]>

export type SpanEnd = {
  at: number
  attributes?: SpanAttributes
  /** Absent if the work succeeded. `type` is an error code. */
  error?: { type: string; message?: string } | undefined
}

export interface Span {
  /** The context for work below this span. */
  readonly traceparent: string
  end(end: SpanEnd): void
}

export type SpanStart = {
  name: string
  /** `client`: a request to another system. */
  kind: 'client' | 'internal' | 'server'
  at: number
  attributes: SpanAttributes
}

/** A span that is recorded only when its work is over, perhaps by another process; its id is known before. */
export type FutureSpan = {
  /** The context for work below it. */
  traceparent: string
  /** The id of the span above it; absent if it begins a trace. */
  parentId?: string
}

export interface Tracer {
  start(span: SpanStart & { parent: string }): Span
  /** `parent` is the context of the caller. */
  plan(parent: string | undefined): FutureSpan
  record(planned: FutureSpan, span: SpanStart, end: SpanEnd): void
}

const traceparentForm = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

export type TraceContext = { traceId: string; spanId: string; flags: number }

/** Undefined if the text is not a valid `traceparent` of version 00. */
export function parseTraceparent(text: string | undefined): TraceContext | undefined {
  const match = traceparentForm.exec(text?.trim() ?? '')
  const [, traceId = '', spanId = '', flags = ''] = match ?? []
  if (match === null || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, flags: Number.parseInt(flags, 16) }
}

export function traceparentText({ traceId, spanId, flags }: TraceContext): string {
  return `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, '0')}`
}
