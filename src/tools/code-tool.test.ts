// A tool in code: the definition of its author becomes a tool of the server, and a fault in its
// functions affects only its own call.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { manualClock } from '../../test/support/manual-clock.ts'
import { toolContext } from '../../test/support/tool-context.ts'
import type { EventData, JsonValue } from '../journal/event.ts'
import type { CallState } from '../journal/run-state.ts'
import { currentUserCode } from '../kit/user-code.ts'
import { executeCall } from '../runs/tool-execution.ts'
import { checkCodeTools } from './check-code-tools.ts'
import { defineTool, ToolError, type ToolDefinition } from './define-tool.ts'
import { createToolRegistry, type ToolEntry } from './tool-registry.ts'
import type { Tool, ToolContext } from './tool.ts'

function check(...tools: unknown[]): { entries: ToolEntry[]; messages: string[]; places: (string | null)[] } {
  const builtIn: ToolEntry = {
    source: 'built-in',
    missing: { name: 'current_time', description: '', effect: 'read', reason: '' },
  }
  const { entries, problems } = checkCodeTools(tools, [builtIn], { timeoutMs: 5000, log: { warn() {} } })
  return { entries, messages: problems.map(({ message }) => message), places: problems.map(({ place }) => place) }
}

function toolOf(definition: ToolDefinition): Tool {
  const { entries, messages } = check(definition)
  assert.deepEqual(messages, [])
  const tool = createToolRegistry(entries).get(definition.name)
  assert.ok(tool !== undefined)
  return tool
}

/** The outcome of a call as the journal gets it. */
async function outcomeOf(definition: ToolDefinition, input: JsonValue = {}): Promise<EventData<'tool.done'>> {
  const call = { callId: 'call-1', name: definition.name } as CallState
  return await executeCall(toolOf(definition), call, input, {
    clock: manualClock(),
    ids: () => 'id-1',
    owner: 'ada',
    runId: 'run-1',
    conversationId: '~01J~trip',
    idempotencyKey: 'key-1',
    signal: new AbortController().signal,
    progress: () => {},
    putBlob: () => Promise.resolve(),
    putFile: () => assert.fail('no files here'),
  })
}

const anything = { type: 'object' } as const
function toolThat(execute: () => unknown, more: Partial<ToolDefinition> = {}): ToolDefinition {
  return defineTool({ name: 'work', description: 'Works.', input: anything, effect: 'read', execute, ...more })
}

