// The server with a polylog.config file, as an operator starts it: the file is applied, the
// environment wins, every mistake is one sentence with file, line and fix, and the server
// survives whatever the tools and hooks of the file do.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type ConfigFolder, configFolder } from '../support/config-folder.ts'
import type { Polylog } from '../support/polylog.ts'
import { startPolylogProcess, startAndFail } from '../support/polylog-process.ts'
import { openStream, type SseStream } from '../support/sse.ts'
import { callServer, endOf, named, runIdOf, toolState, until } from '../support/test-server.ts'

let folder: ConfigFolder
before(() => {
  folder = configFolder()
})
after(() => folder.remove())

/** Starts the server in the folder and waits for its end, which must come by itself. */
async function failingStart(environment: Record<string, string> = {}): Promise<string> {
  const settings = { PATH: process.env.PATH ?? '', PORT: '0', ...environment }
  const { code, said } = await startAndFail(settings, folder.command())
  assert.equal(code, 1, said)
  assert.match(said, /^Polylog cannot start\. /)
  assert.doesNotMatch(said, /^\s+at /m, 'no stack')
  return said
}

async function ask(server: Polylog, content: string): Promise<SseStream> {
  return await openStream(`${server.baseUrl}/v1/agent/chat`, {
    method: 'POST',
    body: { userId: 'ada', input: content },
  })
}

async function askToEnd(server: Polylog, content: string): Promise<SseStream> {
  const stream = await ask(server, content)
  await stream.ended()
  return stream
}

describe('a configuration file that cannot be used', () => {
  const cases: [what: string, text: string, sentence: RegExp][] = [
    ['a syntax error', 'export default {\n  port: 1,,\n}\n', /polylog\.config\.ts:2: Unexpected token/],
    [
      'a tool with the name of a built-in one, and one that is not complete',
      `import { defineTool } from 'polylog'
       export default {
         tools: [
           defineTool({ name: 'current_time', description: 'x', input: { type: 'object' }, effect: 'read', execute() {} }),
           defineTool({ name: 'other', description: 'x', input: { type: 'object' }, effect: 'read' } as never),
         ],
       }`,
      /2 problems:\n  polylog\.config\.ts:4: The tool "current_time" is called like a built-in tool.*\n  polylog\.config\.ts:5: The tool "other" needs a function execute/,
    ],
    [
      'a model that nobody provides',
      'export default { models: { brief: { model: "openai/x" } } }',
      /The configuration has a set "brief" that cannot be used/,
    ],
  ]
  for (const [what, text, sentence] of cases) {
    test(`${what}: the server does not start, and says why in a sentence`, async () => {
      folder.write('polylog.config.ts', text)

      assert.match(await failingStart(), sentence)
    })
  }
})

describe('a configuration file', () => {
  test('sets what the environment does not, and warns of a key that is written into it', async () => {
    folder.write(
      'polylog.config.ts',
      `import { defineConfig } from 'polylog'
       export default defineConfig({
         data: 'my-data', demoPaceMs: 0, maxSteps: 7, queueMax: 3,
         anthropicApiKey: 'sk-written-here',
         openaiApiKey: ['k', 'e', 'y'].join(''),
         model: 'demo/demo',
         models: { default: {}, brief: { temperature: 0 } },
       })`,
    )
    const server = await startPolylogProcess(
      { POLYLOG_DATA: '', POLYLOG_QUEUE_MAX: '5', LOG_LEVEL: 'debug' },
      undefined,
      folder.command(),
    )
    try {
      const log = server.log()
      assert.match(log, /"configFile":"[^"]*polylog\.config\.ts"/)
      assert.match(log, /"stepsMax":7/)
      assert.match(log, /"queueMax":5/)
      assert.match(log, /"dataDir":"[^"]*my-data"/)
      assert.match(
        log,
        /polylog\.config\.ts:4: anthropicApiKey is written into the file.*process\.env\.ANTHROPIC_API_KEY/,
      )
      assert.doesNotMatch(log, /openaiApiKey is written|sk-written-here/)
      const { body } = await callServer(server.baseUrl, 'GET', '/api/get_configs')
      assert.match(JSON.stringify(body), /brief/)
    } finally {
      await server.dispose()
    }
  })

  test('may be JavaScript, with tools as plain objects and settings by any computation', async () => {
    const file = folder.write(
      'other.mjs',
      `export default {
         demoPaceMs: 0,
         tools: [{ name: 'dice', description: 'Throws a dice.', effect: 'read',
           input: { type: 'object', properties: { sides: { type: 'integer', minimum: 2 } } },
           execute: ({ sides = 6 }) => ({ sides }) }],
       }`,
    )
    const server = await startPolylogProcess({ POLYLOG_CONFIG: file }, undefined, folder.command())
    try {
      const stream = await askToEnd(server, 'use the tool dice with {"sides": 20}')
      assert.match(stream.text(), /"name":"dice","status":"succeeded"/)
      const { body } = await callServer(server.baseUrl, 'GET', '/v1/tools')
      const listed = (body as unknown as { name: string; source: string }[]).find(({ name }) => name === 'dice')
      assert.equal(listed?.source, 'config')
    } finally {
      await server.dispose()
    }
  })
})

