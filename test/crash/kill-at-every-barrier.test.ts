// The main promise of this product: if the server is killed at any moment and started
// again, a client that reconnects gets exactly the rest. Nothing is lost, sent twice, or
// executed twice without the consent of a person.
//
// Every run has three steps: text, a clock and a confirmed note; a confirmed message to
// Bob, which must not be sent twice; text. The first suite covers the moments at which a
// run can be paused: one server has a run at each of them when it is killed. The second
// covers moments that cannot be paused: the kill is sent right after a frame arrives.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type FakeFeishu, startFakeFeishu } from '../support/fake-feishu.ts'
import { type FakeProcess, spawnFake } from '../support/spawn-fake.ts'
import { until } from '../support/until.ts'
import { type Confirmation, CrashScene, Host, named, type Timeline, toolIs } from './crash-scene.ts'

let provider: FakeProcess
let feishu: FakeFeishu

before(async () => {
  ;[provider, feishu] = await Promise.all([spawnFake('repeatable-provider.ts'), startFakeFeishu()])
})
after(async () => {
  await Promise.all([provider?.stop(), feishu?.stop()])
})

const inOrder = (steps: number[]) => steps.toSorted((left, right) => left - right)
const answerTexts = ['Let me look first.', 'All is sent.']

/** The conversation as a person reads it: no torn, doubled or missing message, and each call with one result. */
async function checkMessages(scene: CrashScene, texts: string[]): Promise<void> {
  const messages = await scene.messages()
  assert.equal(messages[0]?.role, 'user')
  assert.deepEqual(
    messages.filter(({ role }) => role === 'assistant').map(({ content }) => content),
    texts,
  )
  assert.deepEqual(
    messages
      .filter(({ role }) => role === 'tool')
      .map(({ metadata }) => String(metadata.toolName))
      .toSorted(),
    ['current_time', 'remember_note', 'send_feishu_message'],
  )
}

function outcomes(timeline: Timeline, tool: string): string[] {
  return timeline.events
    .filter(({ event, payload }) => event === 'tool.state' && payload.name === tool)
    .map(({ payload }) => `${payload.status}${payload.error === undefined ? '' : ` ${payload.error.code}`}`)
}

type Held = {
  name: string
  words: string
  reach(scene: CrashScene): Promise<unknown>
  /** The step that has to be asked again. */
  again: number | null
  unknown?: 'confirm' | 'reject'
  texts?: string[]
  sent?: { messages: number; requests: number }
}

const lastDelta = (text: string) => (scene: CrashScene) => scene.waitFor((frame) => frame.json.data.delta === text)
const parked = (tool: string) => (scene: CrashScene) => scene.untilAsked(tool)
const atStep = (step: number) => async (scene: CrashScene) => {
  await scene.decideUntil(toolIs('send_feishu_message', 'succeeded'))
  await until(`step ${step} is asked`, async () => (await scene.asked()).includes(step))
}
const sending = async (scene: CrashScene) => {
  await scene.untilAsked('send_feishu_message')
  for (const { id } of await scene.pending()) await scene.decide(id, 'confirm')
  // Feishu has recorded the message and does not answer: the call is under way.
  await until('the message arrives', async () => (await scene.sent()).messages === 1)
}

/** Those that need a Feishu that hangs come last. */
const held: Held[] = [
  {
    name: 'accepted, the model silent',
    words: 'hold=1:0',
    again: 1,
    reach: (scene) => until('the model is asked', async () => (await scene.asked()).length === 1),
  },
  { name: 'the first delta', words: 'hold=1:1', again: 1, reach: lastDelta('Let me ') },
  { name: 'the middle of a sentence', words: 'hold=1:2', again: 1, reach: lastDelta('look ') },
  {
    name: 'the middle of a sentence that is then said differently',
    words: 'hold=1:2 vary',
    again: 1,
    reach: lastDelta('look '),
    texts: ['In other words: Let me look first.', 'All is sent.'],
  },
  { name: 'all words said but not the end of the step', words: 'hold=1:3', again: 1, reach: lastDelta('first.') },
  {
    name: 'the first confirmation awaited',
    words: '',
    again: null,
    // The clock of the same step has finished, and must not run again.
    reach: async (scene) => {
      await scene.waitFor(toolIs('remember_note', 'awaiting_input'))
      await scene.waitFor(toolIs('current_time', 'succeeded'))
      await until('the run parks', async () => (await scene.timeline()).status === 'awaiting_input')
    },
  },
  { name: 'the second confirmation awaited', words: '', again: null, reach: parked('send_feishu_message') },
  { name: 'the tool done, the model silent', words: 'hold=3:0', again: 3, reach: atStep(3) },
  {
    name: 'the middle of the last sentence',
    words: 'hold=3:1',
    again: 3,
    reach: (scene) => scene.decideUntil((frame) => frame.json.data.delta === 'All '),
  },
  {
    name: 'just before the end',
    words: 'hold=3:3',
    again: 3,
    reach: (scene) => scene.decideUntil((frame) => frame.json.data.delta === 'sent.'),
  },
  { name: 'after the end', words: '', again: null, reach: (scene) => scene.decideUntil(named('agent.end')) },
  { name: 'an unsafe tool under way, then left alone', words: '', again: null, reach: sending, unknown: 'reject' },
  {
    name: 'an unsafe tool under way, then run again',
    words: '',
    again: null,
    reach: sending,
    unknown: 'confirm',
    sent: { messages: 1, requests: 2 },
  },
]

