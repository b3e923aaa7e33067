// What the model is given of a conversation that no longer fits: journaled cuts, summaries, and the
// same prompt in any process.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { crashImages } from '../../test/support/crash-images.ts'
import { quiet } from '../../test/support/run-helpers.ts'
import {
  type Answer,
  calls,
  countingIds,
  openRig,
  type Rig,
  type RigOptions,
  says,
  silence,
  toolOf,
} from '../../test/support/run-rig.ts'
import type { StepRequest } from '../engines/engine.ts'
import { AppError } from '../errors/app-error.ts'
import type { EventData, RunEvent } from '../journal/event.ts'
import type { ModelMessage, ModelPart } from '../models/model.ts'
import type { StartRequest } from './start-request.ts'

type Talk = {
  rig: Rig
  /** All requests to the model, in order. */
  requests: StepRequest[]
  say(input: string, request?: Partial<StartRequest>): Promise<RunEvent[]>
}

const isSummary = (request: StepRequest) => request.messages[0]?.content.startsWith('You write the memory') === true

/** A rig whose model answers with `answer`, or `Fine.` if it is asked for a summary. */
async function talk(t: TestContext, options: RigOptions = {}): Promise<Talk> {
  const requests: StepRequest[] = []
  const answer: Answer = options.answer ?? (() => says(words('answer', 20)))
  const rig = await openRig({
    memory: { strategy: 'sliding_window', maxTokens: 400 },
    ...options,
    answer: (request, signal) => {
      requests.push(request)
      return answer(request, signal)
    },
  })
  t.after(() => rig.close())
  return {
    rig,
    requests,
    async say(input, request = {}) {
      const { run } = await rig.start({ input, conversationId: 'talk', ...request })
      await rig.until(run.id, ({ endedAt }) => endedAt !== null)
      return await rig.events(run.id)
    },
  }
}

const words = (word: string, count: number) => Array.from({ length: count }, () => word).join(' ')
const question = (number: number) => `Question ${number}: ${words('why', 20)}`

/** Says one question after the other until `done`, and returns the events of all runs. The last run is that of the last question. */
async function sayUntil(
  say: Talk['say'],
  done: (events: RunEvent[]) => boolean,
  first = 1,
): Promise<{ all: RunEvent[]; events: RunEvent[]; next: number }> {
  const all: RunEvent[] = []
  for (let turn = first; ; turn += 1) {
    const events = await say(question(turn))
    all.push(...events)
    if (done(events)) return { all, events, next: turn + 1 }
  }
}

const hasCut = (events: RunEvent[]) => dataOf(events, 'context.cut').length > 0

function dataOf<T extends RunEvent['type']>(events: readonly RunEvent[], type: T): EventData<T>[] {
  return events.flatMap((event) => (event.type === type ? [event.data as EventData<T>] : []))
}

function given(request: StepRequest | undefined): ModelMessage[] {
  return (request?.messages ?? []).filter(({ role }) => role !== 'system')
}

const numbersIn = (messages: readonly ModelMessage[]) =>
  messages.flatMap(({ content }) => /^Question (\d+)/.exec(content)?.[1] ?? []).map(Number)