describe('whatever tools and hooks of the file do, the server lives', () => {
  let server: Polylog
  let ends: string
  const tool = (name: string, execute: string, more = '') =>
    `defineTool({ name: '${name}', description: 'x', input: z.object({}), effect: 'read', ${more} ${execute} })`

  before(async () => {
    ends = join(folder.path, 'ends.jsonl')
    folder.write(
      'polylog.config.ts',
      `import { appendFileSync } from 'node:fs'
       import { defineConfig, defineTool, z } from 'polylog'
       export default defineConfig({
         demoPaceMs: 0,
         tools: [
           ${tool('throws_later', 'execute: () => new Promise(() => { setTimeout(() => { throw new Error("in a timer") }, 1) })')},
           ${tool('rejects_alone', 'execute() { void Promise.reject(new Error("alone")); return new Promise(() => {}) }')},
           ${tool('throws_after', 'execute() { setTimeout(() => { throw new Error("after its end") }, 1); return "done" }')},
           ${tool('hangs', 'execute: () => new Promise(() => {})', 'timeoutMs: 50,')},
           ${tool('megabytes', 'execute: () => "x".repeat(30_000_000)')},
           ${tool('round', 'execute() { const a = { n: 1n }; a.self = a; return a }')},
           ${tool('asks', 'describe: () => "Do the thing", execute: () => "did it"', 'confirm: "always",')},
         ],
         hooks: {
           async onRunEnded(run) {
             appendFileSync(${JSON.stringify(ends)}, JSON.stringify(run) + '\\n')
             setTimeout(() => { throw new Error('hook, later') }, 1)
             throw new Error('hook, now')
           },
         },
       })`,
    )
    server = await startPolylogProcess({}, undefined, folder.command())
  })
  after(() => server.dispose())

  for (const [name, status, said] of [
    ['throws_later', 'threw', /in a timer/],
    ['rejects_alone', 'threw', /alone/],
    ['throws_after', 'succeeded', /done/],
    ['hangs', 'threw', /did not answer within 0\.05 s/],
    ['megabytes', 'succeeded', /xxx/],
    ['round', 'succeeded', /it contains itself/],
  ] as const) {
    test(`a tool that ${name.replace('_', ' ')}`, async () => {
      const stream = await askToEnd(server, `use the tool ${name} with {}`)

      assert.equal(endOf(stream.frames).status, 'succeeded', stream.text().slice(-3000))
      const frame = stream.frames.find(toolState(status === 'threw' ? 'failed' : 'succeeded', name))
      assert.match(JSON.stringify(frame?.json.data ?? stream.text().slice(0, 3000)), said)
      assert.ok(!existsSync(join(server.dataDir, 'watchdog-mark.json')), 'no death is recorded')
    })
  }

  test('a tool that needs consent asks with its own sentence, and runs when a person agrees', async () => {
    const stream = await ask(server, 'use the tool asks with {}')
    const waiting = await stream.waitFor(toolState('awaiting_input', 'asks'))
    assert.match(JSON.stringify(waiting.json), /Do the thing/)
    const { body } = await callServer(server.baseUrl, 'GET', '/v1/tool-confirmations', { user: 'ada' })
    const [pending] = body as unknown as { id: string }[]
    await callServer(server.baseUrl, 'POST', `/v1/tool-confirmations/${pending?.id}/confirm`, { user: 'ada', body: {} })
    await stream.waitFor(named('agent.end'))

    assert.match(stream.text(), /"name":"asks","status":"succeeded"/)
  })

  test('a hook gets each run that ended, and its errors are logged', async () => {
    const stream = await askToEnd(server, 'say hello to the hook')
    const lines = () =>
      readFileSync(ends, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
    const run = await until('the hook', () => lines().find(({ id }) => id === runIdOf(stream)))

    assert.deepEqual(
      [run['status'], run['userId'], run['agentId'], run['family'], run['error']],
      ['succeeded', 'ada', 'chat_conversation', 'agent', null],
    )
    assert.equal(run['conversationId'], stream.headers['x-conversation-id'])
    assert.match(String(run['output']), /hello/)
    assert.ok(Date.parse(String(run['endedAt'])) >= Date.parse(String(run['createdAt'])))
    await until(
      'both errors in the log',
      () => (/hook, now/.test(server.log()) && /hook, later/.test(server.log())) || undefined,
    )
    assert.equal((await callServer(server.baseUrl, 'GET', '/v1/health')).status, 200)
  })
})

test('an error that belongs to no tool and no hook still ends the process', async () => {
  folder.write(
    'polylog.config.ts',
    'setImmediate(() => { throw new Error("of the file itself") })\nexport default {}\n',
  )
  const { file, args, cwd } = folder.command()
  const child = spawn(file, args, { cwd, env: { PORT: '0' }, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (part: Buffer) => (said += part.toString()))
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))

  assert.equal(code, 1)
  assert.match(said, /of the file itself/)
})

