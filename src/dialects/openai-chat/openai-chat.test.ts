// The chunks of Chat Completions. The real clients read them in test/http/openai-chat.test.ts.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dialectContract, framesOf } from '../../../test/contracts/dialect-contract.ts'
import { type ScenarioName, scenarioNamed } from '../../../test/scenarios/scenarios.ts'
import { openAiChatDialect } from './openai-chat.ts'

dialectContract(openAiChatDialect())

type Data = {
  id?: string
  choices?: { delta: Record<string, unknown>; finish_reason: string | null }[]
  usage?: Record<string, unknown>
  polylog?: Record<string, unknown>
  error?: Record<string, unknown>
}

/** One line for each frame. */
function linesOf(name: ScenarioName): string[] {
  return framesOf(openAiChatDialect({ usage: true }), scenarioNamed(name)).map(({ frame: { data } }) => {
    if (typeof data === 'string') return data
    const { choices = [], usage, polylog, error } = data as Data
    if (error !== undefined) return `error ${String(error['code'])} ${String(error['type'])}`
    const [choice] = choices
    if (choice === undefined) return `usage ${String(usage?.['total_tokens'])}`
    if (choice.finish_reason !== null) return `finish ${choice.finish_reason}`
    const extension =
      polylog === undefined ? '' : ` + ${String(polylog['type'])} ${String(polylog['kind'] ?? polylog['name'])}`
    return `${JSON.stringify(choice.delta)}${extension}`
  })
}

const role = '{"role":"assistant","content":""}'

describe('the chunks of Chat Completions', () => {
  it('are the role, the text, the finish reason, the usage and the end', () => {
    assert.deepEqual(linesOf('plain answer'), [
      role,
      ...linesOf('plain answer').slice(1, -3),
      'finish stop',
      'usage 15',
      '[DONE]',
    ])
    assert.ok(
      linesOf('plain answer')
        .slice(1, -3)
        .every((line) => line.startsWith('{"content":')),
    )
  })

  it('show a call that needs consent as a tool call, and what follows is a completion of its own', () => {
    const call = { index: 0, id: 'confirmation-1', type: 'function' }
    const called = { name: 'send_message', arguments: '{"to":"bob","text":"hello"}' }
    assert.deepEqual(linesOf('tool confirmed'), [
      role,
      '{} + tool.called send_message',
      `${JSON.stringify({ tool_calls: [{ ...call, function: called }] })} + input.required confirmation`,
      'finish tool_calls',
      'usage 15',
      '[DONE]',
      role,
      '{} + tool.done send_message',
      '{"content":"I told "}',
      '{"content":"him."}',
      'finish stop',
      'usage 15',
      '[DONE]',
    ])
    const ids = framesOf(openAiChatDialect(), scenarioNamed('tool confirmed')).flatMap(
      ({ frame }) => (frame.data as Data).id ?? [],
    )
    const { runId } = scenarioNamed('tool confirmed')
    assert.deepEqual([...new Set(ids)], [`chatcmpl-${runId}`, `chatcmpl-${runId}-2`])
  })

  it('hold back an answer that has to fit a schema until it does', () => {
    const repaired = scenarioNamed('answer rejected and repaired')
    const events = repaired.events.map((event) =>
      event.type === 'run.accepted'
        ? { ...event, data: { ...event.data, spec: { ...event.data.spec, outputSchema: { type: 'object' } } } }
        : event,
    )
    const texts = framesOf(openAiChatDialect(), { ...repaired, events }).map(
      ({ frame }) => (frame.data as Data).choices?.[0]?.delta['content'] ?? '',
    )
    const end = repaired.events.at(-1)
    assert.equal(texts.join(''), end?.type === 'run.ended' ? end.data.output : '')
    assert.notEqual(texts.join(''), '')
  })

  it('end with an error object if the run failed or was cancelled', () => {
    for (const [name, code] of [
      ['model down', undefined],
      ['cancelled mid sentence', 'run_cancelled'],
    ] as const) {
      const last = framesOf(openAiChatDialect(), scenarioNamed(name)).at(-1)?.frame.data as Data
      assert.equal(typeof last.error?.['message'], 'string')
      if (code !== undefined) assert.equal(last.error?.['code'], code)
    }
  })
})