describe('a history that no longer fits', () => {
  it('is cut rarely, at the message of a user, and each cut is journaled before the request', async (t) => {
    const { say, requests } = await talk(t)
    const cuts: number[] = []
    for (let turn = 1; turn <= 30; turn += 1) {
      const events = await say(question(turn))
      const cut = dataOf(events, 'context.cut')
      assert.ok(cut.length <= 1)
      if (cut.length === 1) cuts.push(turn)
      const at = (type: RunEvent['type']) => events.findIndex((event) => event.type === type)
      if (cut.length === 1) assert.ok(at('context.cut') < at('step.started'))
      const [first, before] = [given(requests.at(-1)), given(requests.at(-2))]
      assert.equal(first[0]?.role, 'user')
      // Without a cut, the prompt begins with the whole prompt before it.
      if (cut.length === 0) assert.deepEqual(first.slice(0, before.length), before)
      else assert.notDeepEqual(first[0], before[0])
    }
    assert.ok(cuts.length >= 4 && cuts.length <= 8, `cuts at ${cuts.join(' ')}`)
  })

  it('loses nothing silently: each message is given or named by exactly one cut', async (t) => {
    const { say, requests, rig } = await talk(t)
    const all: RunEvent[] = []
    for (let turn = 1; turn <= 20; turn += 1) all.push(...(await say(question(turn))))
    const accepted = dataOf(all, 'run.accepted').at(-1)
    const { rows } = await rig.store.listMessages(String(accepted?.conversationId), { limit: 100 })
    const ids = rows.map(({ id }) => id)
    const cuts = dataOf(all, 'context.cut')

    let next = 0
    for (const cut of cuts) {
      assert.equal(cut.fromMessageId, ids[next])
      next += cut.messages
      assert.equal(cut.throughMessageId, ids[next - 1])
      assert.equal(cut.keptFromMessageId, ids[next])
    }
    const shown = given(requests.at(-1))
    assert.deepEqual(
      shown.map(({ content }) => content),
      rows.slice(next, -1).map(({ content }) => content),
    )
    assert.equal(rows.length, 40, 'the rows that remember the cuts are hidden')
  })

  it('is the same in another process, also for a question that is answered again', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'polylog-memory-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'polylog.db')
    const first = await talk(t, { file })
    await sayUntil(first.say, hasCut)
    const prompt = given(first.requests.at(-1))
    await first.rig.close()
    const second = await talk(t, { file, ids: countingIds('second') })

    const again = await second.say('', { regenerate: true })
    const next = await second.say('And now?')

    assert.deepEqual(given(second.requests[0]), prompt)
    assert.deepEqual(given(second.requests[1]).slice(0, prompt.length), prompt)
    assert.deepEqual([...dataOf(again, 'context.cut'), ...dataOf(next, 'context.cut')], [])
  })

  it('is cut by the window of the model if the agent names no limit', async (t) => {
    const { say, requests } = await talk(t, {
      memory: { strategy: 'sliding_window' },
      limits: { contextTokens: 1000 },
    })
    let cuts = 0
    for (let turn = 1; turn <= 30; turn += 1) cuts += dataOf(await say(question(turn)), 'context.cut').length

    assert.ok(cuts >= 2)
    for (const request of requests) {
      const chars = request.messages.reduce((sum, { content }) => sum + content.length, 0)
      // The window, without the quarter for the answer and the margin of a tenth.
      assert.ok(chars / 4 <= 650, `${chars} characters`)
    }
  })

  it('that is longer than what is read at once is cut too, with the number of all messages', async (t) => {
    const { say, rig } = await talk(t, { memory: { strategy: 'sliding_window', maxTokens: 200 } })
    const earlier = Array.from({ length: 700 }, (_, at) => [
      { role: 'user' as const, content: `Question ${at}: ${words('why', 200)}` },
      { role: 'assistant' as const, content: 'Because.' },
    ]).flat()

    const events = await say('And now?', { earlier })

    const [cut] = dataOf(events, 'context.cut')
    const conversationId = String(dataOf(events, 'run.accepted')[0]?.conversationId)
    const oldest = (await rig.store.allMessages(conversationId, { limit: 5000 }))[0]
    assert.equal(cut?.messages, 1400)
    assert.equal(cut?.fromMessageId, oldest?.id)
    const next = await say('And then?')
    assert.deepEqual(dataOf(next, 'context.cut'), [])
  })

  it('is given with a note that something is missing, as long as no summary stands for it', async (t) => {
    const { say, requests } = await talk(t)
    const note = ({ messages }: StepRequest) =>
      messages.some(({ content }) => content.includes('not shown to you any more'))

    const { events } = await sayUntil(say, hasCut)
    await say('And now?')

    const before = requests.filter(({ runId }) => runId !== requests.at(-1)?.runId && runId !== requests.at(-2)?.runId)
    assert.equal(hasCut(events), true)
    assert.deepEqual([before.some(note), ...requests.slice(-2).map(note)], [false, true, true])
  })

  it('that begins with the answer of an assistant is cut to the first question', async (t) => {
    const { say, requests } = await talk(t)

    const events = await say('Hi.', { earlier: [{ role: 'assistant', content: 'Welcome!' }] })

    assert.deepEqual(
      dataOf(events, 'context.cut').map(({ messages }) => messages),
      [1],
    )
    assert.deepEqual(
      given(requests[0]).map(({ content }) => content),
      ['Hi.'],
    )
  })
})