test('an unsafe tool that was killed in the middle is not run again before a person agrees', async () => {
  const tries = join(folder.path, 'tries')
  folder.write(
    'polylog.config.ts',
    `import { appendFileSync, readFileSync } from 'node:fs'
     import { defineConfig, defineTool, z } from 'polylog'
     export default defineConfig({
       demoPaceMs: 0,
       tools: [defineTool({
         name: 'charge', description: 'Charges a card.', input: z.object({ cents: z.number() }),
         effect: 'unsafe', confirm: 'never', describe: ({ cents }) => \`Charge \${cents} cents\`,
         async execute({ cents }, { idempotencyKey }) {
           appendFileSync(${JSON.stringify(tries)}, idempotencyKey + '\\n')
           const isFirst = readFileSync(${JSON.stringify(tries)}, 'utf8').trim().split('\\n').length === 1
           return isFirst ? await new Promise(() => {}) : { cents }
         },
       })],
     })`,
  )
  const first = await startPolylogProcess({}, undefined, folder.command())
  const runId = runIdOf(await ask(first, 'use the tool charge with {"cents": 100}'))
  // The file exists a moment before its line is in it.
  await until('the first try', () => (existsSync(tries) && readFileSync(tries, 'utf8') !== '') || undefined)
  await first.kill()
  const second = await first.restartProcess()
  try {
    const stream = await openStream(`${second.baseUrl}/v1/agent/runs/${runId}/stream?userId=ada`)
    const waiting = await stream.waitFor(toolState('awaiting_input', 'charge'))
    assert.match(JSON.stringify(waiting.json), /Charge 100 cents \(this may already have happened before a restart/)
    assert.equal(readFileSync(tries, 'utf8').trim().split('\n').length, 1)
    const { body } = await callServer(second.baseUrl, 'GET', '/v1/tool-confirmations', { user: 'ada' })
    const [pending] = body as unknown as { id: string }[]
    await callServer(second.baseUrl, 'POST', `/v1/tool-confirmations/${pending?.id}/confirm`, { user: 'ada', body: {} })
    await stream.waitFor(named('agent.end'))

    const keys = readFileSync(tries, 'utf8').trim().split('\n')
    assert.deepEqual([keys.length, new Set(keys).size], [2, 1], 'both tries have the same key')
    assert.match(stream.text(), /"name":"charge","status":"succeeded"/)
  } finally {
    await second.dispose()
  }
})
