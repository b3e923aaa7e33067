// Consent in runs whose API cannot ask a person. A call that needs consent is denied, and
// the denial says how to allow it. An unsafe call that a crash interrupted gets the outcome
// `unknown`. Such a run must never wait for a decision. Pure.

import type { RunSpec } from '../journal/event.ts'
import type { Tool } from '../tools/tool.ts'
import type { CallPlan } from './plan-call.ts'

export function answerWithoutConsent(plan: CallPlan, spec: Pick<RunSpec, 'consent'>, tool: Tool | undefined): CallPlan {
  if (spec.consent !== 'refuse' || plan.do !== 'ask' || plan.question !== undefined) return plan
  if (plan.outcome === 'unknown') {
    return {
      do: 'close',
      outcome: 'unknown',
      code: 'tool_outcome_unknown',
      message: 'The server stopped while this call was under way. It may have happened; it was not run again.',
    }
  }
  const remedy = tool?.howToAllow ?? 'Use POST /v1/agent/chat, whose clients can confirm calls.'
  return {
    do: 'close',
    outcome: 'denied',
    code: 'tool_consent_unavailable',
    message: `${tool?.name ?? 'This tool'} needs the consent of a person, and this API cannot ask for it. ${remedy}`,
  }
}

/** The system message that tells the model about its working directory and about consent. Null without a workspace. */
export function workspaceRules(spec: Pick<RunSpec, 'workspace' | 'consent'>, tools: readonly Tool[]): string | null {
  const { workspace } = spec
  if (workspace === undefined) return null
  const needConsent = tools.filter(({ confirm }) => confirm !== 'never').map(({ name }) => name)
  const consent =
    needConsent.length === 0
      ? 'None of your tools waits for a person.'
      : spec.consent === 'refuse'
        ? `These tools need the consent of a person, which cannot be asked for here, so calls are refused: ${needConsent.join(', ')}. Do not rely on them.`
        : `A person confirms each call of these tools, and you wait for it: ${needConsent.join(', ')}.`
  const mode =
    workspace.mode === 'ask'
      ? 'You may read and not change anything: only tools that read are offered.'
      : 'The user has agreed that you change files in this directory; do not ask before you do.'
  return `You work in a directory. Paths of the file tools are relative to it, and nothing outside can be reached. ${mode} ${consent}`
}