describe('the steps of a run that no longer fit', () => {
  it('are cut, oldest first, never the newest, and the cut is journaled', async (t) => {
    let step = 0
    const look = toolOf({
      name: 'look',
      run: () => Promise.resolve({ ok: true, output: words('seen', 50), summary: 'seen' }),
    })
    const { say, requests } = await talk(t, {
      tools: [look],
      answer: () => (++step % 9 === 0 ? says('Done.') : calls({ callId: `c${step}`, name: 'look' })),
    })

    const events = await say('Look around.')

    const cuts = dataOf(events, 'context.cut')
    assert.ok(cuts.length >= 2 && cuts.every(({ strategy }) => strategy === 'run_steps'))
    for (const [index, { messages }] of requests.entries()) {
      assert.equal(messages.find(({ role }) => role === 'user')?.content, 'Look around.')
      const last = messages.at(-1)
      if (index > 0) assert.equal(last?.role === 'tool' && last.callId, `c${index}`)
    }
    // The next run reads the turn from its rows: the cut was only for the run itself.
    const next = await say('And now?')
    assert.equal(dataOf(next, 'context.cut')[0]?.strategy, 'sliding_window')
  })

  it('are shortened if the results of one step alone do not fit the window, and the model is told', async (t) => {
    let step = 0
    const look = toolOf({
      name: 'look',
      outputCharsMax: 100_000,
      run: (input) =>
        Promise.resolve({
          ok: true,
          output: words('seen', (input as { count: number }).count),
          summary: 'seen',
        }),
    })
    const { say, requests } = await talk(t, {
      tools: [look],
      memory: { strategy: 'sliding_window' },
      limits: { contextTokens: 4000 },
      answer: () =>
        ++step === 1
          ? calls(
              { callId: 'small', name: 'look', input: { count: 10 } },
              { callId: 'large', name: 'look', input: { count: 10_000 } },
            )
          : says('Done.'),
    })

    await say('Look around.')

    const results = new Map(
      requests[1]?.messages.flatMap((one) => (one.role === 'tool' ? [[one.callId, one.content] as const] : [])),
    )
    assert.equal(results.get('small'), words('seen', 10))
    assert.match(
      results.get('large') ?? '',
      /\[cut to fit: \d+ of 49999 characters; to read on, use read_tool_output with .*\]$/,
    )
    const chars = requests[1]?.messages.reduce((sum, { content }) => sum + content.length, 0) ?? 0
    assert.ok(chars / 4 < 2600 && chars / 4 > 2000, `${chars} characters`)
  })
})

