// A run whose wire cannot ask a person: a call that needs consent is answered as not
// allowed, with what would allow it, and one that a crash cut off is left as unknown.
// Neither waits for a decision that nobody on that wire can make. Pure.

import type { RunSpec } from '../journal/event.ts'
import type { Tool } from '../tools/tool.ts'
import type { CallPlan } from './call-plan.ts'

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

/** What a model has to know about the directory that it works in, and about consent. */
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
