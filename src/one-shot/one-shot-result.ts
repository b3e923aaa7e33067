// The result of a one-shot run: from the model's answer to what a snapshot stores, and from
// there to the `data` of a response. Pure. What changes between two responses for the same
// snapshot (`cached`) is added here and never stored.

import type { JsonValue, OneShotSpec } from '../journal/event.ts'
import { isoTime } from '../kit/clock.ts'
import { wholeJson } from '../kit/embedded-json.ts'
import { sortedJson } from '../kit/sorted-json.ts'
import type { JsonObject } from './sources/source.ts'
import { isRecord } from '../kit/is-record.ts'

/** The answer of the model together with the fields that code has computed. */
export function resultOf(spec: OneShotSpec, answer: string): JsonObject {
  const { computed: _claimed, ...value } = answerObject(spec, answer)
  // A model may write `computed` itself; only an answer that really is the computed one is marked.
  const { computed: _marked, ...computed } = spec.computedAnswer ?? {}
  const isComputed = spec.computedAnswer !== undefined && sortedJson(value) === sortedJson(computed)
  return { ...value, ...spec.fields, ...(isComputed ? { computed: true } : {}) }
}

function answerObject(spec: OneShotSpec, answer: string): JsonObject {
  if (spec.outputSchema === undefined) return { content: answer }
  const value = wholeJson(answer)?.value as JsonValue | undefined
  const isObject = isRecord(value)
  return isObject ? value : { content: value ?? answer }
}

/** What is known about a result besides the result itself. */
export type ResultFacts = {
  agentId: string
  operation: string | null
  /** The id of the snapshot, or of the run if the result is not stored. */
  id: string
  /** The scope as the request named it. */
  scopeName: string | null
  sourceHash: string
  generatedAt: number
  cached: boolean
}

/** The `data` of a response. The shipped agents have fields that only the server can fill in. */
export function dataOf(result: JsonObject, facts: ResultFacts): JsonObject {
  const { sourceHash, generatedAt, cached, scopeName } = facts
  switch (facts.operation === null ? facts.agentId : `${facts.agentId}.${facts.operation}`) {
    case 'contact_insight':
      return { ...result, sourceHash, generatedAt }
    case 'archive_brief.archive_extract':
      return { operation: facts.operation, id: scopeName, status: 'completed', ...result }
    case 'archive_brief.brief_generate':
      return {
        operation: facts.operation,
        id: facts.id,
        contact_id: scopeName,
        ...result,
        generated_at: isoTime(generatedAt),
        source_hash: sourceHash,
      }
    case 'network_action':
      return { ...result, metadata: { cached, sourceHash, generatedAt } }
    default:
      return result
  }
}