describe('a prompt that the provider refuses as too long', () => {
  const tooLong = () => new AppError('model_context_exceeded', 'Too long.')

  async function* refuses(): AsyncGenerator<ModelPart[]> {
    yield await Promise.reject(tooLong())
  }

  it('is sent once more with at most half of the messages, and the cut is journaled', async (t) => {
    let refused = false
    const { say, requests } = await talk(t, {
      memory: { strategy: 'sliding_window', maxTokens: 100_000 },
      answer: ({ messages }) => {
        if (messages.length < 12) return says(words('answer', 20))
        refused = true
        return refuses()
      },
    })
    const { events } = await sayUntil(say, () => refused)

    assert.equal(dataOf(events, 'run.ended')[0]?.status, 'succeeded')
    assert.equal(dataOf(events, 'context.cut').length, 1)
    const [whole, shorter] = requests.slice(-2).map(given)
    assert.ok((shorter?.length ?? 0) <= (whole?.length ?? 0) / 2)
    assert.deepEqual(whole?.slice(-(shorter?.length ?? 0)), shorter)
  })

  it('fails the run if nothing can be left out, or if the shorter one is refused as well', async (t) => {
    const { say, requests } = await talk(t, {
      memory: { strategy: 'sliding_window', maxTokens: 100_000 },
      answer: ({ messages }) => (messages.at(-1)?.content === 'ok' ? says('Fine.') : refuses()),
    })

    const alone = await say('Too long.')
    await say('ok')
    const asked = requests.length
    const twice = await say('Still too long.')

    assert.equal(dataOf(alone, 'run.ended')[0]?.error?.code, 'model_context_exceeded')
    assert.equal(dataOf(twice, 'run.ended')[0]?.error?.code, 'model_context_exceeded')
    assert.equal(requests.length - asked, 2)
  })
})

