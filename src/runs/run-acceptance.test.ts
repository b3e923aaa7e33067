// What a request becomes: configurations, answers asked for again, and runs that
// start together.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Answer, calls, openRig, type Rig, says, silence, toolOf } from '../../test/support/run-rig.ts'
import type { RunSpec } from '../journal/event.ts'
import type { ModelMessage } from '../models/model.ts'
import { modelConfigsOf } from '../models/model-configs.ts'
import type { MessageRow } from '../stores/message-store.ts'
import type { Store } from '../stores/store.ts'
import { ended } from '../../test/support/run-helpers.ts'

const short = (rows: MessageRow[]) => rows.map((row) => `${row.role}: ${row.content} (${row.state})`)
const asText = (messages: ModelMessage[]) =>
  messages.filter((message) => message.role !== 'system').map((message) => `${message.role}: ${message.content}`)

/** A rig whose model gives these answers in turn, and the prompts that it got. */
async function withAnswers(
  answers: Answer[],
  body: (rig: Rig, prompts: ModelMessage[][]) => Promise<void>,
  options: Parameters<typeof openRig>[0] = {},
): Promise<void> {
  const prompts: ModelMessage[][] = []
  const rig = await openRig({
    ...options,
    answer(request, signal) {
      prompts.push(request.messages)
      const answer = answers[prompts.length - 1]
      return answer === undefined ? says('Hello.') : answer(request, signal)
    },
  })
  try {
    await body(rig, prompts)
  } finally {
    await rig.close()
  }
}

async function ask(rig: Rig, request: Parameters<Rig['start']>[0] = {}): Promise<string> {
  const { run } = await rig.start({ conversationId: 'c', ...request })
  await rig.until(run.id, ended)
  return run.id
}

async function named(rig: Rig, name: string): Promise<string> {
  return (await rig.store.findConversationByName('ada', name))?.id ?? assert.fail(`no conversation ${name}`)
}

async function specOf(rig: Rig, runId: string): Promise<RunSpec> {
  const [accepted] = await rig.events(runId)
  assert.ok(accepted?.type === 'run.accepted')
  return accepted.data.spec
}

const fails: Answer = async function* () {
  yield [{ type: 'text', text: 'Half an ' }]
  throw new Error('the provider broke')
}

