// Every run ends, whatever its provider does: silence, an endless answer, an endless chain of
// calls, a cut connection. An answer without the provider's own end is never a success, and a
// request is not repeated after something was shown.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Action } from '../support/fake-provider.ts'
import {
  calls,
  endOf,
  type TestServer,
  type Json,
  messagesOf,
  named,
  runIdOf,
  says,
  someone,
  toolState,
  until,
  sharedTestServers,
} from '../support/test-server.ts'
import { journaled, type SseFrame } from '../support/sse.ts'

const [shared, hasty] = sharedTestServers(
  { POLYLOG_MAX_STEPS: '3', POLYLOG_PROVIDER_RETRIES: '1' },
  { POLYLOG_STALL_MS: '500', POLYLOG_RUN_MAX_MS: '1500', POLYLOG_PING_MS: '100' },
)

function failure(frames: SseFrame[]): string {
  const [error, end] = journaled(frames).slice(-2)
  assert.equal(error?.json.event, 'error')
  assert.equal(end?.json.data.status, 'failed')
  assert.deepEqual(end?.json.data.error, error?.json.data)
  return end?.json.data.error.code as string
}

async function failsWith(
  server: TestServer,
  answer: Action[],
): Promise<{ code: string; frames: SseFrame[]; user: string }> {
  const user = someone()
  await shared.provider.script([answer], user)
  const frames = await server.chatToEnd(user, { input: user, conversationId: `conv-${user}` })
  return { code: failure(frames), frames, user }
}

describe('time', () => {
  test('a provider that says nothing is given up before the first token', async () => {
    const { code, user } = await failsWith(hasty, [{ stall: true }])

    assert.equal(code, 'model_stalled')
    await until('the provider to be left', async () =>
      (await shared.asked(user)).find((request) => request.closedEarly),
    )
  })

  test('a provider that falls silent in the middle is given up, and what was shown stays shown', async () => {
    const { code, frames, user } = await failsWith(hasty, [{ text: ['So, '] }, { stall: true }])

    assert.equal(code, 'model_stalled')
    assert.equal(frames.filter(named('agent.delta')).length, 1)
    await until('the provider to be left', async () =>
      (await shared.asked(user)).find((request) => request.closedEarly),
    )
    assert.equal((await shared.asked(user)).length, 1)
  })

  test('an answer that never ends is stopped when the run has had its time', async () => {
    const endless = Array.from({ length: 200 }, (): Action[] => [{ text: 'and ' }, { delayMs: 20 }]).flat()

    const { code, frames } = await failsWith(hasty, endless)

    assert.equal(code, 'run_timed_out')
    assert.ok(frames.filter(named('agent.delta')).length > 3)
  })

  test('the time until a person decides does not count for the run', async () => {
    const user = someone()
    await shared.provider.script([calls(['remember_note', { text: 'x' }]), says('Saved.')], user)
    const stream = await hasty.chat(user, user)
    const { json } = await stream.waitFor(toolState('awaiting_input'))
    // Eighteen pings are more than the run's whole time.
    await stream.waitFor(() => stream.frames.filter(named('ping')).length >= 18)

    await hasty.call('POST', `/v1/tool-confirmations/${json.data.confirmationId}/confirm`, { user })
    await stream.ended()

    assert.equal(endOf(stream.frames).status, 'succeeded')
  })
})

describe('steps', () => {
  test('a model that only ever calls tools is stopped at the limit, with every call answered', async () => {
    const user = someone()
    const again = Array.from({ length: 5 }, (_, index) => calls(['current_time', {}, `c${index}`]))
    await shared.provider.script(again, user)

    const frames = await shared.chatToEnd(user, user)

    assert.equal(failure(frames), 'max_steps')
    assert.equal((await shared.asked(user)).length, 3)
    assert.equal(frames.filter(toolState('succeeded')).length, 3)
  })

  test('an answer in the last allowed step is a success', async () => {
    const user = someone()
    await shared.provider.script(
      [calls(['current_time', {}, 'c1']), calls(['current_time', {}, 'c2']), says('Done.')],
      user,
    )

    const frames = await shared.chatToEnd(user, user)

    assert.equal(endOf(frames).output, 'Done.')
  })
})

