// The types of @polylog/client are written by hand, so that a front end needs neither zod nor
// Node. These tests compare them with the server: the events at compile time, field by field;
// the frames by compiling what the dialects send, as literals, in a project that has only the
// built package.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import type * as client from '../../client/src/index.ts'
import { agentDialect } from '../../src/dialects/agent/agent.ts'
import { openTimeline, type TimelineEntry, timelineEntries } from '../../src/dialects/agent/timeline.ts'
import { chunksDialect } from '../../src/dialects/chunks/chunks.ts'
import { armsBeginning, TwoArms } from '../../src/dialects/chunks/two-arms.ts'
import type { Dialect } from '../../src/dialects/dialect.ts'
import type { FcmpType } from '../../src/dialects/fcmp/envelope.ts'
import { fcmpDialect, snapshotFrame } from '../../src/dialects/fcmp/fcmp.ts'
import { sessionDialect } from '../../src/dialects/session/session.ts'
import type * as server from '../../src/journal/event.ts'
import type { z } from 'zod'
import type { fileView } from '../../src/http/files-v1/file-routes.ts'
import type { confirmationView, conversationView, messageView, runView } from '../../src/http/views.ts'
import { framesOf } from '../contracts/dialect-contract.ts'
import type { Scenario } from '../scenarios/journal-builder.ts'
import { scenarios } from '../scenarios/scenarios.ts'
import { anyEvent } from '../support/event-arbitraries.ts'

/** Identical, optional fields included; types that are only assignable to each other are not enough. */
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** An optional field of parsed JSON is absent and never undefined; zod cannot say that, so it is taken out of its types. */
type Parsed<T> = server.JsonValue extends T
  ? T
  : T extends readonly (infer Item)[]
    ? Parsed<Item>[]
    : T extends object
      ? { [K in keyof T]: Parsed<Exclude<T[K], undefined>> }
      : T

/** The compiler names the entry that differs. */
type Differing<A, B> = {
  [K in keyof A | keyof B]: K extends keyof A & keyof B
    ? Equal<Parsed<A[K]>, Parsed<B[K]>> extends true
      ? never
      : K
    : K
}[keyof A | keyof B]

type ServerBodies = { [T in server.EventType]: server.EventData<T> }

/** The JSON answers of routes. */
type ClientAnswers = {
  run: client.RunInfo
  conversation: client.Conversation
  message: client.StoredMessage
  confirmation: client.Confirmation
  file: client.FileInfo
}
type ServerAnswers = {
  run: z.infer<typeof runView>
  conversation: z.infer<typeof conversationView>
  message: z.infer<typeof messageView>
  confirmation: z.infer<typeof confirmationView>
  file: z.infer<typeof fileView>
}

/** Compiles only if every pair is identical. */
const differences: {
  events: [Differing<client.EventBodies, ServerBodies>] extends [never]
    ? true
    : Differing<client.EventBodies, ServerBodies>
  spec: [Differing<client.RunSpec, server.RunSpec>] extends [never] ? true : Differing<client.RunSpec, server.RunSpec>
  envelope: Equal<Parsed<client.EventOf<'text.delta'>>, Parsed<server.EventOf<'text.delta'>>>
  names: Equal<client.EventType, server.EventType>
  statuses: Equal<client.RunStatus, server.RunStatus>
  outcomes: Equal<client.ToolOutcome, server.ToolOutcome>
  effects: Equal<client.ToolEffect, server.ToolEffect>
  usage: Equal<Parsed<client.Usage>, Parsed<server.Usage>>
  json: [client.JsonValue, server.JsonValue] extends [server.JsonValue, client.JsonValue] ? true : false
  fcmp: Equal<client.FcmpType, FcmpType>
  answers: [Differing<ClientAnswers, ServerAnswers>] extends [never] ? true : Differing<ClientAnswers, ServerAnswers>
} = {
  events: true,
  spec: true,
  envelope: true,
  names: true,
  statuses: true,
  outcomes: true,
  effects: true,
  usage: true,
  json: true,
  fcmp: true,
  answers: true,
}

