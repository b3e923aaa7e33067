// The frames of A2A, scenario by scenario, in both versions of the protocol. What the real clients make
// of them over a socket is in test/http/a2a.test.ts.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dialectContract, framesOf, textOf } from '../../../test/contracts/dialect-contract.ts'
import { scenario } from '../../../test/scenarios/journal-builder.ts'
import { type ScenarioName, scenarioNamed, scenarios } from '../../../test/scenarios/scenarios.ts'
import { a2aDialect } from './a2a.ts'
import { type A2aFrame, TaskFold } from './task.ts'

const dialect = a2aDialect({ requestId: 'request-1' })
const legacy = a2aDialect({ version: '0.3', requestId: 7 })

dialectContract(dialect)
dialectContract(legacy)

/**
 * The frames of each run, in order. A status is its state and the message that it brings; an artifact is its id, with `+` if it
 * is appended, and `.` if it is the last piece.
 */
const told: Readonly<Record<ScenarioName, string>> = {
  'plain answer': 'task working message-1 message-1+ message-1+ message-1+ message-1+. completed',
  reasoning: 'task working message-1 message-1+ message-1+. completed',
  'queued behind another run': 'task working message-1 message-1+ message-1+. completed',
  'state of a remote agent': 'task working message-1 message-1+ message-1+. completed',
  'answer rejected and repaired':
    'task working message-1 message-1+ message-1+. message-2 message-2+ message-2+. completed',
  'older messages cut and summarised': 'task working message-1 message-1+ message-1+. completed',
  'large truncated output': 'task working working:call-1 working:result-call-1 message-2 message-2+. completed',
  'one tool':
    'task working message-1 message-1+ message-1+. working:call-1 working:result-call-1 message-2 message-2+ message-2+. completed',
  'parallel tools':
    'task working working:call-1 working:call-2 working:result-call-2 working:result-call-1 message-2 message-2+. completed',
  'remote turn':
    'task working message-1 message-1+. working:call-1 message-2 message-2+ message-2+. working:result-call-1 message-3 message-3+. completed',
  'provider-run search':
    'task working message-1 message-1+ working:call-1 working:result-call-1 message-1+ message-1+ message-1+ message-1+ message-1+. completed',
  files: 'task working working:call-1 working:result-call-1 result-call-1. message-2 message-2+. completed',
  'tool threw': 'task working working:call-1 working:result-call-1 message-2 message-2+. completed',
  'tool failed politely': 'task working working:call-1 working:result-call-1 message-2 message-2+. completed',
  'tool with bare arguments': 'task working working:call-1 working:result-call-1 message-2 message-2+. completed',
  'tool confirmed':
    'task working working:call-1 input_required:confirmation-1 working working:result-call-1 message-2 message-2+ message-2+. completed',
  'edited while confirming':
    'task working working:call-1 input_required:confirmation-1 working working:result-call-1 message-2 message-2+. completed',
  'tool denied':
    'task working working:call-1 input_required:confirmation-1 working working:result-call-1 message-2 message-2+. completed',
  'confirmation expired':
    'task working working:call-1 input_required:confirmation-1 working working:result-call-1 message-2 message-2+. completed',
  'cancelled while a person is awaited':
    'task working working:call-1 input_required:confirmation-1 canceled:run-cancelled-while-a-person-is-awaited-end',
  'unknown outcome':
    'task working working:call-1 input_required:confirmation-1 working input_required:confirmation-2 working working:result-call-1 message-2 message-2+. completed',
  'one confirmed beside one that runs':
    'task working working:call-1 working:call-2 working:result-call-2 input_required:confirmation-1 working working:result-call-1 message-2 message-2+. completed',
  question: 'task working message-1 message-1+. input_required:question-1 working message-2 message-2+. completed',
  'tool of the client':
    'task working message-1 message-1+. working:call-1 input_required:interaction-1 working working:result-call-1 message-2 message-2+ message-2+. completed',
  'failed tool of the client':
    'task working message-1 message-1+. working:call-1 input_required:interaction-1 working working:result-call-1 message-2 message-2+. completed',
  'tool of the client beside one that runs':
    'task working working:call-1 working:call-2 working:result-call-2 input_required:interaction-1 working working:result-call-1 message-2 message-2+. completed',
  'cancelled while the client is awaited':
    'task working message-1 message-1+. working:call-1 input_required:interaction-1 canceled:run-cancelled-while-the-client-is-awaited-end',
  'cancelled mid sentence':
    'task working message-1 message-1+ message-1+.(abandoned) canceled:run-cancelled-mid-sentence-end',
  'cancelled before it began': 'task canceled:run-cancelled-before-it-began-end',
  'cancelled during a tool':
    'task working working:call-1 working:call-2 working:result-call-1 working:result-call-2 canceled:run-cancelled-during-a-tool-end',
  'model down': 'task working failed:run-model-down-end',
  'out of steps after a tool':
    'task working working:call-1 working:result-call-1 failed:run-out-of-steps-after-a-tool-end',
  'timed out': 'task working message-1 message-1+ message-1+.(abandoned) failed:run-timed-out-end',
  'resumed after restart with the same text': 'task working message-1 message-1+ message-1+ message-1+. completed',
  'superseded after restart':
    'task working message-1 message-1+ message-1+.(superseded) message-2 message-2+ message-2+. completed',
  'superseded by a tool call':
    'task working message-1 message-1+.(superseded) working:call-1 working:result-call-1 message-3 message-3+. completed',
}