describe('a tool in code', () => {
  it('gets its arguments as the schema gives them, and everything about its call', async () => {
    const seen: unknown[] = []
    const tool = defineTool({
      name: 'refund_order',
      description: 'Refunds an order in full.',
      input: z.object({ orderId: z.string().trim(), count: z.number().default(1) }),
      effect: 'unsafe',
      describe: ({ orderId }) => `Refund order ${orderId}`,
      execute: ({ orderId, count }, { signal, progress, attach, ...call }) => {
        seen.push(orderId.toUpperCase(), count + 1, signal instanceof AbortSignal, typeof progress, typeof attach, call)
        return { refunded: orderId }
      },
    })

    const done = await outcomeOf(tool, { orderId: ' a1 ' })

    assert.deepEqual([done.outcome, done.output, done.summary], ['succeeded', { refunded: 'a1' }, 'refunded: “a1”'])
    const call = { idempotencyKey: 'key-1', userId: 'ada', conversationId: 'trip', runId: 'run-1' }
    assert.deepEqual(seen, ['A1', 2, true, 'function', 'function', call])
    assert.equal(toolOf(tool).describe({ orderId: 'a1' }), 'Refund order a1')
    assert.equal(toolOf(tool).source, 'config')
  })

  it('can attach files to its result, and what is not bytes fails its own call', async () => {
    const bytes = Buffer.from('abc')
    const tool = toolOf(
      defineTool({
        name: 'draw',
        description: 'Draws.',
        input: anything,
        effect: 'read',
        execute(_input, call) {
          call.attach({ bytes, name: 'a.txt' })
          bytes.fill(0)
          return 'drawn'
        },
      }),
    )
    const context = { signal: new AbortController().signal, conversationId: null } as ToolContext
    const result = await tool.run({}, context)

    assert.deepEqual(result.files, [{ bytes: new Uint8Array([97, 98, 99]), name: 'a.txt', mediaType: undefined }])
    const wrong = await outcomeOf(
      defineTool({
        name: 'draw',
        description: 'Draws.',
        input: anything,
        effect: 'read',
        execute: (_input, call) => call.attach({ bytes: 'text' as never }),
      }),
    )
    assert.deepEqual(
      [wrong.outcome, wrong.error?.message],
      ['threw', 'draw failed: attach needs bytes: a Buffer or another Uint8Array.'],
    )
  })

  it('shows the model the schema of its arguments, which may also be plain JSON Schema', () => {
    const zod = toolThat(() => 1, { input: z.object({ city: z.string().describe('A city.') }) })
    const plain = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } as const

    assert.deepEqual(toolOf(zod).inputSchema, {
      type: 'object',
      properties: { city: { type: 'string', description: 'A city.' } },
      required: ['city'],
    })
    assert.deepEqual(toolOf(toolThat(() => 1, { input: plain })).inputSchema, plain)
  })

  it('is refused arguments that do not fit before a person is asked, also by the rules that JSON Schema lacks', () => {
    const input = z.object({ from: z.number(), to: z.number() }).refine(({ from, to }) => from < to, 'from is after to')
    const { entries } = check(toolThat(() => 1, { input }))
    const registry = createToolRegistry(entries)
    const tool = registry.available()[0] as Tool

    assert.match(registry.check(tool, { from: 'x', to: 1 }) ?? '', /from/)
    assert.match(registry.check(tool, { from: 2, to: 1 }) ?? '', /arguments: from is after to/)
    assert.equal(registry.check(tool, { from: 1, to: 2 }), null)
  })

  it('asks a person unless it only reads, or says otherwise', () => {
    const confirmOf = (more: Partial<ToolDefinition>) => {
      const { confirm } = toolOf(toolThat(() => 1, more))
      return typeof confirm === 'function' ? confirm({ n: 1 }) : confirm
    }

    assert.equal(confirmOf({ effect: 'read' }), 'never')
    assert.equal(confirmOf({ effect: 'idempotent' }), 'always')
    assert.equal(confirmOf({ effect: 'unsafe', confirm: 'never' }), 'never')
    assert.equal(confirmOf({ confirm: ({ n }) => Number(n) > 5 }), 'never')
    assert.equal(confirmOf({ confirm: ({ n }) => Number(n) < 5 }), 'always')
  })

  it('asks a person if its rule throws, is asynchronous or gives no clear answer', () => {
    const broken = (): boolean => {
      throw new Error('no')
    }
    const rules = [broken, async () => await Promise.reject(new Error('late')), () => undefined, () => 0]
    for (const rule of rules) {
      const { confirm } = toolOf(toolThat(() => 1, { confirm: rule as () => boolean }))
      assert.equal(typeof confirm === 'function' && confirm({}), 'always')
    }
  })

  it('is described by its name and arguments if its own sentence cannot be had', () => {
    const sentences = [
      undefined,
      () => '  ',
      () => 5,
      async () => await Promise.reject(new Error('late')),
    ] as ToolDefinition['describe'][]
    for (const sentence of sentences) {
      const tool = toolOf({ ...toolThat(() => 1), ...(sentence === undefined ? {} : { describe: sentence }) })
      assert.equal(tool.describe({ n: 1 }), 'Use work with n: 1')
    }
    const strict = toolThat(() => 1, { input: z.object({ n: z.string() }), describe: () => 'never asked' })
    assert.equal(toolOf(strict).describe({ n: 1 }), 'Use work with n: 1')
  })
})

