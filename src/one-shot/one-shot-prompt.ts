// The two texts that a one-shot run asks the model with, rendered from the templates of its
// operation when the run is accepted. Pure.

import type { AgentOperation } from '../agents/agent-definition.ts'
import { renderTemplate } from '../agents/template.ts'
import { AppError } from '../errors/app-error.ts'
import { sortedJson } from '../kit/sorted-json.ts'
import type { JsonObject } from './sources/source.ts'

/** Both texts together. They are stored in one event of the journal, which holds at most 1 MiB. */
const promptCharsMax = 384 * 1024

/** Throws `agent_data_too_large`. */
export function promptOf(
  operation: AgentOperation,
  { input, data, language }: { input: JsonObject; data: JsonObject; language: string },
): { system: string; user: string } {
  const values = {
    ...operation.defaults,
    input,
    data: sortedJson(data),
    language,
    operation: operation.id,
    outputSchema: operation.outputSchema === null ? '' : JSON.stringify(operation.outputSchema),
  }
  const system = renderTemplate(operation.systemTemplate, values)
  const user = renderTemplate(operation.userTemplate, values)
  const chars = system.length + user.length
  if (chars > promptCharsMax) {
    throw new AppError(
      'agent_data_too_large',
      `What the agent would read has ${chars} characters; at most ${promptCharsMax} are allowed. Send fewer or shorter messages.`,
    )
  }
  return { system, user }
}
