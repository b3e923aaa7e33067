// Any event that fits its schema, for properties about the journal. The compiler
// makes sure that no type of the vocabulary is left out.

import fc from 'fast-check'
import {
  type EventData,
  type EventType,
  eventTypes,
  type JsonValue,
  type RunEvent,
  runStatuses,
  toolEffects,
  toolOutcomes,
  type Usage,
} from '../../src/journal/event.ts'
import type { Part } from '../../src/journal/part.ts'

/** Every character, halves of surrogate pairs included: models and tools say what they like. */
export const anyText = fc.string({ unit: 'binary', maxLength: 40 })
const text = fc.oneof(fc.string({ unit: 'grapheme', maxLength: 40 }), anyText)
const id = fc.oneof(fc.uuid(), fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }))
const count = fc.nat()
const positive = fc.integer({ min: 1, max: 1_000_000 })

/** As it comes out of JSON.parse; `__proto__` is a name that no schema lets through. */
export const anyJson: fc.Arbitrary<JsonValue> = fc
  .json({ maxDepth: 3 })
  .filter((json) => !json.includes('__proto__'))
  .map((json) => JSON.parse(json) as JsonValue)
const record = fc
  .dictionary(fc.string({ maxLength: 8 }), anyJson, { maxKeys: 4, noNullPrototype: true })
  .filter((value) => !JSON.stringify(value).includes('__proto__'))

function object<T>(
  required: { [K in keyof T]: fc.Arbitrary<T[K]> },
  optional: Record<string, fc.Arbitrary<unknown>> = {},
): fc.Arbitrary<T> {
  const keys = Object.keys(required) as never[]
  return fc.record(
    { ...required, ...optional },
    { requiredKeys: keys, noNullPrototype: true },
  ) as unknown as fc.Arbitrary<T>
}

const clientTool = object(
  { name: fc.stringMatching(/^[a-zA-Z0-9_-]{1,64}$/), inputSchema: record },
  { description: text },
)
const errorValue = object<{ code: string; message: string }>(
  { code: id, message: text },
  { retryable: fc.boolean(), details: record },
)
const usage = object<Usage>(
  {},
  { inputTokens: count, cachedTokens: count, cacheWriteTokens: count, outputTokens: count, reasoningTokens: count },
)

const fileReference = object({ fileId: id, mediaType: id, size: count }, { name: id })
const anyPart = fc.oneof(
  object<Part>({ type: fc.constant('text' as const), text }),
  object<Part>({ type: fc.constant('file' as const), fileId: id, mediaType: id, size: count }, { name: id }),
)

