// What a call needs next, decided by its journal and its tool. Pure: the same decision
// serves a fresh call, one that was just confirmed, and one that a crash interrupted.

import type { JsonValue } from '../journal/event.ts'
import type { CallState } from '../journal/run-state.ts'
import type { Tool, ToolRegistry } from '../tools/tool.ts'
import type { CallPlan } from './call-plan.ts'

/** `tool`: what the call's name means at its source today; undefined if it is gone, or not allowed any more. */
export function planCall(call: CallState, tool: Tool | undefined, tools: Pick<ToolRegistry, 'check'>): CallPlan {
  if (call.interactionId !== undefined && call.decision === undefined) return { do: 'wait' }
  if (call.decision === 'rejected' || call.decision === 'expired' || call.decision === 'closed')
    return refusedPlan(call)
  if (call.invalidInput !== undefined) {
    return {
      do: 'close',
      outcome: 'failed',
      code: 'tool_input_invalid',
      message: 'The arguments are not valid JSON, or longer than 256 KiB.',
    }
  }
  if (call.started && (call.effect === 'unsafe' || tool?.effect === 'unsafe')) {
    // Started, and then the process died: it may have happened, and a person decides. The journal says what the call was
    // known to do, so this also holds if its tool is gone or says something else today.
    const what = tool === undefined ? call.note : describe(tool, call.input)
    const prompt = `${what} (this may already have happened before a restart: confirm to run it again, reject to leave it)`
    return { do: 'ask', outcome: 'unknown', prompt }
  }
  if (tool === undefined) return missingPlan(call)
  const wrong = tools.check(tool, call.input)
  if (wrong !== null)
    return {
      do: 'close',
      outcome: 'failed',
      code: 'tool_input_invalid',
      message: `The arguments do not fit: ${wrong}.`,
    }
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

/** The call cannot be made here. What may have happened before is not called failed. */
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
  if (call.decision === 'expired')
    return { do: 'close', outcome: 'denied', code: 'tool_expired', message: 'Nobody decided in time.' }
  if (call.decision === 'closed')
    return { do: 'close', outcome: 'cancelled', code: 'tool_cancelled', message: 'The question was closed.' }
  return { do: 'close', outcome: 'denied', code: 'tool_denied', message: call.decisionReason ?? 'The user said no.' }
}

function describe(tool: Tool, input: JsonValue): string {
  try {
    return tool.describe(input)
  } catch {
    return `Call ${tool.name}`
  }
}