// The comparison can fail: a missing optional field, another type, and a missing entry are each found.
const found: {
  optional: Differing<{ a: { b: 1 } }, { a: { b: 1; c?: 2 } }>
  type: Differing<{ a: { b: string | null } }, { a: { b: string } }>
  entry: Differing<{ a: 1 }, { a: 1; d: 1 }>
} = { optional: 'a', type: 'a', entry: 'd' }

const root = join(import.meta.dirname, '../..')
let project: string
let built: string

before(() => {
  project = mkdtempSync(join(tmpdir(), 'polylog-client-'))
  built = join(project, 'node_modules/@polylog/client/dist')
  mkdirSync(join(built, '..'), { recursive: true })
  copyFileSync(join(root, 'client/package.json'), join(built, '../package.json'))
  execFileSync(process.execPath, [join(root, 'scripts/build.ts'), 'client', built])
  writeFileSync(join(project, 'package.json'), '{"type":"module"}')
  // A page that uses the hook has the types of React.
  mkdirSync(join(project, 'node_modules/@types'))
  for (const name of ['@types/react', 'csstype']) {
    symlinkSync(realpathSync(join(root, 'node_modules', name)), join(project, 'node_modules', name))
  }
})

after(() => rmSync(project, { recursive: true, force: true }))

/** What the compiler says about one file of a front end; empty if nothing is wrong. */
function compile(code: string, { checksDeclarations = false, file = 'front-end.ts' } = {}): string {
  writeFileSync(join(project, file), code)
  // Checking all declarations takes seconds, because those of the browser are among them.
  const options = [
    '--noEmit',
    '--strict',
    '--exactOptionalPropertyTypes',
    '--skipLibCheck',
    String(!checksDeclarations),
  ]
  const platform = [
    '--target',
    'es2022',
    '--lib',
    'es2023,dom,dom.iterable',
    '--module',
    'nodenext',
    '--types',
    '',
    '--jsx',
    'react-jsx',
  ]
  const compiler = join(root, 'node_modules/typescript-native/bin/tsc')
  const { stdout, status } = spawnSync(process.execPath, [compiler, ...options, ...platform, file], {
    cwd: project,
    encoding: 'utf8',
  })
  return status === 0 ? '' : stdout
}

function assertFits(type: string, values: readonly unknown[]): void {
  assert.ok(values.length > 0)
  const lines = values.map((value) => `  ${JSON.stringify(value)},\n`).join('')
  const said = compile(`import type { ${type} } from '@polylog/client'\nexport const all: ${type}[] = [\n${lines}]\n`)
  assert.equal(said.slice(0, 2000), '')
}

/** Every event with every optional field, in no order that a run could write; dialects have to bear it all the same. */
const anything: Scenario = { name: 'anything', runId: 'run', events: fc.sample(anyEvent, { seed: 1, numRuns: 400 }) }
const journals: readonly Scenario[] = [...scenarios, anything]

function framesOfAll<State>(dialect: Dialect<State>) {
  return journals.flatMap((journal) => framesOf(dialect, journal).map(({ frame }) => frame))
}

/** The parsed messages of encoded SSE. */
function messagesOf(text: string): { event: string | undefined; data: unknown }[] {
  return text
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) => ({
      event: /^event: (.*)$/m.exec(block)?.[1],
      data: JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? '') as unknown,
    }))
}