describe('an answer asked for again', () => {
  it('gets the messages before the question, adds no question, and replaces the old answer', async () => {
    await withAnswers(
      [() => says('One.'), () => says('Two.'), () => says('Better.'), () => says('Three.')],
      async (rig, prompts) => {
        await ask(rig, { input: 'first' })
        await ask(rig, { input: 'second' })

        await ask(rig, { regenerate: true, input: '' })

        assert.deepEqual(asText(prompts[2] ?? []), ['user: first', 'assistant: One.', 'user: second'])
        assert.deepEqual(short(await rig.store.allMessages(await named(rig, 'c'), { limit: 100 })), [
          'user: first (active)',
          'assistant: One. (active)',
          'user: second (active)',
          'assistant: Two. (superseded)',
          'assistant: Better. (active)',
        ])
        await ask(rig, { input: 'third' })
        assert.deepEqual(asText(prompts[3] ?? []), [
          'user: first',
          'assistant: One.',
          'user: second',
          'assistant: Better.',
          'user: third',
        ])
      },
    )
  })

  it('can be asked for again and again', async () => {
    await withAnswers([() => says('One.'), () => says('Two.'), () => says('Three.')], async (rig, prompts) => {
      await ask(rig, { input: 'first' })
      await ask(rig, { regenerate: true })
      await ask(rig, { regenerate: true })

      assert.deepEqual(asText(prompts[2] ?? []), ['user: first'])
      assert.deepEqual(short((await rig.store.listMessages(await named(rig, 'c'), { limit: 100 })).rows), [
        'user: first (active)',
        'assistant: Three. (active)',
      ])
    })
  })

  it('leaves the old answer where the new one fails, also when a step of it was complete', async () => {
    const tools = [toolOf({ name: 'look', run: () => Promise.resolve({ ok: true, output: 'seen', summary: 'Seen.' }) })]
    const looks: Answer = () => calls({ callId: 'look-1', name: 'look', text: 'Let me look.' })
    await withAnswers(
      [() => says('One.'), looks, fails, () => says('Two.')],
      async (rig, prompts) => {
        await ask(rig, { input: 'first' })
        const failed = await ask(rig, { regenerate: true })

        assert.equal((await rig.store.readRun(failed))?.status, 'failed')
        assert.deepEqual(short((await rig.store.listMessages(await named(rig, 'c'), { limit: 100 })).rows), [
          'user: first (active)',
          'assistant: One. (active)',
        ])
        await ask(rig, { input: 'second' })
        assert.deepEqual(asText(prompts[3] ?? []), ['user: first', 'assistant: One.', 'user: second'])
      },
      { tools },
    )
  })

  it('with tools has its calls in the history, and the old ones no longer', async () => {
    const tools = [toolOf({ name: 'look', run: () => Promise.resolve({ ok: true, output: 'seen', summary: 'Seen.' }) })]
    const looks =
      (callId: string): Answer =>
      () =>
        calls({ callId, name: 'look' })
    await withAnswers(
      [looks('old'), () => says('One.'), looks('new'), () => says('Two.'), () => says('Three.')],
      async (rig, prompts) => {
        await ask(rig, { input: 'first' })
        await ask(rig, { regenerate: true })
        await ask(rig, { input: 'second' })

        const told = (prompts[4] ?? []).flatMap((message) => (message.role === 'tool' ? [message.callId] : []))
        assert.deepEqual(told, ['new'])
      },
      { tools },
    )
  })

  it('is refused while the first one is under way, and where there is no question', async () => {
    await withAnswers([(_request, signal) => silence(signal)], async (rig) => {
      await assert.rejects(rig.start({ conversationId: 'nobody', regenerate: true }), {
        code: 'conversation_not_found',
      })
      await rig.store.createConversation({ id: 'empty', owner: 'ada', title: null, createdAt: 1, updatedAt: 1 })
      await assert.rejects(rig.start({ conversationId: 'empty', regenerate: true }), { code: 'nothing_to_regenerate' })
      await rig.start({ conversationId: 'c' })
      await assert.rejects(rig.start({ conversationId: 'c', regenerate: true }), { code: 'conversation_busy' })
    })
  })
})

describe('a configuration', () => {
  const configs = modelConfigsOf([
    { name: 'brief', temperature: 0.2, maxTokens: 7, systemPrompt: 'Be brief.', tools: ['look'] },
    { name: 'plain' },
  ])

  it('gives the run its settings, its instructions and its tools', async () => {
    const offered: string[][] = []
    const answer: Answer = (request) => {
      offered.push(request.tools.map((tool) => tool.name))
      return says('Yes.')
    }
    const tools = ['look', 'send'].map((name) => toolOf({ name, run: () => Promise.reject(new Error('not used')) }))
    await withAnswers(
      [answer, answer],
      async (rig, prompts) => {
        rig.dependencies.configs = configs
        const brief = await ask(rig, { config: 'brief' })
        await ask(rig, { config: 'plain' })

        const spec = await specOf(rig, brief)
        assert.deepEqual([spec.configName, spec.temperature, spec.maxTokens], ['brief', 0.2, 7])
        assert.deepEqual(
          prompts.map(([system]) => system?.content),
          ['Be brief.', 'Be kind.'],
        )
        assert.deepEqual(offered, [['look'], ['look', 'send']])
      },
      { tools },
    )
  })

  it('gives way to what the request itself says', async () => {
    await withAnswers([], async (rig) => {
      rig.dependencies.configs = configs
      const id = await ask(rig, { config: 'brief', temperature: 1 })

      assert.equal((await specOf(rig, id)).temperature, 1)
    })
  })

  it('that does not exist is refused before anything is stored', async () => {
    await withAnswers([], async (rig) => {
      await assert.rejects(rig.start({ conversationId: 'c', config: 'none' }), { code: 'unknown_config' })
      assert.equal(await rig.store.findConversationByName('ada', 'c'), undefined)
    })
  })
})

