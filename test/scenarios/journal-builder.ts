// Builds a journal by hand, event by event, with the checks of the real writer: every event fits
// its schema and is allowed at its place, and `finish` refuses a run that did not end. So a
// scenario cannot describe a journal that no run could write.

import assert from 'node:assert/strict'
import { checkEvent } from '../../src/journal/event-codec.ts'
import type { EventData, EventType, JsonValue, NewEvent, RunEvent, ToolEffect, Usage } from '../../src/journal/event.ts'
import type { Part } from '../../src/journal/part.ts'
import { applyEvent, checkTransition, newRunState, openCalls, openInteractions } from '../../src/journal/run-state.ts'

export type Scenario = { readonly name: string; readonly runId: string; readonly events: readonly RunEvent[] }

/** All journals begin at the same instant, and every event is 10 ms after the one before. */
export const firstAt = Date.UTC(2026, 0, 2, 3, 4, 5)
const betweenMs = 10

type CallOptions = { step?: number; index?: number; effect?: ToolEffect; note?: string; source?: string }

export class JournalBuilder {
  readonly events: RunEvent[] = []
  private readonly state = newRunState()

  add<T extends EventType>(type: T, data: EventData<T>): this {
    const event = { type, data } as NewEvent
    checkEvent(event)
    checkTransition(this.state.phase, event)
    this.checkCall(event)
    const again = event.type === 'run.state' && event.data.to === 'running' && this.state.startedAt !== undefined
    const numbered: RunEvent = {
      seq: this.events.length + 1,
      at: firstAt + this.events.length * betweenMs,
      attempt: this.state.attempt + (again ? 1 : 0),
      ...event,
    }
    applyEvent(this.state, numbered)
    this.events.push(numbered)
    return this
  }

  /** The table of transitions knows states, not calls: a result belongs to one call that was made, once. */
  private checkCall(event: NewEvent): void {
    if (event.type === 'text.delta')
      assert.ok(this.state.steps.at(-1)?.finished === false, 'text belongs to an open step')
    if (event.type === 'tool.called') assert.ok(!this.state.calls.has(event.data.callId), 'a call has its own id')
    if (event.type === 'tool.started' || event.type === 'tool.done') {
      const call = this.state.calls.get(event.data.callId)
      assert.ok(call !== undefined && call.done === undefined, `the call ${event.data.callId} is open`)
    }
  }

  accepted(input: string, options: { isNew?: boolean; parts?: Part[] } = {}): this {
    this.add('run.accepted', {
      owner: 'ada',
      family: 'agent',
      conversationId: 'conversation-1',
      ...(options.isNew === true ? { newConversation: true } : {}),
      sessionId: 'session-1',
      userMessageId: 'message-user',
      input,
      ...(options.parts === undefined ? {} : { parts: options.parts }),
      spec: { agentId: 'chat_conversation', engine: 'local', model: 'demo/demo' },
    })
    if (options.isNew === true)
      this.add('context.patch', { layer: 'session', patch: { conversationId: 'conversation-1' } })
    return this
  }

  running(): this {
    return this.add('run.state', { from: 'queued', to: 'running', trigger: 'turn.started' })
  }

  /** The process died, and the next one takes the run up again. */
  restarted(): this {
    return this.add('run.state', { from: 'running', to: 'queued', trigger: 'restart.requeued' }).running()
  }

  asks(step: number, messageId: string): this {
    return this.add('step.started', { step, messageId, model: 'demo/demo' })
  }

  says(messageId: string, ...texts: string[]): this {
    for (const text of texts) this.add('text.delta', { messageId, text })
    return this
  }

  thinks(reasoningId: string, ...texts: string[]): this {
    for (const text of texts) this.add('reasoning.delta', { reasoningId, text })
    return this
  }

  message(messageId: string, text: string, step: number, state: EventData<'message.done'>['state'] = 'active'): this {
    return this.add('message.done', { messageId, role: 'assistant', text, step, state })
  }

  calls(callId: string, name: string, input: JsonValue, options: CallOptions = {}): this {
    const { step = 1, index = 0, effect = 'read', note = `Call ${name}` } = options
    const source = options.source === undefined ? {} : { source: options.source }
    return this.add('tool.called', { callId, name, step, index, input, note, effect, ...source })
  }

  stepDone(step: number, messageId: string, toolCalls = 0, usage: Usage = { inputTokens: 10, outputTokens: 5 }): this {
    const finishReason = toolCalls > 0 ? 'tool-calls' : 'stop'
    return this.add('step.done', { step, messageId, finishReason, toolCalls, usage, durationMs: 30 })
  }