describe('a server that is killed while its runs are held', () => {
  const scenes = new Map<Held, CrashScene>()
  let host: Host

  before(async () => {
    await feishu.behave({})
    host = await Host.start(provider, feishu)
    for (const [index, moment] of held.entries()) {
      if (moment.reach === sending) await feishu.behave({ afterRecording: 'hang' })
      const scene = new CrashScene(host, `held-${index}`)
      scenes.set(moment, scene)
      await scene.ask(moment.words)
      await moment.reach(scene)
    }
    await host.kill()
    await Promise.all([...scenes.values()].map((scene) => scene.lost()))
    await feishu.behave({})
    await host.restartProcess()
  })
  after(async () => {
    await host?.server.dispose()
  })

  describe('at', { concurrency: 3 }, () => {
    for (const [index, moment] of held.entries()) {
      it(`${moment.name}: the client that comes back gets exactly the rest, and nothing happens twice`, async () => {
        const scene = scenes.get(moment) as CrashScene
        const tool = 'send_feishu_message'
        let question: Confirmation | undefined
        if (moment.unknown !== undefined) {
          // The person who is asked can see that it may have happened.
          question = await until('the question', async () =>
            (await scene.pending()).find(({ outcome }) => outcome === 'unknown'),
          )
          assert.equal(question.toolName, tool)
          assert.deepEqual(question.payload, { recipientId: 'bob', message: `hello of held-${index}` })
        }

        await scene.finish(moment.unknown)

        const timeline = await scene.checkHistory()
        const expected = [1, 2, 3, ...(moment.again === null ? [] : [moment.again])]
        assert.deepEqual(inOrder(await scene.asked()), inOrder(expected))
        assert.deepEqual(await scene.sent(), moment.sent ?? { messages: 1, requests: 1 })
        assert.deepEqual(outcomes(timeline, 'current_time'), ['queued', 'running', 'succeeded'])
        assert.deepEqual(outcomes(timeline, 'remember_note'), [
          'queued',
          'running',
          'awaiting_input',
          'running',
          'succeeded',
        ])
        const asked = ['queued', 'running', 'awaiting_input', 'running']
        assert.deepEqual(
          outcomes(timeline, tool),
          moment.unknown === undefined
            ? [...asked, 'succeeded']
            : [
                ...asked,
                'awaiting_input tool_outcome_unknown',
                ...(moment.unknown === 'confirm' ? ['running', 'succeeded'] : ['failed tool_outcome_unknown']),
              ],
        )
        await checkMessages(scene, moment.texts ?? answerTexts)
      })
    }
  })

  it('afterwards another kill and two more starts change nothing', async () => {
    const before = await everything()

    await host.kill()
    await host.restartProcess()
    await host.kill()
    assert.deepEqual(
      await host.notes(),
      held.map((_, index) => `note of held-${index}`).toSorted(),
      'each note was saved once',
    )
    await host.restart()

    assert.deepEqual(await everything(), before)
    for (const scene of scenes.values()) assert.equal(await scene.attach(), false, 'there is nothing left to get')
  })

  async function everything(): Promise<{ timelines: Timeline[]; asked: number[][] }> {
    const all = [...scenes.values()]
    return {
      timelines: await Promise.all(all.map((scene) => scene.timeline())),
      asked: await Promise.all(all.map((scene) => scene.asked())),
    }
  }
})

describe('a server that is killed the moment a client sees …', { concurrency: 3 }, () => {
  const moments: { name: string; reach(scene: CrashScene): Promise<unknown> }[] = [
    { name: 'that the run was accepted', reach: (scene) => scene.waitFor(named('agent.start')) },
    { name: 'a whole message and its calls', reach: (scene) => scene.waitFor(named('agent.message')) },
    { name: 'a tool at work', reach: (scene) => scene.waitFor(toolIs('current_time', 'running')) },
    {
      name: 'that its confirmation was taken',
      reach: async (scene) => {
        await scene.untilAsked('send_feishu_message')
        for (const { id } of await scene.pending()) assert.equal(await scene.decide(id, 'confirm'), 200)
      },
    },
    {
      name: 'that an unsafe tool was started',
      reach: (scene) =>
        scene.decideUntil(
          (frame) => toolIs('send_feishu_message', 'running')(frame) && frame.json.data.confirmationId !== undefined,
        ),
    },
    {
      name: 'the last message',
      reach: (scene) => scene.decideUntil((frame) => frame.json.data.content === 'All is sent.'),
    },
  ]

  for (const [index, { name, reach }] of moments.entries()) {
    it(`${name}: the run still ends once, with the whole answer and at most one message to Bob`, async () => {
      const host = await Host.start(provider, feishu)
      try {
        const scene = new CrashScene(host, `passing-${index}`)
        await scene.ask()
        await reach(scene)
        await host.kill()
        await scene.lost()
        await host.restart()

        await scene.finish('reject')

        const timeline = await scene.checkHistory()
        await checkMessages(scene, answerTexts)
        const asked = await scene.asked()
        assert.deepEqual([...new Set(asked)], [1, 2, 3])
        assert.ok(asked.length <= 4, `at most the interrupted step is asked again, not ${asked.join()}`)
        const unknown = outcomes(timeline, 'send_feishu_message').includes('failed tool_outcome_unknown')
        const { messages, requests } = await scene.sent()
        if (unknown) assert.ok(requests <= 1, 'nobody let it be sent again')
        else assert.deepEqual({ messages, requests }, { messages: 1, requests: 1 })
        const starts = outcomes(timeline, 'current_time').filter((status) => status === 'running').length
        assert.ok(starts <= 2, 'a read may be done again, once')
        await host.server.stop()
        assert.deepEqual(await host.notes(), [`note of passing-${index}`])
      } finally {
        await host.server.dispose()
      }
    })
  }
})