describe('an answer without its end', () => {
  const broken: [string, Action[]][] = [
    ['cut', [{ text: ['Half'] }, { cut: true }]],
    ['ended without a finish reason', [{ text: ['Half'] }, { end: true }]],
    ['half a frame', [{ text: ['Half'] }, { halfJson: true }, { end: true }]],
    [
      'an error in the stream',
      [{ text: ['Half'] }, { error: { message: 'overloaded', type: 'server_error' } }, { end: true }],
    ],
    [
      'half a tool call',
      [{ text: ['Half'] }, { toolCalls: [{ name: 'current_time', arguments: '{"ti' }] }, { end: true }],
    ],
  ]
  for (const [name, answer] of broken) {
    test(`${name}: failed, never succeeded, and not asked again`, async () => {
      const { code, frames, user } = await failsWith(shared, answer)

      assert.match(code, /^model_/)
      assert.equal(frames.filter(named('agent.message')).length, 0)
      assert.equal(frames.filter(({ json }) => json.event === 'tool.state').length, 0)
      assert.equal((await shared.asked(user)).length, 1)
      const { body } = await shared.call('GET', `/v1/conversations/conv-${user}/messages`, { user })
      assert.deepEqual(
        (body as unknown as Json[]).map(({ role }) => role),
        ['user'],
      )
    })
  }

  test('a content filter is a failure with its own code', async () => {
    const { code } = await failsWith(shared, [{ text: ['I must not'] }, { finish: 'content_filter' }])

    assert.equal(code, 'model_content_filtered')
  })

  test('an answer at its length limit is a success that is marked as cut off', async () => {
    const user = someone()
    await shared.provider.script([[{ text: ['Once upon'] }, { finish: 'length' }]], user)

    const frames = await shared.chatToEnd(user, user)

    assert.equal(endOf(frames).status, 'succeeded')
    const { body } = await shared.call('GET', `/v1/agent/runs/${frames[0]?.json.data.runId}/timeline`, { user })
    const notes = (body.events as Json[]).filter(({ event }) => event === 'diagnostic')
    assert.deepEqual(
      notes.map(({ payload }) => payload.code),
      ['output_truncated'],
    )
  })
})

describe('retries', () => {
  test('before the first token a failure that may pass is tried again', async () => {
    for (const answer of [[{ status: 503, body: {} }], [{ cut: true }]] as Action[][]) {
      const user = someone()
      await shared.provider.script([answer, says('At last.')], user)

      const frames = await shared.chatToEnd(user, user)

      assert.equal(endOf(frames).output, 'At last.')
      assert.equal((await shared.asked(user)).length, 2)
    }
  })

  test('not more often than the limit', async () => {
    const user = someone()
    await shared.provider.script([[{ status: 503, body: {} }], [{ status: 503, body: {} }], says('Too late.')], user)

    const frames = await shared.chatToEnd(user, user)

    assert.match(failure(frames), /^model_/)
    assert.equal((await shared.asked(user)).length, 2)
  })

  test('a failure that will not pass is not tried again', async () => {
    for (const status of [400, 401, 404]) {
      const user = someone()
      await shared.provider.script([[{ status, body: { error: { message: 'no' } } }], says('Never.')], user)

      const frames = await shared.chatToEnd(user, user)

      failure(frames)
      assert.equal((await shared.asked(user)).length, 1, String(status))
    }
  })

  test('no key of a provider is in what a client is shown', async () => {
    const user = someone()
    await shared.provider.script(
      [[{ status: 401, body: { error: { message: 'Incorrect API key provided: test-key' } } }]],
      user,
    )
    const stream = await shared.chat(user, user)
    await stream.ended()
    const { text } = await shared.call('GET', `/v1/agent/runs/${runIdOf(stream)}/timeline`, { user })

    assert.doesNotMatch(stream.text() + text, /test-key/)
  })
})

describe('calls that cannot be made', () => {
  const impossible: [string, Action[], string][] = [
    ['a tool that does not exist', calls(['teleport', {}]), 'tool_not_found'],
    ['arguments that do not fit', calls(['remember_note', { text: 7 }]), 'tool_input_invalid'],
    [
      'arguments that are not JSON',
      [{ toolCalls: [{ name: 'current_time', arguments: '{"timezone":' }] }, { finish: 'tool_calls' }],
      'tool_input_invalid',
    ],
  ]
  for (const [name, answer, code] of impossible) {
    test(`${name}: the call fails, the model gets the error, and the run goes on`, async () => {
      const user = someone()
      await shared.provider.script([answer, says('My mistake.')], user)

      const frames = await shared.chatToEnd(user, user)

      assert.equal(frames.find(toolState('failed'))?.json.data.error.code, code)
      assert.equal(frames.filter(toolState('awaiting_input')).length, 0)
      assert.equal(endOf(frames).output, 'My mistake.')
      assert.equal(messagesOf((await shared.asked(user))[1]).at(-1)?.role, 'tool')
    })
  }
})
