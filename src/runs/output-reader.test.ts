// A tool output that is too long for the prompt: the model is told so, and can read on in it, but
// only in its own conversation.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { calls, openRig, type Rig, type RigOptions, says, toolOf } from '../../test/support/run-rig.ts'
import { toolContext } from '../../test/support/tool-context.ts'
import type { StepRequest } from '../engines/engine.ts'
import type { EventData, RunEvent } from '../journal/event.ts'
import { createReadToolOutput } from '../tools/read-tool-output.ts'
import type { ToolOutputs } from '../tools/tool.ts'
import { toolOutputsOf } from './output-reader.ts'
import type { StartRequest } from './start-request.ts'

const book = Array.from({ length: 5000 }, (_, at) => `line ${at}`).join('\n')
const noteOf = (text: string) => /outputId "([^"]+)" and offset (\d+)\]$/.exec(text) ?? []

type Library = {
  rig: Rig
  requests: StepRequest[]
  ask(input: string, request?: Partial<StartRequest>): Promise<{ runId: string; events: RunEvent[] }>
}

/** A rig whose model reads the book in its first step, reads on in the next one, and then answers. */
async function library(t: TestContext, options: RigOptions = {}): Promise<Library> {
  const requests: StepRequest[] = []
  const outputs: ToolOutputs = { read: (id, reader) => toolOutputsOf(rig.store).read(id, reader) }
  const rig: Rig = await openRig({
    memory: { strategy: 'sliding_window' },
    tools: [
      toolOf({ name: 'read_book', run: () => Promise.resolve({ ok: true, output: book, summary: 'read' }) }),
      createReadToolOutput(outputs),
    ],
    ...options,
    answer: (request, signal) => {
      requests.push(request)
      if (options.answer !== undefined) return options.answer(request, signal)
      const last = request.messages.at(-1)
      if (last?.role === 'user')
        return last.content === 'Read.' ? calls({ callId: 'c1', name: 'read_book' }) : says('Hm.')
      const [, outputId, offset] = noteOf(last?.content ?? '')
      if (outputId === undefined) return says('Read.')
      return calls({ callId: 'c2', name: 'read_tool_output', input: { outputId, offset: Number(offset), length: 50 } })
    },
  })
  t.after(() => rig.close())
  return {
    rig,
    requests,
    async ask(input, request = {}) {
      const { run } = await rig.start({ input, conversationId: 'talk', ...request })
      await rig.until(run.id, ({ endedAt }) => endedAt !== null)
      return { runId: run.id, events: await rig.events(run.id) }
    },
  }
}

const offered = (request: StepRequest | undefined) => request?.tools.map(({ name }) => name) ?? []

function doneOf(events: readonly RunEvent[], callId: string): EventData<'tool.done'> | undefined {
  const found = events.find((event) => event.type === 'tool.done' && event.data.callId === callId)
  return found?.type === 'tool.done' ? found.data : undefined
}