describe('the strategy summary', () => {
  const memory = { strategy: 'summary', maxTokens: 600 } as const
  let summaries = 0
  const answering: Answer = (request) => {
    if (!isSummary(request)) return says(words('answer', 20))
    summaries += 1
    const number = summaries
    return (async function* () {
      yield [{ type: 'text', text: `Memory ${number}.` }]
      yield [{ type: 'finish', reason: 'stop', usage: { inputTokens: 100, outputTokens: 5 } }]
    })()
  }

  it('replaces older messages by a text that a model wrote, which includes the one before', async (t) => {
    summaries = 0
    const { say, requests, rig } = await talk(t, { memory, answer: answering })
    const { all } = await sayUntil(say, () => summaries === 3)

    const written = dataOf(all, 'context.summarised')
    assert.deepEqual(
      written.map(({ text }) => text),
      ['Memory 1.', 'Memory 2.', 'Memory 3.'],
    )
    assert.deepEqual(dataOf(all, 'context.cut'), [])
    const asked = requests.filter(isSummary).map((request) => request.messages[1]?.content ?? '')
    assert.match(asked[0] ?? '', /^User: Question 1/)
    assert.match(asked[1] ?? '', /^Summary of the messages before these:\nMemory 1\.\n\nUser: Question /)
    const [first, second] = given(requests.at(-1))
    assert.match(first?.content ?? '', /^\(Summary of .*\)\nMemory 3\.$/)
    assert.doesNotMatch(JSON.stringify(requests.at(-1)?.messages), /not shown to you any more/)
    assert.match(second?.content ?? '', /^Question /)

    const conversationId = String(dataOf(all, 'run.accepted').at(-1)?.conversationId)
    const { rows } = await rig.store.listMessages(conversationId, { limit: 200 })
    let next = 0
    for (const { fromMessageId, throughMessageId, keptFromMessageId, messages } of written) {
      assert.equal(fromMessageId, rows[next]?.id)
      next += messages
      assert.equal(throughMessageId, rows[next - 1]?.id)
      assert.equal(keptFromMessageId, rows[next]?.id)
    }
    assert.ok(rows.every(({ role }) => role !== 'system'))
  })

  it('keeps the prompt the same between two summaries, also in another process', async (t) => {
    summaries = 0
    const folder = mkdtempSync(join(tmpdir(), 'polylog-memory-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'polylog.db')
    const first = await talk(t, { file, memory, answer: answering })
    await sayUntil(first.say, () => summaries === 1)
    const prompt = given(first.requests.at(-1))
    await first.rig.close()
    const second = await talk(t, { file, memory, answer: answering, ids: countingIds('second') })

    await second.say('And now?')

    assert.equal(summaries, 1)
    assert.deepEqual(given(second.requests[0]).slice(0, prompt.length), prompt)
  })

  it('counts what the summary used', async (t) => {
    summaries = 0
    const { say, rig } = await talk(t, { memory, answer: answering })
    const { events } = await sayUntil(say, () => summaries === 1)

    const run = await rig.store.readRun(await lastRun(rig))
    assert.deepEqual([run?.usage?.inputTokens, run?.usage?.outputTokens], [100, 5])
    assert.equal(dataOf(events, 'context.summarised')[0]?.model, 'scripted/one')
    const sum = await rig.store.sumUsage({ owner: 'ada', from: '0000-01-01', to: '9999-12-31' })
    assert.equal(sum.inputTokens, 100)
  })

  it('counts what a summary used that cannot be taken, and cuts', async (t) => {
    async function* filtered(): AsyncGenerator<ModelPart[]> {
      yield [{ type: 'text', text: 'Half a memory' }]
      yield [{ type: 'finish', reason: 'content-filter', usage: { inputTokens: 80, outputTokens: 2 } }]
    }
    summaries = 0
    const { say, rig } = await talk(t, {
      memory,
      answer: (request, signal) => (isSummary(request) ? filtered() : answering(request, signal)),
    })
    const { events } = await sayUntil(say, hasCut)

    assert.equal(dataOf(events, 'run.ended')[0]?.status, 'succeeded')
    assert.deepEqual(dataOf(events, 'answer.discarded'), [
      { step: 1, model: 'scripted/one', usage: { inputTokens: 80, outputTokens: 2 } },
    ])
    assert.equal((await rig.store.readRun(await lastRun(rig)))?.usage?.inputTokens, 80)
  })

  it('falls back to a cut if the summary fails, keeps the summary before, and says so', async (t) => {
    summaries = 0
    let broken = false
    const { say, requests } = await talk(t, {
      memory,
      answer: (request, signal) => (broken && isSummary(request) ? says('') : answering(request, signal)),
    })
    const { next } = await sayUntil(say, () => summaries === 1)
    broken = true
    const { events } = await sayUntil(say, hasCut, next)
    await say('And now?')

    assert.equal(dataOf(events, 'run.ended')[0]?.status, 'succeeded')
    assert.deepEqual(
      dataOf(events, 'diagnostic').map(({ code }) => code),
      ['context_summary_failed'],
    )
    assert.match(given(requests.at(-1))[0]?.content ?? '', /Memory 1\.$/)
  })

  it('names what does not fit into the request for a summary in a cut', async (t) => {
    summaries = 0
    const { say, requests } = await talk(t, { memory, limits: { contextTokens: 2000 }, answer: answering })
    const earlier = Array.from({ length: 120 }, (_, at) => ({ role: 'user' as const, content: question(at) }))

    const events = await say('And now?', { earlier })

    const [cut] = dataOf(events, 'context.cut')
    const [summary] = dataOf(events, 'context.summarised')
    assert.equal(cut?.keptFromMessageId, summary?.fromMessageId)
    const asked = requests.find(isSummary)?.messages[1]?.content ?? ''
    const shown = numbersIn(given(requests.at(-1)))
    assert.equal((cut?.messages ?? 0) + (summary?.messages ?? 0) + shown.length, 120)
    assert.equal([...asked.matchAll(/^User: Question /gm)].length, summary?.messages)
  })

  it('is stored exactly once, wherever the process is killed', async (t) => {
    summaries = 0
    const images = crashImages(t)
    // In two commits, so that there are more places at which the process can be killed.
    const inPieces: Answer = async function* (request, signal) {
      if (isSummary(request)) yield* answering(request, signal)
      else {
        yield [{ type: 'text', text: `${words('answer', 10)} ` }]
        await quiet()
        yield* says(words('answer', 10))
      }
    }
    const { say, rig } = await talk(t, { ...images.options, memory, answer: inPieces })
    let before = 0
    const { events } = await sayUntil(say, () => {
      if (summaries === 1) return true
      before = images.paths.length
      return false
    })
    const runId = (await rig.store.listRuns({ owner: 'ada', limit: 1 })).rows[0]?.id ?? ''
    assert.equal(dataOf(events, 'context.summarised').length, 1)
    const of = images.paths.slice(before)
    assert.ok(of.length >= 4, `${of.length} commits`)

    for (const path of of) {
      summaries = 0
      const again = await images.reopen(path, { clock: rig.clock, memory, answer: answering })
      // The last commit of the run before may be recorded only after its end was seen.
      if ((await again.store.readRun(runId)) === undefined) continue
      const stored = dataOf(await again.events(runId), 'context.summarised').length
      again.scheduler.start()
      await again.until(runId, ({ endedAt }) => endedAt !== null)
      const after = await again.events(runId)
      assert.equal(dataOf(after, 'context.summarised').length, 1)
      assert.equal(dataOf(after, 'run.ended')[0]?.status, 'succeeded')
      assert.equal(summaries, stored === 1 ? 0 : 1)
      const { conversationId } = (await again.store.readRun(runId)) ?? {}
      const rows = await again.store.allMessages(conversationId ?? '', { limit: 100, runId })
      assert.equal(rows.filter(({ role }) => role === 'system').length, 1)
      await again.close()
    }
  })

  it('is asked again after a stop, and never once it is stored', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'polylog-memory-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'polylog.db')
    summaries = 0
    const hanging = new Set<string>()
    const first = await talk(t, {
      file,
      memory,
      answer: (request, signal) => {
        if (!isSummary(request)) return answering(request, signal)
        hanging.add(request.runId)
        return silence(signal)
      },
    })
    let runId = ''
    for (let turn = 1; hanging.size === 0; turn += 1) {
      const { run } = await first.rig.start({ input: question(turn), conversationId: 'talk' })
      await first.rig.until(run.id, ({ endedAt }) => endedAt !== null || hanging.has(run.id))
      runId = run.id
    }
    await first.rig.close()
    const second = await talk(t, { file, memory, answer: answering, ids: countingIds('second') })
    second.rig.scheduler.start()

    await second.rig.until(runId, ({ endedAt }) => endedAt !== null)
    await second.say('And now?')

    const events = await second.rig.events(runId)
    assert.equal(dataOf(events, 'context.summarised').length, 1)
    assert.equal(dataOf(events, 'run.ended')[0]?.status, 'succeeded')
    assert.equal(second.requests.filter(isSummary).length, 1)
  })

  it('stops the run if the summary has used up its budget', async (t) => {
    summaries = 0
    const none = { microUsd: null, tokens: null }
    const budgets = { run: { microUsd: null, tokens: 50 }, userDay: none, day: none }
    const { say, requests } = await talk(t, { memory, answer: answering, limits: { budgets } })
    const { events } = await sayUntil(say, () => summaries === 1)

    assert.equal(dataOf(events, 'run.ended')[0]?.error?.code, 'budget_exceeded')
    assert.equal(requests.filter(({ runId }) => runId === requests.at(-1)?.runId).length, 1)
    // The summary is paid for and stays.
    await say('And now?')
    assert.match(given(requests.at(-1))[0]?.content ?? '', /Memory 1\.$/)
  })

  it('of a second answer is used only if that answer is the one that stays', async (t) => {
    summaries = 0
    const { say, rig } = await talk(t, { memory, answer: answering })
    const earlier = Array.from({ length: 40 }, (_, at) => ({ role: 'user' as const, content: question(at) }))
    const shadow = await say('Hi.', { earlier, variant: 'shadow' })

    const next = await say('And now?')
    const written = [shadow, next].map((events) => dataOf(events, 'context.summarised')[0])

    assert.deepEqual(
      written.map((one) => one?.text),
      ['Memory 1.', 'Memory 2.'],
    )
    assert.equal(written[0]?.fromMessageId, written[1]?.fromMessageId, 'the next run did not use that of the shadow')
    assert.equal((await rig.store.readMessage(written[0]?.summaryMessageId ?? ''))?.state, 'superseded')
  })

  async function lastRun(rig: Rig): Promise<string> {
    return (await rig.store.listRuns({ owner: 'ada', limit: 1 })).rows[0]?.id ?? ''
  }
})