function wordOf({ name, data }: A2aFrame): string {
  if (name === 'task') return 'task'
  if (name === 'statusUpdate') {
    const { state, message } = data.status
    return state.slice('TASK_STATE_'.length).toLowerCase() + (message === undefined ? '' : `:${message.messageId}`)
  }
  const { artifact, append, lastChunk } = data
  const { artifactId, metadata } = artifact
  const state = metadata === undefined ? '' : `(${String(metadata['state'])})`
  return artifactId + (append === true ? '+' : '') + (lastChunk === true ? '.' : '') + state
}

function a2aFrames(name: ScenarioName): A2aFrame[] {
  return framesOf(dialect, scenarioNamed(name)).map(({ frame }) => frame as A2aFrame)
}

function taskOf(name: ScenarioName, count = Number.POSITIVE_INFINITY) {
  const fold = new TaskFold()
  for (const frame of a2aFrames(name).slice(0, count)) fold.add(frame)
  return fold.task()
}

describe('the frames of A2A', () => {
  for (const { name, runId } of scenarios) {
    it(`tells “${name}” as a task`, () => {
      assert.equal(a2aFrames(name).map(wordOf).join(' '), told[name])
    })

    it(`tells “${name}” in 0.3 with the same ids, and marks each end of a stream as final`, () => {
      const results = framesOf(legacy, scenarioNamed(name)).map(({ text }) => {
        const { id, result } = JSON.parse(text.slice(text.indexOf('data: ') + 6)) as {
          id: number
          result: { kind: string; id?: string; taskId?: string; final?: boolean; status?: { state: string } }
        }
        assert.equal(id, 7)
        assert.equal(result.kind === 'task' ? result.id : result.taskId, runId)
        return result
      })

      const ends = results.filter(({ final }) => final === true).map(({ status }) => status?.state)
      const expected = told[name].split(' ').filter((word) => /^(input_required|completed|failed|canceled)/.test(word))
      assert.deepEqual(
        ends,
        expected.map((word) => (word.split(':', 1)[0] ?? '').replace('_', '-')),
      )
    })

    it(`gives every frame of “${name}” a task, even if the first row of the journal cannot be read`, () => {
      const whole = scenarioNamed(name)
      const frames = framesOf(dialect, { ...whole, events: whole.events.slice(1) })

      assert.equal(frames[0]?.frame.name, 'task')
      assert.equal(frames.filter(({ frame }) => frame.name === 'task').length, 1)
    })
  }

  it('writes a run with a confirmation as these very bytes', () => {
    const place = '"taskId":"run-tool-confirmed","contextId":"conversation-1"'
    const message = (id: string, role: string, parts: string) =>
      `{"messageId":"${id}","contextId":"conversation-1","taskId":"run-tool-confirmed","role":"${role}","parts":[${parts}]}`
    const call = '"toolCallId":"call-1","toolName":"send_message","arguments":{"to":"bob","text":"hello"}'
    const results = [
      `{"task":{"id":"run-tool-confirmed","contextId":"conversation-1","status":{"state":"TASK_STATE_SUBMITTED","timestamp":"2026-01-02T03:04:05.000Z"},"history":[${message('message-user', 'ROLE_USER', '{"text":"Tell Bob hello."}')}]}}`,
      `{"statusUpdate":{${place},"status":{"state":"TASK_STATE_WORKING","timestamp":"2026-01-02T03:04:05.020Z"}}}`,
      `{"statusUpdate":{${place},"status":{"state":"TASK_STATE_WORKING","message":${message('call-1', 'ROLE_AGENT', `{"text":"Send “hello” to Bob"},{"data":{${call}}}`)},"timestamp":"2026-01-02T03:04:05.040Z"}}}`,
      `{"statusUpdate":{${place},"status":{"state":"TASK_STATE_INPUT_REQUIRED","message":${message('confirmation-1', 'ROLE_AGENT', `{"text":"Send “hello” to Bob"},{"data":{"interactionId":"confirmation-1","kind":"confirmation",${call}}}`)},"timestamp":"2026-01-02T03:04:05.070Z"}}}`,
    ]
    const text = textOf(dialect, scenarioNamed('tool confirmed'))

    assert.equal(
      text.replaceAll(/^id: .+\n/gm, ''),
      results.map((result) => `data: {"jsonrpc":"2.0","id":"request-1","result":${result}}\n\n`).join(''),
    )
  })
})