describe('a tool output that was cut', () => {
  it('has a note that leads to the rest, and the tool for it is offered as long as such an output is in the prompt', async (t) => {
    const { ask, requests } = await library(t)

    const { events } = await ask('Read.')
    await ask('And now?')

    assert.deepEqual(requests.map(offered), [
      ['read_book'],
      ['read_book', 'read_tool_output'],
      ['read_book', 'read_tool_output'],
      ['read_book', 'read_tool_output'],
    ])
    assert.equal(
      doneOf(events, 'c2')?.output,
      `${book.slice(1000, 1050)}\n[Characters 1000 to 1050 of ${book.length}.]`,
    )
  })

  it('can be read on in later turns, and by nobody else', async (t) => {
    const { ask, rig } = await library(t)
    const { runId, events } = await ask('Read.')
    const outputId = doneOf(events, 'c1')?.outputRef ?? ''
    const messageId = doneOf(events, 'c1')?.messageId ?? ''
    const { conversationId } = (await rig.store.readRun(runId)) ?? { conversationId: null }
    const outputs = toolOutputsOf(rig.store)
    const own = { owner: 'ada', runId: 'a-later-run', conversationId }

    for (const id of [outputId, messageId]) {
      assert.equal(await outputs.read(id, own), book)
      assert.equal(await outputs.read(id, { ...own, conversationId: 'another' }), undefined)
      assert.equal(await outputs.read(id, { ...own, conversationId: null }), undefined)
    }
    assert.equal(await outputs.read(outputId, { ...own, owner: 'eve' }), undefined)
    assert.equal(await outputs.read(outputId, { owner: 'ada', runId, conversationId: null }), book)
    // The results of a run without a conversation are found in its journal.
    assert.equal(await outputs.read(messageId, { owner: 'ada', runId, conversationId: null }), book)
  })

  it('of a provider’s state is not an output', async (t) => {
    const { rig, ask } = await library(t)
    const { runId } = await ask('Hello.')
    await rig.store.putBlob('provider_1', runId, '"secret"')

    assert.equal(
      await toolOutputsOf(rig.store).read('provider_1', { owner: 'ada', runId, conversationId: null }),
      undefined,
    )
  })

  it('is not read on by a run that may use no tools', async (t) => {
    const { ask, requests, rig } = await library(t)
    await ask('Read.')
    const { catalogue } = rig.dependencies
    const { card, ...definition } = catalogue.lastWorking('chat_conversation')
    catalogue.lastWorking = () => ({ ...definition, card: { ...card, tools: { mode: 'none', allowedTools: [] } } })

    await ask('And now?')

    assert.deepEqual(offered(requests.at(-1)), [])
  })

  it('to fit the window of the model leads to the rest in the same way', async (t) => {
    const { ask, requests } = await library(t, {
      limits: { contextTokens: 1000 },
      tools: [
        toolOf({
          name: 'read_book',
          outputCharsMax: 200_000,
          run: () => Promise.resolve({ ok: true, output: book, summary: 'read' }),
        }),
        toolOf({ name: 'read_tool_output', audience: 'large_outputs', run: () => Promise.reject(new Error('unused')) }),
      ],
      answer: ({ messages }) =>
        messages.at(-1)?.role === 'user' ? calls({ callId: 'c1', name: 'read_book' }) : says('Read.'),
    })

    const { events } = await ask('Read.')

    const shown = requests.at(-1)?.messages.at(-1)?.content ?? ''
    const [, outputId, offset] = noteOf(shown)
    assert.equal(outputId, doneOf(events, 'c1')?.messageId)
    assert.equal(shown.slice(0, Number(offset)), book.slice(0, Number(offset)))
    assert.ok(offered(requests.at(-1)).includes('read_tool_output'))
  })
})

describe('read_tool_output', () => {
  const tool = createReadToolOutput({
    read: (id) => Promise.resolve(id === 'o' ? `${'a'.repeat(9999)}😀z` : undefined),
  })
  const output = async (input: object) => (await tool.run(input as never, toolContext())).output

  it('reads a bounded part, also past the end, and never half of a character', async () => {
    assert.equal(await output({ outputId: 'o' }), `${'a'.repeat(8000)}\n[Characters 0 to 8000 of 10002.]`)
    assert.equal(await output({ outputId: 'o', offset: 10_001 }), 'z\n[Characters 10001 to 10002 of 10002.]')
    assert.equal(await output({ outputId: 'o', offset: 99_999 }), '\n[Characters 10002 to 10002 of 10002.]')
    assert.equal(
      await output({ outputId: 'o', offset: 9999, length: 1 }),
      '\ufffd\n[Characters 9999 to 10000 of 10002.]',
    )
  })

  it('says what to do if the output is gone', async () => {
    const result = await tool.run({ outputId: 'x' }, toolContext())

    assert.equal(result.ok, false)
    assert.match(result.summary, /Call its tool again\.$/)
  })
})