describe('whatever a tool in code does, its call has an outcome', () => {
  it('throws, or rejects with anything', async () => {
    const odd = Object.create(null) as object
    const results = [
      await outcomeOf(
        toolThat(() => {
          throw new Error('no such shop')
        }),
      ),
      await outcomeOf(toolThat(() => Promise.reject(null))),
      await outcomeOf(toolThat(() => Promise.reject(odd))),
    ]

    assert.deepEqual(
      results.map(({ outcome, error }) => [outcome, error?.code, error?.message]),
      [
        ['threw', 'tool_failed', 'work failed: no such shop'],
        ['threw', 'tool_failed', 'work failed: null'],
        ['threw', 'tool_failed', 'work failed: an error that cannot be shown'],
      ],
    )
  })

  it('says no with a ToolError, or that the effect may have happened', async () => {
    const unsafe = { effect: 'unsafe', confirm: 'never' } as const
    const no = await outcomeOf(toolThat(() => Promise.reject(new ToolError('There is no order 7.')), unsafe))
    const lost = new ToolError('The bank did not answer.', { outcome: 'unknown' })
    const unknown = await outcomeOf(toolThat(() => Promise.reject(lost), unsafe))

    assert.deepEqual(
      [no.outcome, no.output, no.summary],
      ['failed', { error: 'There is no order 7.' }, 'There is no order 7.'],
    )
    assert.deepEqual([unknown.outcome, unknown.error?.code], ['unknown', 'tool_outcome_unknown'])
  })

  it('throws in a callback that it left behind, which the process can trace back to the call', async () => {
    const done = outcomeOf(
      toolThat(
        () =>
          new Promise(() => {
            const code = currentUserCode()
            assert.equal(code?.name, 'the tool work')
            code?.fail(new Error('in a timer'))
          }),
      ),
    )

    assert.equal((await done).error?.message, 'work failed: in a timer')
  })

  it('returns nothing, megabytes, or what JSON lacks', async () => {
    const round: unknown[] = []
    round.push(round)
    const nothing = await outcomeOf(toolThat(() => undefined))
    const large = await outcomeOf(toolThat(() => 'x'.repeat(20_000_000)))
    const list = await outcomeOf(toolThat(() => [1n, round, new Date(0)]))

    assert.deepEqual([nothing.outcome, nothing.output, nothing.summary], ['succeeded', null, 'work is done.'])
    assert.deepEqual([large.outcome, large.truncated, (large.output as string).length], ['succeeded', true, 30_000])
    assert.deepEqual(list.output, ['1', ['[left out: it contains itself]'], '1970-01-01T00:00:00.000Z'])
    assert.equal(list.summary, '3 entries')
  })

  it('returns more values than a result may have, of which the first are stored with a note', async () => {
    const tool = toolThat(() => Array.from({ length: 200_000 }, () => 1))
    const { ok, output, summary } = await toolOf(tool).run({}, toolContext())

    assert.deepEqual([ok, summary, (output as unknown[]).length], [true, 'more than 99999 entries', 100_000])
    assert.match((output as string[]).at(-1) ?? '', /^\[the rest is left out: a result may have 100000 values /)
  })

  it('changes its arguments, and no other call sees the change', async () => {
    const input = { tags: ['a'] }
    const tool = toolThat(() => 1, {
      describe(given) {
        ;(given['tags'] as string[]).push('described')
        return 'x'
      },
      execute(given) {
        ;(given['tags'] as string[]).push('executed')
        return given
      },
    })

    toolOf(tool).describe(input)
    const done = await outcomeOf(tool, input)

    assert.deepEqual([input, done.output], [{ tags: ['a'] }, { tags: ['a', 'executed'] }])
  })

  it('waits for an asynchronous check of its arguments', async () => {
    const input = z.object({ id: z.string().refine((id) => Promise.resolve(id === 'known'), 'is not known') })
    const tool = toolThat(() => 'found', { input })

    const found = await outcomeOf(tool, { id: 'known' })
    const missing = await outcomeOf(tool, { id: 'other' })

    assert.deepEqual([found.outcome, missing.outcome], ['succeeded', 'failed'])
    assert.equal(missing.summary, 'The arguments do not fit: id: is not known.')
  })

  it('reports progress, of whatever type', async () => {
    const said: string[] = []
    const tool = toolThat(() => 1, {
      execute(_input, { progress }) {
        progress('one')
        progress(2 as unknown as string)
      },
    })

    await toolOf(tool).run({}, toolContext({ progress: (message) => said.push(message) }))
    assert.deepEqual(said, ['one', '2'])
  })
})

describe('the check of the tools at the start', () => {
  it('names every problem of every tool, with the place where the tool is defined', () => {
    const good = toolThat(() => 1)
    const bad = defineTool({ name: 'bad name', exekute: 1 } as unknown as ToolDefinition)
    const { entries, messages, places } = check(good, bad, 5)

    assert.equal(entries.length, 1)
    assert.deepEqual(messages, [
      'The tool "bad name" has the unknown field exekute; did you mean execute?',
      'The tool "bad name" needs a name of 1 to 64 letters, digits, _ and -, which is what all model providers accept.',
      'The tool "bad name" needs a description of at most 20000 characters; the model reads it.',
      'The tool "bad name" needs an effect: read, idempotent, unsafe.',
      'The tool "bad name" needs a function execute(input, call).',
      `The tool "bad name" needs an input: z.object({ … }), or a JSON Schema with type: 'object'.`,
      'Entry 3 of tools is not a tool; write defineTool({ … }).',
    ])
    assert.match(places[0] ?? '', /code-tool\.test\.ts:\d+$/)
  })

  it('refuses values of fields that cannot be used', () => {
    const { messages } = check(
      toolThat(() => 1, { confirm: 'sometimes' as 'never', timeoutMs: 0.5, describe: 'x' as unknown as () => string }),
    )

    assert.equal(messages.length, 3)
    assert.match(messages.join(' '), /confirm that is not.*describe that is not a function.*timeoutMs that is not/)
  })

  it('refuses a name that a built-in tool or another tool of the configuration has', () => {
    const named = (name: string) => toolThat(() => 1, { name })

    assert.deepEqual(check(named('current_time'), named('twice'), named('twice')).messages, [
      'The tool "current_time" is called like a built-in tool; choose another name.',
      'The tool "twice" is called like another tool of the configuration; choose another name.',
    ])
  })

  it('lets a tool in code keep its name if a tool of an MCP server has the same', () => {
    const { entries } = check(toolThat(() => 1))
    const own = (entries[0] as { tool: Tool }).tool
    const registry = createToolRegistry([...entries, { source: 'mcp:shop', tool: { ...own, name: 'work' } }])

    assert.deepEqual(
      registry.available().map(({ name, source }) => [name, source]),
      [
        ['work', 'config'],
        ['shop_work', 'mcp:shop'],
      ],
    )
    assert.equal(registry.find('work', 'config')?.source, 'config')
  })

  it('refuses an input that has no JSON Schema, or is none', () => {
    const messageOf = (input: unknown) =>
      check(toolThat(() => 1, { input: input as typeof anything })).messages[0] ?? ''
    const oldZod = { '~standard': { version: 1, vendor: 'zod', validate: (value: unknown) => ({ value }) } }

    assert.match(messageOf(z.object({ at: z.date() })), /cannot be written as JSON Schema \(Date/)
    assert.match(messageOf(oldZod), /use zod 4\.2 or later, or plain JSON Schema/)
    assert.match(messageOf(z.string()), /needs an input: z\.object/)
    assert.match(messageOf({ type: 'object', properties: 5 }), /cannot be used/)
  })
})

// The compiler checks these: `execute` gets what the schema gives.
defineTool({
  name: 'types',
  description: '',
  input: z.object({ id: z.string(), at: z.string().transform(Number) }),
  effect: 'read',
  confirm: ({ at }) => at > 1,
  execute: ({ id, at }, { userId }) => {
    id satisfies string
    at satisfies number
    userId satisfies string
    return id.length + at
  },
})
defineTool({
  name: 'types',
  description: '',
  input: z.object({ id: z.string() }),
  effect: 'read',
  // @ts-expect-error: the schema has no such field
  execute: ({ other }) => other as string,
})
defineTool({
  name: 'types',
  description: '',
  input: { type: 'object', properties: { id: { type: 'string' } } },
  // @ts-expect-error: there is no such effect
  effect: 'harmless',
  execute: (input: { id: string }) => input.id,
})