describe('the files of a run', () => {
  const file = { fileId: 'file 1', mediaType: 'image/png', name: 'dot.png', size: 9 }
  const run = scenario('files', (journal) =>
    journal
      .accepted('Draw.')
      .running()
      .asks(1, 'message-1')
      .calls('call-1', 'draw', {})
      .stepDone(1, 'message-1', 1)
      .starts('call-1', {})
      .done('call-1', 'succeeded', 'Drawn.', { files: [file] })
      .answers(2, 'message-2', 'Here.')
      .succeeds('message-2', 'Here.'),
  )

  it('are artifacts of the tool that made them, at the address of the server', () => {
    const fold = new TaskFold()
    for (const { frame } of framesOf(a2aDialect({ origin: 'https://here' }), run)) fold.add(frame)

    const url = 'https://here/v1/files/file%201/content'
    const artifact = {
      artifactId: 'result-call-1',
      name: 'draw',
      parts: [{ url, filename: 'dot.png', mediaType: 'image/png' }],
    }
    assert.deepEqual(fold.task()?.artifacts?.[0], artifact)
  })

  it('are told to 0.3 as its kind of part', () => {
    assert.match(
      textOf(legacy, run),
      /"parts":\[\{"kind":"file","file":\{"uri":"\/v1\/files\/file%201\/content","mimeType":"image\/png","name":"dot.png"\}\}\]/,
    )
  })
})

describe('the task that the frames add up to', () => {
  it('has the whole text of each message, and what the statuses said before as its history', () => {
    const task = taskOf('one tool')

    assert.deepEqual(
      task?.artifacts?.map(({ parts }) => parts),
      [[{ text: 'Let me look.' }], [{ text: 'It is 03:04.' }]],
    )
    assert.deepEqual(
      task?.history?.map(({ messageId }) => messageId),
      ['message-user', 'call-1', 'result-call-1'],
    )
    assert.equal(task?.status.state, 'TASK_STATE_COMPLETED')
  })

  it('keeps the question in its status while it is open', () => {
    const task = taskOf('tool confirmed', 4)

    assert.equal(task?.status.state, 'TASK_STATE_INPUT_REQUIRED')
    assert.equal(task?.status.message?.messageId, 'confirmation-1')
  })

  it('leaves out text that a restart replaced, and keeps text that was cut off', () => {
    const textsOf = (name: ScenarioName) => taskOf(name)?.artifacts?.map(({ parts }) => parts)

    assert.deepEqual(textsOf('superseded after restart'), [[{ text: 'Violets are blue.' }]])
    assert.deepEqual(textsOf('cancelled mid sentence'), [[{ text: 'Once upon a' }]])
  })

  it('does not exist before the first frame', () => {
    assert.equal(taskOf('plain answer', 0), undefined)
  })
})