const bodies: { [T in EventType]: fc.Arbitrary<EventData<T>> } = {
  'run.accepted': object<EventData<'run.accepted'>>(
    {
      owner: id,
      family: id,
      conversationId: fc.option(id),
      userMessageId: fc.option(id),
      input: text,
      spec: object<EventData<'run.accepted'>['spec']>(
        { agentId: id, engine: id, model: id },
        {
          temperature: fc.integer({ min: 0, max: 2 }),
          maxTokens: positive,
          context: record,
          tools: fc.array(id, { maxLength: 3 }),
          clientTools: fc.array(clientTool, { maxLength: 2 }),
          onDisconnect: fc.constantFrom('continue', 'cancel'),
        },
      ),
    },
    {
      sessionId: id,
      parts: fc.array(anyPart, { maxLength: 3 }),
      historyRef: id,
      echo: record,
      trace: object({ traceparent: id }, { parentId: id }),
    },
  ),
  'run.prepared': object<EventData<'run.prepared'>>(
    { input: text, files: fc.array(object({ path: id, size: count }), { maxLength: 3 }) },
    { skill: object({ id, name: text, text }, { version: text, outputSchema: record }) },
  ),
  'run.state': object<EventData<'run.state'>>({
    from: fc.constantFrom(...runStatuses),
    to: fc.constantFrom(...runStatuses),
    trigger: id,
  }),
  'step.started': object<EventData<'step.started'>>({ step: positive, messageId: id, model: id }),
  'text.delta': object<EventData<'text.delta'>>({ messageId: id, text }),
  'reasoning.delta': object<EventData<'reasoning.delta'>>({ reasoningId: id, text }),
  'source.found': object<EventData<'source.found'>>(
    { messageId: id, sourceId: id },
    { url: text, title: text, mediaType: text, fileId: id },
  ),
  'message.done': object<EventData<'message.done'>>({
    messageId: id,
    role: fc.constantFrom('assistant', 'user', 'system', 'tool'),
    text,
    step: positive,
    state: fc.constantFrom('active', 'superseded', 'abandoned'),
  }),
  'step.done': object<EventData<'step.done'>>(
    { step: positive, messageId: id, finishReason: id, toolCalls: count, durationMs: count },
    { usage, costMicroUsd: count, provider: object({ name: id, model: id, state: anyJson }) },
  ),
  'answer.discarded': object<EventData<'answer.discarded'>>(
    { step: positive, model: id, usage },
    { costMicroUsd: count },
  ),
  'tool.called': object<EventData<'tool.called'>>(
    {
      callId: id,
      name: id,
      step: positive,
      index: count,
      input: anyJson,
      note: text,
      effect: fc.constantFrom(...toolEffects),
    },
    { invalidInput: text },
  ),
  'tool.started': object<EventData<'tool.started'>>({ callId: id, input: anyJson, idempotencyKey: id }),
  'tool.progress': object<EventData<'tool.progress'>>({ callId: id, message: text }),
  'tool.done': object<EventData<'tool.done'>>(
    {
      callId: id,
      messageId: id,
      outcome: fc.constantFrom(...toolOutcomes),
      summary: text,
      durationMs: count,
      fullLength: count,
      truncated: fc.boolean(),
    },
    {
      output: anyJson,
      error: errorValue,
      outputRef: id,
      modified: fc.boolean(),
      paths: fc.array(text, { maxLength: 3 }),
      files: fc.array(fileReference, { maxLength: 3 }),
    },
  ),
  'input.required': object<EventData<'input.required'>>(
    {
      interactionId: id,
      number: positive,
      kind: fc.constantFrom('confirmation', 'question', 'client_tool'),
      prompt: text,
    },
    {
      callId: id,
      outcome: fc.constant('unknown'),
      input: anyJson,
      style: id,
      options: fc.array(anyJson, { maxLength: 3 }),
      fields: fc.array(text, { maxLength: 3 }),
      deadlineAt: count,
      atDeadline: fc.constantFrom('expire', 'auto_decide'),
    },
  ),
  'input.resolved': object<EventData<'input.resolved'>>(
    {
      interactionId: id,
      number: positive,
      resolution: fc.constantFrom('confirmed', 'rejected', 'replied', 'auto_decided', 'expired', 'closed'),
      by: id,
    },
    { input: anyJson, response: anyJson, reason: text },
  ),
  'context.patch': object<EventData<'context.patch'>>({
    layer: fc.constantFrom('global', 'session', 'request'),
    patch: record,
  }),
  'context.cut': object<EventData<'context.cut'>>(
    {
      strategy: fc.constantFrom('sliding_window', 'run_steps'),
      throughMessageId: id,
      keptFromMessageId: id,
      messages: positive,
      tokens: count,
    },
    { fromMessageId: id, summaryMessageId: id },
  ),
  'context.summarised': object<EventData<'context.summarised'>>(
    {
      summaryMessageId: id,
      throughMessageId: id,
      keptFromMessageId: id,
      messages: positive,
      tokens: count,
      text: fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }),
      model: id,
      durationMs: count,
    },
    { fromMessageId: id, usage, costMicroUsd: count },
  ),
  'engine.handle': object<EventData<'engine.handle'>>({ engine: id, handle: anyJson }),
  'output.rejected': object<EventData<'output.rejected'>>({
    step: positive,
    messageId: id,
    errors: fc.array(text, { minLength: 1, maxLength: 3 }),
  }),
  diagnostic: object<EventData<'diagnostic'>>({ code: id, message: text }, { details: record }),
  'run.ended': object<EventData<'run.ended'>>(
    { status: fc.constantFrom('succeeded', 'failed', 'canceled') },
    { error: errorValue, output: text, messageId: id, by: id, reason: text },
  ),
}

export const anyEvent: fc.Arbitrary<RunEvent> = fc
  .constantFrom(...eventTypes)
  .chain((type) =>
    fc.record(
      {
        seq: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
        at: fc.nat(4_102_444_800_000),
        attempt: positive,
        type: fc.constant(type),
        data: bodies[type] as fc.Arbitrary<unknown>,
      },
      { noNullPrototype: true },
    ),
  )
  .map((event) => event as RunEvent)
