// What a journal says, as single facts. A fact has a probe: the same journal with another value for
// this fact. A dialect tells the fact if its frames are then different.

import type { EventData, EventType, JsonValue, RunEvent } from '../../src/journal/event.ts'

export type Fact = {
  readonly name: string
  /** The journal with another value; null if the fact does not occur in it. */
  probe(events: readonly RunEvent[]): readonly RunEvent[] | null
}

type Changes = { [T in EventType]?: (data: EventData<T>) => EventData<T> | null }

/** `changes` returns null for an event that does not have the fact. */
function fact(name: string, changes: Changes): Fact {
  return {
    name,
    probe(events) {
      let occurs = false
      const changed = events.map((event): RunEvent => {
        const change = changes[event.type] as ((data: unknown) => unknown) | undefined
        const data = change?.(event.data) ?? null
        if (data === null) return event
        occurs = true
        return { ...event, data } as RunEvent
      })
      return occurs ? changed : null
    },
  }
}

/** The fact that these events happened at all. */
function occurrence(name: string, type: EventType): Fact {
  return {
    name,
    probe(events) {
      const others = events.filter((event) => event.type !== type)
      return others.length === events.length ? null : others
    },
  }
}

const other = '¶'
const otherText = (text: string) => text + other
const otherJson = (value: JsonValue): JsonValue =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? { ...value, [other]: 1 }
    : { value, [other]: 1 }

const withError = (error: EventData<'run.ended'>['error'], field: 'code' | 'message') =>
  error === undefined ? undefined : { ...error, [field]: otherText(error[field]) }

