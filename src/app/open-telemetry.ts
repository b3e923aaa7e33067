// Traces for an OpenTelemetry collector, over OTLP. The only file that knows the SDK, which is
// imported only if an endpoint is set. Spans are sent in the background, in batches; if the
// collector is slow or gone, spans are dropped and runs are not affected.

import { randomBytes } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { parseTraceparent, type SpanEnd, type SpanStart, type Tracer, traceparentText } from '../kit/tracer.ts'

export type TelemetrySettings = {
  /** The address that spans are posted to. */
  readonly tracesUrl: string
  readonly headers: Readonly<Record<string, string>>
  readonly serviceName: string
  readonly resourceAttributes: Readonly<Record<string, string>>
}

export type OpenTracer = { tracer: Tracer; close(): Promise<void> }

const exportTimeoutMs = 10_000
/** Supervisors kill a process that has not stopped after ten seconds. */
const closeTimeoutMs = 2000
const sampledFlag = 1
/** No attribute is meant to be long. */
const attributeCharsMax = 1024

export async function openTracer(settings: TelemetrySettings, version: string): Promise<OpenTracer> {
  const [{ ROOT_CONTEXT, SpanKind, SpanStatusCode, trace }, sdk, { OTLPTraceExporter }, { resourceFromAttributes }] =
    await Promise.all([
      import('@opentelemetry/api'),
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/exporter-trace-otlp-proto'),
      import('@opentelemetry/resources'),
    ])
  /** The ids of the span that is being created, if they were chosen before. */
  let chosen: { traceId: string; spanId: string } | undefined
  const hex = (bytes: number) => randomBytes(bytes).toString('hex')
  const exporter = new OTLPTraceExporter({
    url: settings.tracesUrl,
    headers: { ...settings.headers },
    timeoutMillis: exportTimeoutMs,
  })
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({
      'service.name': settings.serviceName,
      'service.version': version,
      ...settings.resourceAttributes,
    }),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.AlwaysOnSampler() }),
    spanLimits: { attributeValueLengthLimit: attributeCharsMax },
    idGenerator: {
      generateTraceId: () => chosen?.traceId ?? hex(16),
      generateSpanId: () => chosen?.spanId ?? hex(8),
    },
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter, exportTimeoutMillis: exportTimeoutMs })],
  })
  const otel = provider.getTracer('polylog', version)
  const kinds = { client: SpanKind.CLIENT, internal: SpanKind.INTERNAL, server: SpanKind.SERVER }

  const contextOf = (parent: { traceId: string; spanId: string; flags: number } | undefined) =>
    parent === undefined
      ? ROOT_CONTEXT
      : trace.setSpanContext(ROOT_CONTEXT, {
          traceId: parent.traceId,
          spanId: parent.spanId,
          traceFlags: parent.flags,
          isRemote: true,
        })

  const begin = ({ name, kind, at, attributes }: SpanStart, parent: Parameters<typeof contextOf>[0]) => {
    const span = otel.startSpan(name, { kind: kinds[kind], startTime: at, attributes }, contextOf(parent))
    const { traceId, spanId, traceFlags } = span.spanContext()
    return {
      traceparent: traceparentText({ traceId, spanId, flags: traceFlags }),
      end({ at: endedAt, attributes: more = {}, error }: SpanEnd) {
        span.setAttributes(more)
        if (error !== undefined) {
          span.setAttribute('error.type', error.type)
          span.setStatus({
            code: SpanStatusCode.ERROR,
            ...(error.message === undefined ? {} : { message: error.message }),
          })
        }
        span.end(endedAt)
      },
    }
  }

  const tracer: Tracer = {
    start: (span) => begin(span, parseTraceparent(span.parent)),
    plan(parent) {
      const above = parseTraceparent(parent)
      const ids = { traceId: above?.traceId ?? hex(16), spanId: hex(8), flags: above?.flags ?? sampledFlag }
      return { traceparent: traceparentText(ids), ...(above === undefined ? {} : { parentId: above.spanId }) }
    },
    record(planned, span, end) {
      const ids = parseTraceparent(planned.traceparent)
      if (ids === undefined) return
      chosen = ids
      try {
        const parent = planned.parentId === undefined ? undefined : { ...ids, spanId: planned.parentId }
        begin(span, parent).end(end)
      } finally {
        chosen = undefined
      }
    },
  }
  return {
    tracer,
    async close() {
      // Sends what is left; a collector that does not answer must not hold up the shutdown.
      const sent = provider.shutdown().catch(() => {})
      await Promise.race([sent, wait(closeTimeoutMs, undefined, { ref: false })])
    },
  }
}
