// Checks an answer as the server does: against the output schema of the shipped agent, and
// its citations against the records that were given.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { readCatalogue } from '../../src/agents/catalogue.ts'
import { schemaComplaints } from '../../src/kit/json-schema.ts'
import { citationErrors } from '../../src/one-shot/citations.ts'
import type { Collected } from '../../src/one-shot/sources/source.ts'

const catalogue = await readCatalogue([join(import.meta.dirname, '../../agents')])

export function assertAnswerFits(agentId: string, operationId: string | null, collected: Collected): void {
  const operation = catalogue.get(agentId).operations.find(({ id }) => id === operationId)
  assert.ok(operation?.outputSchema != null, 'the operation has an output schema')
  const answer = collected.computedAnswer
  assert.ok(answer !== undefined, 'there is a computed answer')
  assert.equal(answer['computed'], true)
  assert.deepEqual(schemaComplaints(operation.outputSchema, answer), [])
  assert.deepEqual(citationErrors(answer, collected.citable, operation.citations === 'required'), [])
}