describe('runs that start together', () => {
  it('share one conversation, one question and one history; a shadow stays out of it', async () => {
    await withAnswers([() => says('One.')], async (rig, prompts) => {
      await ask(rig, { input: 'first' })
      const request = {
        owner: 'ada',
        family: 'agent',
        input: 'second',
        earlier: [],
        conversationId: 'c',
        whenBusy: 'queue' as const,
        idempotency: null,
      }
      const seen: string[][] = []

      const both = await rig.service.startTogether([request, { ...request, variant: 'shadow' }], (turn) => {
        seen.push(turn.runIds)
        return {}
      })
      for (const { run } of both) await rig.until(run.id, ended)

      assert.deepEqual(seen, [both.map(({ run }) => run.id)])
      for (const prompt of prompts.slice(1, 3))
        assert.deepEqual(asText(prompt), ['user: first', 'assistant: One.', 'user: second'])
      assert.equal(prompts.length, 3)
      // Which of the two was stored first is chance.
      assert.deepEqual(short(await rig.store.allMessages(await named(rig, 'c'), { limit: 100 })).toSorted(), [
        'assistant: Hello. (active)',
        'assistant: Hello. (superseded)',
        'assistant: One. (active)',
        'user: first (active)',
        'user: second (active)',
      ])
    })
  })

  it('make one new conversation', async () => {
    await withAnswers([], async (rig) => {
      const request = {
        owner: 'ada',
        family: 'agent',
        input: 'first',
        earlier: [],
        whenBusy: 'queue' as const,
        idempotency: null,
      }

      const [a, b] = await rig.service.startTogether([request, { ...request, variant: 'shadow' }])

      assert.equal(a?.run.conversationId, b?.run.conversationId)
      assert.equal((await rig.store.listConversations('ada', { limit: 10 })).rows.length, 1)
      for (const { run } of [a!, b!]) await rig.until(run.id, ended)
    })
  })
})

describe('the first turn of a conversation', () => {
  const none = { microUsd: null, tokens: null }
  const cases = [
    { what: 'needs one commit before its model is asked', day: none, wanted: ['accept'] },
    {
      what: 'needs a second commit if a budget is checked before its step begins',
      day: { microUsd: null, tokens: 1000 },
      wanted: ['accept', 'append'],
    },
  ]
  for (const { what, day, wanted } of cases) {
    it(what, async () => {
      const budgets = { run: none, userDay: none, day }
      const storeCalls: string[] = []
      const wrapStore = (store: Store): Store => ({
        ...store,
        accept: (input) => (storeCalls.push('accept'), store.accept(input)),
        append: (write) => (storeCalls.push('append'), store.append(write)),
      })
      const before: string[] = []
      const answer: Answer = () => {
        before.push(...storeCalls)
        return says('Hello.')
      }
      await withAnswers([answer], async (rig) => void (await ask(rig)), { wrapStore, limits: { budgets } })
      assert.deepEqual(before, wanted)
    })
  }
})

describe('the engine of a run', () => {
  it('is told before the run is stored, so that it can open its connection meanwhile', async () => {
    const order: string[] = []
    const wrapStore = (store: Store): Store => ({
      ...store,
      accept: (input) => (order.push('accept'), store.accept(input)),
    })
    const prepare = ({ model }: RunSpec) => void order.push(`prepare ${model}`)
    const answer: Answer = () => (order.push('ask'), says('Hello.'))
    await withAnswers([answer], async (rig) => void (await ask(rig)), { wrapStore, prepare })
    assert.deepEqual(order, ['prepare scripted/one', 'accept', 'ask'])
  })

  it('is not told if the run has to wait for another', async () => {
    let told = 0
    await withAnswers(
      [(_, signal) => silence(signal)],
      async (rig) => {
        await rig.start({ conversationId: 'c' })
        await rig.start({ conversationId: 'c' })
        assert.equal(told, 1)
      },
      { prepare: () => void (told += 1) },
    )
  })
})
