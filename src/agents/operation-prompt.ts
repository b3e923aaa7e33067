// What the model is told in a one-shot run of an agent's operation: its two templates, filled. Pure.

import { sortedJson } from '../kit/sorted-json.ts'
import type { AgentOperation } from './agent-definition.ts'
import { renderTemplate } from './template.ts'

export type OperationRequest = {
  /** The request's input, completed by `inputWithDefaults`. */
  input: Record<string, unknown>
  /** What the data source collected. */
  data: Record<string, unknown>
  language: string
}

/** `data` and `outputSchema` are JSON texts with sorted keys, so that equal data gives equal prompts. */
export function operationPrompt(
  operation: Pick<AgentOperation, 'id' | 'systemTemplate' | 'userTemplate' | 'defaults' | 'outputSchema'>,
  { input, data, language }: OperationRequest,
): { system: string; user: string } {
  const values = {
    ...operation.defaults,
    input,
    data: sortedJson(data),
    language,
    operation: operation.id,
    outputSchema: operation.outputSchema === null ? null : sortedJson(operation.outputSchema),
  }
  return {
    system: renderTemplate(operation.systemTemplate, values),
    user: renderTemplate(operation.userTemplate, values),
  }
}

/** Adds the `default` of each property of the input schema that the input leaves out. Only the top level is completed. */
export function inputWithDefaults<T>(
  operation: Pick<AgentOperation, 'inputSchema'>,
  input: Readonly<Record<string, T>>,
): Record<string, T> {
  const properties = operation.inputSchema?.['properties']
  if (typeof properties !== 'object' || properties === null) return { ...input }
  const defaults = Object.entries(properties as Record<string, unknown>).flatMap(([name, property]) =>
    typeof property === 'object' && property !== null && 'default' in property && !Object.hasOwn(input, name)
      ? [[name, (property as { default: T }).default] as const]
      : [],
  )
  return { ...Object.fromEntries(defaults), ...input }
}
