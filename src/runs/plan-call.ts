// Decides the next action for a tool call from its journaled state and its tool. Pure: the
// same function handles a new call, a confirmed call, and a call that a crash interrupted.

import { clientToolSource } from '../journal/client-tool.ts'
import type { JsonValue } from '../journal/event.ts'
import type { CallState } from '../journal/run-state.ts'
import type { Tool, ToolQuestion, ToolRegistry } from '../tools/tool.ts'
import { type ClosedCall, refusedCall, unreadableInput, wrongInput } from './closed-call.ts'

/** The next action for a tool call. */
export type CallPlan =
  | { do: 'run'; tool: Tool; input: JsonValue }
  /** The client executes the call and sends its result. */
  | { do: 'hand_over'; prompt: string }
  | { do: 'ask'; outcome: 'unknown' | undefined; prompt: string; question?: ToolQuestion }
  /** A person answered the question, or the client sent the result; this is the result of the call. */
  | { do: 'answer'; output: JsonValue }
  | { do: 'wait' }
  | ({ do: 'close' } & ClosedCall)

/** `tool`: the tool that the call's name and source refer to now; undefined if it was removed or is no longer allowed. */
export function planCall(call: CallState, tool: Tool | undefined, tools: Pick<ToolRegistry, 'check'>): CallPlan {
  if (call.interactionId !== undefined && call.decision === undefined) return { do: 'wait' }
  if (call.source === clientToolSource) return planClientCall(call, tool)
  if (call.decision === 'rejected' || call.decision === 'expired' || call.decision === 'closed')
    return refusedPlan(call)
  if (call.invalidInput !== undefined) return { do: 'close', ...unreadableInput }
  if (call.started && (call.effect === 'unsafe' || tool?.effect === 'unsafe')) {
    // The process died after this unsafe call started, so it may have happened and a person decides. The effect in the
    // journal counts even if the tool was removed or declares another effect now.
    const what = tool === undefined ? call.note : describe(tool, call.input)
    const prompt = `${what} (this may already have happened before a restart: confirm to run it again, reject to leave it)`
    return { do: 'ask', outcome: 'unknown', prompt }
  }
  if (tool === undefined) return missingPlan(call)
  const wrong = tools.check(tool, call.input)
  if (wrong !== null) return { do: 'close', ...wrongInput(wrong) }
  if (tool.ask !== undefined) {
    if (call.decision !== undefined) return { do: 'answer', output: call.reply ?? null }
    const question = tool.ask(call.input)
    return { do: 'ask', outcome: undefined, prompt: question.prompt, question }
  }
  if (call.decision === undefined && !call.started) {
    const confirm = typeof tool.confirm === 'function' ? tool.confirm(call.input) : tool.confirm
    if (confirm === 'always') return { do: 'ask', outcome: undefined, prompt: describe(tool, call.input) }
  }
  return { do: 'run', tool, input: call.input }
}

/** The plan for a call of a client's tool that is not waiting for its result. */
function planClientCall(call: CallState, tool: Tool | undefined): CallPlan {
  switch (call.decision) {
    case 'confirmed':
      return { do: 'answer', output: call.reply ?? null }
    case 'rejected':
      return {
        do: 'close',
        outcome: 'failed',
        code: 'tool_failed',
        message: call.decisionReason ?? 'The client could not execute the call.',
      }
    case 'expired':
      return {
        do: 'close',
        outcome: 'failed',
        code: 'tool_expired',
        message: 'The client sent no result in time. It may have executed the call.',
      }
    case 'closed':
      return { do: 'close', outcome: 'cancelled', code: 'tool_cancelled', message: 'The call was closed.' }
    case undefined:
  }
  if (call.invalidInput !== undefined) return { do: 'close', ...unreadableInput }
  const wrong = tool?.check?.(call.input) ?? null
  if (wrong !== null) return { do: 'close', ...wrongInput(wrong) }
  return { do: 'hand_over', prompt: call.note }
}

/** The plan for a call whose tool is missing: `unknown` if it may have happened before a crash, otherwise `failed`. */
function missingPlan(call: CallState): CallPlan {
  if (call.askedUnknown || (call.started && call.effect !== 'read')) {
    return {
      do: 'close',
      outcome: 'unknown',
      code: 'tool_outcome_unknown',
      message: `${call.name} is not there any more, so it was not run again; the first run may have happened.`,
    }
  }
  return {
    do: 'close',
    outcome: 'failed',
    code: 'tool_not_found',
    message: `There is no tool ${call.name} that this agent may use.`,
  }
}

function refusedPlan(call: CallState): CallPlan {
  if (call.askedUnknown) {
    return {
      do: 'close',
      outcome: 'unknown',
      code: 'tool_outcome_unknown',
      message: 'Nobody knows whether this call happened; it was not run again.',
    }
  }
  return { do: 'close', ...refusedCall(call.decision, call.decisionReason) }
}

function describe(tool: Tool, input: JsonValue): string {
  try {
    return tool.describe(input)
  } catch {
    return `Call ${tool.name}`
  }
}
