// The events of the Responses API. The real clients read them in test/http/openai-responses.test.ts.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dialectContract, framesOf } from '../../../test/contracts/dialect-contract.ts'
import type { Scenario } from '../../../test/scenarios/journal-builder.ts'
import { type ScenarioName, scenarioNamed, scenarios } from '../../../test/scenarios/scenarios.ts'
import { openAiResponsesDialect } from './openai-responses.ts'
import { parseResponseId, type ResponseItem, type ResponseObject, responseId } from './response-object.ts'

dialectContract(openAiResponsesDialect)

type Data = {
  type: string
  sequence_number: number
  output_index?: number
  item?: ResponseItem
  response?: ResponseObject
}

function eventsOf(scenario: Scenario): Data[] {
  return framesOf(openAiResponsesDialect, scenario).map(({ frame }) => frame.data as Data)
}

/** The events of each response. */
function responsesOf(scenario: Scenario): Data[][] {
  const responses: Data[][] = []
  for (const event of eventsOf(scenario)) {
    if (event.type === 'response.created') responses.push([])
    responses.at(-1)?.push(event)
  }
  return responses
}

const namesOf = (name: ScenarioName) => eventsOf(scenarioNamed(name)).map(({ type }) => type.replace('response.', ''))
const endOf = (name: ScenarioName) => eventsOf(scenarioNamed(name)).at(-1)

describe('the events of every response', () => {
  for (const scenario of scenarios) {
    it(`are numbered from 0 without a hole, and every item is opened and closed once (${scenario.name})`, () => {
      for (const events of responsesOf(scenario)) {
        assert.deepEqual(
          events.map(({ sequence_number }) => sequence_number),
          events.map((_, index) => index),
        )
        const ids = (type: string) => events.filter((event) => event.type === type).map(({ item }) => item?.id)
        const added = ids('response.output_item.added')
        assert.equal(new Set(added).size, added.length)
        assert.deepEqual(new Set(ids('response.output_item.done')), new Set(added))
        assert.equal(ids('response.output_item.done').length, added.length)
        assert.deepEqual(
          events.flatMap(({ type, output_index }) => (type === 'response.output_item.added' ? [output_index] : [])),
          added.map((_, index) => index),
        )
        const last = events.at(-1)
        assert.match(last?.type ?? '', /^response\.(completed|failed|incomplete)$/)
        for (const { response } of events) if (response !== undefined) assert.equal(response.id, last?.response?.id)
      }
    })
  }
})

describe('the events of a response', () => {
  it('are the lifecycle, the items and their text', () => {
    const names = namesOf('plain answer')
    assert.deepEqual(
      names.filter((name, index) => name !== names[index - 1]),
      [
        'created',
        'in_progress',
        'output_item.added',
        'content_part.added',
        'output_text.delta',
        'output_text.done',
        'content_part.done',
        'output_item.done',
        'completed',
      ],
    )
  })

  it('show a call of the server as an mcp_call with its result', () => {
    const call = endOf('one tool')?.response?.output.find(({ type }) => type === 'mcp_call')
    assert.deepEqual([call?.['server_label'], call?.['status'], call?.['error']], ['polylog', 'completed', null])
    const failed = endOf('tool threw')?.response?.output.find(({ type }) => type === 'mcp_call')
    assert.deepEqual([failed?.['status'], failed?.['output']], ['failed', null])
  })

  it('end with a request for consent, and the decision begins the next response', () => {
    const [asked = [], decided = []] = responsesOf(scenarioNamed('tool confirmed'))
    const output = (events: Data[]) => events.at(-1)?.response?.output.map(({ type }) => type)

    assert.deepEqual(output(asked), ['mcp_approval_request'])
    assert.equal(asked.at(-1)?.response?.output[0]?.id, 'confirmation-1')
    assert.deepEqual(output(decided), ['mcp_call', 'message'])
    const { runId } = scenarioNamed('tool confirmed')
    assert.deepEqual(
      [decided[0]?.response?.id, decided[0]?.response?.['previous_response_id']],
      [responseId(runId, 1), responseId(runId, 0)],
    )
  })

  it('leave out of the answer what was superseded', () => {
    const events = eventsOf(scenarioNamed('superseded after restart'))
    const added = events.filter(({ type, item }) => type.endsWith('item.added') && item?.type === 'message')
    const kept = events.at(-1)?.response?.output.filter(({ type }) => type === 'message') ?? []
    assert.deepEqual([added.length, kept.length], [2, 1])
    assert.equal(kept[0]?.id, added[1]?.item?.id)
  })

  it('have in the answer what a cancelled run had said', () => {
    const events = eventsOf(scenarioNamed('cancelled mid sentence'))
    const done = events.find(({ type, item }) => type.endsWith('item.done') && item?.type === 'message')?.item
    assert.equal(done?.['status'], 'incomplete')
    assert.deepEqual(events.at(-1)?.response?.output, [done])
  })

  it('say how a run ended', () => {
    assert.equal(endOf('model down')?.type, 'response.failed')
    const { response } = endOf('model down') as Data
    assert.match(JSON.stringify(response?.['error']), /"code":"/)
    const cancelled = endOf('cancelled mid sentence')
    assert.deepEqual([cancelled?.type, cancelled?.response?.status], ['response.incomplete', 'cancelled'])
  })
})

describe('the id of a response', () => {
  it('has the run and the number of the response in it', () => {
    for (const index of [0, 1, 12])
      assert.deepEqual(parseResponseId(responseId('01M7JGXSQ460', index)), { runId: '01M7JGXSQ460', index })
    for (const id of ['', 'resp_', 'msg_1', '01M7']) assert.equal(parseResponseId(id), undefined)
  })
})