export const facts: readonly Fact[] = [
  fact('the question', { 'run.accepted': (data) => ({ ...data, input: otherText(data.input) }) }),
  fact('the files of the question', {
    'run.accepted': (data) =>
      data.parts === undefined
        ? null
        : {
            ...data,
            parts: data.parts.map((part) =>
              part.type === 'text' ? part : { ...part, fileId: otherText(part.fileId) },
            ),
          },
  }),
  fact('the files of a result', {
    'tool.done': (data) =>
      data.files === undefined
        ? null
        : { ...data, files: data.files.map((file) => ({ ...file, fileId: otherText(file.fileId) })) },
  }),
  fact('the conversation', {
    'run.accepted': (data) =>
      data.conversationId === null ? null : { ...data, conversationId: otherText(data.conversationId) },
    'context.patch': (data) =>
      typeof data.patch['conversationId'] === 'string'
        ? { ...data, patch: { ...data.patch, conversationId: otherText(data.patch['conversationId']) } }
        : null,
  }),
  fact('why the run waits for another one', { diagnostic: (data) => ({ ...data, message: otherText(data.message) }) }),
  fact('other changes of the context', {
    'context.patch': (data) => {
      const names = Object.keys(data.patch).filter((name) => name !== 'conversationId')
      return names.length === 0 ? null : { ...data, patch: { ...data.patch, [names[0] as string]: other } }
    },
  }),
  fact('the model', {
    'run.accepted': (data) => ({ ...data, spec: { ...data.spec, model: otherText(data.spec.model) } }),
    'step.started': (data) => ({ ...data, model: otherText(data.model) }),
  }),
  occurrence('where a step begins', 'step.started'),
  fact('the text, as it is written', { 'text.delta': (data) => ({ ...data, text: otherText(data.text) }) }),
  fact('the text of the answer', {
    'text.delta': (data) => ({ ...data, text: otherText(data.text) }),
    'message.done': (data) => ({ ...data, text: otherText(data.text) }),
    'run.ended': (data) => (data.output === undefined ? null : { ...data, output: otherText(data.output) }),
  }),
  fact('that a text was replaced', {
    'message.done': (data) => (data.state === 'superseded' ? { ...data, state: 'active' } : null),
  }),
  fact('reasoning', { 'reasoning.delta': (data) => ({ ...data, text: otherText(data.text) }) }),
  fact('sources', { 'source.found': (data) => ({ ...data, url: otherText(data.url ?? ''), title: other }) }),
  fact('the name of a call', { 'tool.called': (data) => ({ ...data, name: otherText(data.name) }) }),
  fact('the arguments of a call', {
    'tool.called': (data) => ({ ...data, input: otherJson(data.input) }),
    'input.required': (data) => (data.input === undefined ? null : { ...data, input: otherJson(data.input) }),
    'tool.started': (data) => ({ ...data, input: otherJson(data.input) }),
  }),
  fact('the sentence about a call', { 'tool.called': (data) => ({ ...data, note: otherText(data.note) }) }),
  occurrence('that a call has started', 'tool.started'),
  fact('the progress of a call', { 'tool.progress': (data) => ({ ...data, message: otherText(data.message) }) }),
  fact('the output of a call', {
    'tool.done': (data) => (data.output === undefined ? null : { ...data, output: otherJson(data.output) }),
  }),
  fact('whether a call succeeded', {
    'tool.done': (data) => ({ ...data, outcome: data.outcome === 'succeeded' ? 'failed' : 'succeeded' }),
  }),
  fact('why a call failed', {
    'tool.done': (data) =>
      data.error === undefined
        ? null
        : { ...data, error: withError(data.error, 'message'), summary: otherText(data.summary) },
  }),
  fact('the code of the error of a call', {
    'tool.done': (data) => (data.error === undefined ? null : { ...data, error: withError(data.error, 'code') }),
  }),
  fact('what a person is asked', {
    'input.required': (data) => (data.kind === 'client_tool' ? null : { ...data, prompt: otherText(data.prompt) }),
  }),
  fact('the options of a question', {
    'input.required': (data) => (data.options === undefined ? null : { ...data, options: [...data.options, other] }),
  }),
  fact('the deadline of an answer', {
    'input.required': (data) =>
      data.deadlineAt === undefined ? null : { ...data, deadlineAt: data.deadlineAt + 60_000 },
  }),
  fact('that a call may have happened already', {
    'input.required': (data) => {
      const { outcome, ...rest } = data
      return outcome === undefined ? null : rest
    },
  }),
  fact('what was decided', {
    'input.resolved': (data) => ({ ...data, resolution: data.resolution === 'confirmed' ? 'rejected' : 'confirmed' }),
  }),
  {
    name: 'arguments that a person changed',
    probe(events) {
      const isChanged = events.some((event) => event.type === 'input.resolved' && event.data.input !== undefined)
      const changed = fact('', {
        'input.resolved': (data) => (data.input === undefined ? null : { ...data, input: otherJson(data.input) }),
        'tool.started': (data) => ({ ...data, input: otherJson(data.input) }),
      })
      return isChanged ? changed.probe(events) : null
    },
  },
  fact('that an answer did not fit its schema', {
    'output.rejected': (data) => ({ ...data, errors: [...data.errors, other] }),
  }),
  fact('that older messages were left out', { 'context.cut': (data) => ({ ...data, messages: data.messages + 1 }) }),
  fact('that older messages were summarised', {
    'context.summarised': (data) => ({ ...data, messages: data.messages + 1 }),
  }),
  fact('tokens', {
    'step.done': (data) =>
      data.usage === undefined ? null : { ...data, usage: { ...data.usage, inputTokens: 1_000_003 } },
  }),
  fact('how the run ended', {
    'run.ended': (data) => ({ ...data, status: data.status === 'canceled' ? 'failed' : 'canceled' }),
  }),
  fact('why the run failed', {
    'run.ended': (data) => (data.error === undefined ? null : { ...data, error: withError(data.error, 'message') }),
  }),
  fact('the code of the error of a run', {
    'run.ended': (data) => (data.error === undefined ? null : { ...data, error: withError(data.error, 'code') }),
  }),
  fact('why the run was cancelled', {
    'run.ended': (data) =>
      data.status === 'canceled' && data.reason !== undefined ? { ...data, reason: otherText(data.reason) } : null,
  }),
  {
    name: 'when things happened',
    probe: (events) => events.map((event) => ({ ...event, at: event.at + 3_600_000 })),
  },
]