describe('the types of @polylog/client', () => {
  test('are the types of the journal, event by event', () => {
    assert.deepEqual(new Set(Object.values(differences)), new Set([true]))
    assert.deepEqual(found, { optional: 'a', type: 'a', entry: 'd' })
  })

  test('need no zod, no Node and nothing else', () => {
    const files = globSync('**/*', { cwd: built })
    assert.ok(files.includes('index.d.ts'))
    for (const file of files) {
      const text = readFileSync(join(built, file), 'utf8')
      for (const [, path = ''] of text.matchAll(/\b(?:from|import|require)\b\s*\(?\s*['"]([^'"]+)['"]/g)) {
        // Only the hook needs React, which the page has anyway.
        if (!/^react\.(d\.ts|js)$/.test(file) || path !== 'react') assert.match(path, /^\.\/[\w-]+\.js$/, file)
      }
      assert.doesNotMatch(text, /zod|reference types|node:/i, file)
    }
    const manifest = JSON.parse(readFileSync(join(root, 'client/package.json'), 'utf8')) as Record<string, unknown>
    assert.deepEqual(
      Object.keys(manifest).filter((key) => /dependencies|engines/i.test(key)),
      ['peerDependencies', 'peerDependenciesMeta'],
    )
    assert.deepEqual(manifest['peerDependenciesMeta'], { react: { optional: true } })
  })

  test('compile as the READMEs show them', () => {
    const readmes = ['client/README.md', 'README.md'].map((file) => readFileSync(join(root, file), 'utf8'))
    const examples = [...readmes.join('\n').matchAll(/```(tsx?)\n([^]*?)```/g)]
    assert.ok(examples.length >= 5)
    for (const [index, [, kind = '', code = '']] of examples.entries()) {
      assert.equal(compile(code, { checksDeclarations: index === 0, file: `front-end.${kind}` }), '', code)
    }
  })

  test('refuse a frame that has a field too many, or too few', () => {
    const start = `import type { NativeFrame } from '@polylog/client'\nexport const frame: NativeFrame = `
    assert.equal(compile(`${start}{ event: 'ping', data: { at: '' } }`), '')
    assert.match(compile(`${start}{ event: 'ping', data: { at: '', more: 1 } }`), /more/)
    assert.match(compile(`${start}{ event: 'ping', data: {} }`), /not assignable/)
  })

  test('fit every event of a journal', () => {
    assertFits(
      'RunEvent',
      journals.flatMap(({ events }) => events),
    )
  })

  test('fit every frame of the native wire', () => {
    const frames = framesOfAll(agentDialect).map(({ name, data }) => ({ event: name, data }))
    assertFits('NativeFrame', [...frames, ...messagesOf(agentDialect.keepAlive(0, 1) ?? '').map(({ data }) => data)])
  })

  test('fit every entry of a timeline', () => {
    const entries: TimelineEntry[] = []
    for (const { runId, events } of journals) {
      const fold = openTimeline(runId)
      for (const event of events) timelineEntries(fold, event, entries)
    }
    assertFits('TimelineEntry', entries)
  })

  test('fit every frame of the chunks wire, alone and with two arms', () => {
    const dialect = chunksDialect()
    assertFits(
      'ChunksFrame',
      framesOfAll(dialect).map(({ data }) => data),
    )
    const arms = scenarios.flatMap((a) => {
      const two = new TwoArms({ dialect, runs: { a: 'a', b: 'b' }, comparisonId: 'c', cursor: armsBeginning })
      const answered = scenarios[0] as Scenario
      return messagesOf(two.take('a', a.events).text + two.take('b', answered.events).text)
    })
    assertFits(
      'ArmFrame',
      arms.map(({ data }) => data),
    )
  })

  test('fit every frame of the session wire', () => {
    const beats = messagesOf(sessionDialect.keepAlive(0, 1) ?? '')
    assertFits(
      'SessionFrame',
      [...framesOfAll(sessionDialect), ...beats].map(({ data }) => data),
    )
  })

  test('fit every frame of the FCMP wire', () => {
    const dialect = fcmpDialect()
    const events = framesOfAll(dialect).map(({ data }) => ({ event: 'chat_event', data }))
    const ofConnection = [
      snapshotFrame('queued', 0, undefined),
      snapshotFrame('waiting_user', 3, 1),
      dialect.keepAlive(0, 1),
    ]
    assertFits('FcmpFrame', [...events, ...messagesOf(ofConnection.join(''))])
  })
})
