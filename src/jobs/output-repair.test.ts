// The repair round of a structured answer, on the real loop, scheduler and store: it is a
// step like any other, a run has one, and a crash neither loses it nor grants another.

import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { type Answer, calls, openRig, type Rig, type RigOptions, says } from '../../test/support/run-rig.ts'
import type { StepRequest } from '../engines/engine.ts'
import { JobAcceptance } from './job-acceptance.ts'
import type { EventOf, EventType } from '../journal/event.ts'
import { crashImages } from '../../test/support/crash-images.ts'
import { ended } from '../../test/support/run-helpers.ts'

const outputSchema = { type: 'object', properties: { done: { type: 'boolean' } }, required: ['done'] }
const good = '{"done":true}'

async function rigged(context: TestContext, options: RigOptions): Promise<Rig> {
  const rig = await openRig(options)
  context.after(() => rig.close())
  return rig
}

async function startJob(rig: Rig, mode: 'auto' | 'interactive' = 'auto'): Promise<string> {
  const { run } = await new JobAcceptance({
    ...rig.dependencies,
    engineName: 'scripted',
    runs: rig.service,
    uploadTtlMs: 1000,
  }).accept({
    owner: 'ada',
    family: 'jobs',
    input: 'Run it.',
    model: undefined,
    job: { source: 'installed', mode, requireReply: true, replyTimeoutMs: 1000, input: {}, parameter: {}, options: {} },
    skill: { id: 'errand', name: 'Errand', text: 'Run the errand.', outputSchema },
    held: false,
    idempotency: null,
  })
  return run.id
}

/** Answers in turn; remembers what it was asked. */
function scripted(...texts: (string | ReturnType<typeof says>)[]): { answer: Answer; asked: StepRequest[] } {
  const asked: StepRequest[] = []
  return {
    asked,
    answer: (request) => {
      const next = texts[asked.length]
      asked.push(request)
      return typeof next === 'string' ? says(next) : (next ?? says('Nothing more.'))
    },
  }
}

async function eventsOf<T extends EventType>(rig: Rig, runId: string, type: T): Promise<EventOf<T>[]> {
  return (await rig.events(runId)).filter((event): event is EventOf<T> => event.type === type)
}

describe('a final answer that does not fit', () => {
  test('is asked for once more with the errors, in a step of its own, and the run succeeds', async (context) => {
    const { answer, asked } = scripted('{"done":"maybe"}', good)
    const rig = await rigged(context, { answer })
    const id = await startJob(rig)
    await rig.until(id, ended)

    const [rejected] = await eventsOf(rig, id, 'output.rejected')
    const [end] = await eventsOf(rig, id, 'run.ended')
    assert.deepEqual([end?.data.status, end?.data.output], ['succeeded', good])
    assert.deepEqual([rejected?.data.step, rejected?.data.errors], [1, ['done must be boolean']])
    assert.deepEqual(
      (await eventsOf(rig, id, 'step.done')).map(({ data }) => data.step),
      [1, 2],
    )
    const told = asked[1]?.messages.slice(-2)
    assert.deepEqual(
      told?.map(({ role }) => role),
      ['assistant', 'user'],
    )
    assert.match(String(told?.[1]?.content), /done must be boolean/)
  })

  test('a second time fails the run, and the model is not asked a third time', async (context) => {
    const { answer, asked } = scripted('Sorry.', 'Sorry again.', good)
    const rig = await rigged(context, { answer })
    const id = await startJob(rig)
    await rig.until(id, ended)

    const [end] = await eventsOf(rig, id, 'run.ended')
    assert.deepEqual([end?.data.status, end?.data.error?.code, asked.length], ['failed', 'job_output_invalid', 2])
    assert.match(String(end?.data.error?.message), /asked once more/)
    assert.equal((await eventsOf(rig, id, 'output.rejected')).length, 1)
  })

  test('is not asked for again by a run that has no step left', async (context) => {
    const { answer, asked } = scripted('Sorry.', good)
    const rig = await rigged(context, { answer, limits: { stepsMax: 1 } })
    const id = await startJob(rig)
    await rig.until(id, ended)

    const [end] = await eventsOf(rig, id, 'run.ended')
    assert.deepEqual([end?.data.error?.code, asked.length], ['job_output_invalid', 1])
  })

  test('may be repaired with the help of tools; the round is still the only one', async (context) => {
    const { answer, asked } = scripted('Sorry.', calls({ callId: 'c1', name: 'nothing' }), 'Sorry.', good)
    const rig = await rigged(context, { answer })
    const id = await startJob(rig)
    await rig.until(id, ended)

    const [end] = await eventsOf(rig, id, 'run.ended')
    assert.deepEqual([end?.data.error?.code, asked.length], ['job_output_invalid', 3])
  })

  test('may be an empty one: the model gets a message that says so', async (context) => {
    const { answer, asked } = scripted('', good)
    const rig = await rigged(context, { answer })
    const id = await startJob(rig)
    await rig.until(id, ended)

    assert.match(String(asked[1]?.messages.at(-1)?.content), /it is empty/)
    assert.equal((await rig.store.readRun(id))?.status, 'succeeded')
  })
})

test('an answer with words around its JSON needs no second request, and its output is the JSON alone', async (context) => {
  const { answer, asked } = scripted(`Here you are:\n\`\`\`json\n${good}\n\`\`\`\nGlad to help.`)
  const rig = await rigged(context, { answer })
  const id = await startJob(rig)
  await rig.until(id, ended)

  const [end] = await eventsOf(rig, id, 'run.ended')
  const [message] = await eventsOf(rig, id, 'message.done')
  assert.deepEqual([end?.data.output, asked.length], [good, 1])
  assert.match(String(message?.data.text), /Glad to help/)
})

test('an interactive run whose answer is JSON among words is asked what it meant before a person is asked', async (context) => {
  const { answer } = scripted(`Done: ${good}`, 'Is this right?')
  const rig = await rigged(context, { answer })
  const id = await startJob(rig, 'interactive')
  await rig.until(id, ({ status }) => status === 'waiting_user')

  const [asked] = await eventsOf(rig, id, 'input.required')
  assert.equal(asked?.data.prompt, 'Is this right?')
})

test('a crash after any event of the repair round neither loses it nor grants another', async (context) => {
  const images = crashImages(context)
  const whole = scripted('{"done":"maybe"}', 'Still wrong.')
  const rig = await rigged(context, {
    answer: whole.answer,
    ...images.options,
  })
  const id = await startJob(rig)
  await rig.until(id, ended)
  const killedAfter = new Set<boolean>()

  for (const [index, path] of images.paths.entries()) {
    // The answer depends on the request alone, so a step that is asked again gets the same answer.
    let requests = 0
    const again = await images.reopen(path, {
      clock: rig.clock,
      answer: ({ messages }) => {
        requests += 1
        const repair = messages.some(({ role, content }) => role === 'user' && content.includes('cannot be used'))
        return says(repair ? 'Still wrong.' : '{"done":"maybe"}')
      },
    })
    killedAfter.add((await eventsOf(again, id, 'output.rejected')).length > 0)
    again.scheduler.start()
    await again.until(id, ended)
    const events = await again.events(id)
    assert.equal(events.filter(({ type }) => type === 'output.rejected').length, 1, `image ${index}`)
    assert.equal((await again.store.readRun(id))?.error?.code, 'job_output_invalid')
    assert.ok(requests <= 2, `${requests} requests after image ${index}`)
    await again.close()
  }
  assert.deepEqual(killedAfter, new Set([false, true]), 'the images are from before and after the rejection')
})