  /** The last step: it says `texts` and ends the turn. */
  answers(step: number, messageId: string, ...texts: string[]): this {
    return this.asks(step, messageId)
      .says(messageId, ...texts)
      .message(messageId, texts.join(''), step)
      .stepDone(step, messageId)
  }

  starts(callId: string, input: JsonValue): this {
    return this.add('tool.started', { callId, input, idempotencyKey: `run:${callId}` })
  }

  returns(callId: string, output: JsonValue, rest: Partial<EventData<'tool.done'>> = {}): this {
    const fullLength = JSON.stringify(output).length
    return this.done(callId, 'succeeded', 'Done.', { output, fullLength, durationMs: 20, ...rest })
  }

  done(
    callId: string,
    outcome: EventData<'tool.done'>['outcome'],
    summary: string,
    rest: Partial<EventData<'tool.done'>> = {},
  ): this {
    const data = {
      callId,
      messageId: `result-${callId}`,
      outcome,
      summary,
      durationMs: 0,
      fullLength: 0,
      truncated: false,
    }
    return this.add('tool.done', { ...data, ...rest })
  }

  confirmation(
    interactionId: string,
    callId: string,
    input: JsonValue,
    rest: Partial<EventData<'input.required'>> = {},
  ): this {
    const number = this.state.interactions.size + 1
    const deadlineAt = firstAt + 86_400_000
    const prompt = 'Send “hello” to Bob'
    const data = {
      interactionId,
      number,
      kind: 'confirmation',
      prompt,
      callId,
      input,
      deadlineAt,
      atDeadline: 'expire',
    } as const
    return this.add('input.required', { ...data, ...rest })
  }

  /** A call of a tool of the client waits for its result. */
  handsOver(interactionId: string, callId: string, input: JsonValue): this {
    return this.confirmation(interactionId, callId, input, { kind: 'client_tool', prompt: 'Call a tool of the client' })
  }

  parks(): this {
    const awaitsClient = openInteractions(this.state).some(({ kind }) => kind === 'client_tool')
    return this.add('run.state', {
      from: 'running',
      to: 'waiting_user',
      trigger: 'turn.needs_input',
      ...(awaitsClient ? { awaitsClient } : {}),
    })
  }

  resolved(
    interactionId: string,
    resolution: EventData<'input.resolved'>['resolution'],
    rest: Partial<EventData<'input.resolved'>> = {},
  ): this {
    const number = this.state.interactions.get(interactionId)?.number ?? 0
    const by = resolution === 'expired' || resolution === 'closed' ? 'system' : 'ada'
    return this.add('input.resolved', { interactionId, number, resolution, by, ...rest })
  }

  /** What was decided takes the run back to work. */
  unparks(
    trigger: 'interaction.reply.accepted' | 'interaction.auto_decide.timeout' = 'interaction.reply.accepted',
  ): this {
    return this.add('run.state', { from: 'waiting_user', to: 'queued', trigger }).running()
  }

  succeeds(messageId: string, output: string): this {
    return this.add('run.state', { from: 'running', to: 'succeeded', trigger: 'turn.succeeded' }).add('run.ended', {
      status: 'succeeded',
      output,
      messageId,
    })
  }

  fails(code: string, message: string, retryable = false): this {
    return this.add('run.state', { from: 'running', to: 'failed', trigger: 'turn.failed' }).add('run.ended', {
      status: 'failed',
      error: { code, message, ...(retryable ? { retryable } : {}) },
    })
  }

  cancelled(from: 'queued' | 'running' | 'waiting_user'): this {
    return this.add('run.state', { from, to: 'canceled', trigger: 'run.canceled' }).add('run.ended', {
      status: 'canceled',
      by: 'ada',
      reason: 'The user pressed stop.',
    })
  }

  finish(): readonly RunEvent[] {
    assert.equal(this.state.phase, 'ended', 'a scenario ends with run.ended')
    assert.deepEqual(openCalls(this.state), [], 'no call is left open')
    assert.deepEqual(openInteractions(this.state), [], 'no question is left open')
    return this.events
  }
}

export function scenario<Name extends string>(
  name: Name,
  tell: (journal: JournalBuilder) => void,
): Scenario & { readonly name: Name } {
  const journal = new JournalBuilder()
  tell(journal)
  return { name, runId: `run-${name.replaceAll(' ', '-')}`, events: journal.finish() }
}
