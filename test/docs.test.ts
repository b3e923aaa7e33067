// The documents match the code: every event with its fields, every setting, every dependency,
// every edge of the state machine. Their links work, and the commands of the README and of the pages
// about the API do what they say. (Error codes are compared in architecture.test.ts.)

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { z } from 'zod'
import { settingTable } from '../src/app/setting-table.ts'
import { eventBodies, eventTypes, isBarrier } from '../src/journal/event.ts'
import { transitions } from '../src/journal/transitions.ts'
import { type Polylog, startPolylog } from './support/polylog.ts'

const root = join(import.meta.dirname, '..')
const read = (file: string) => readFileSync(join(root, file), 'utf8')

/** What stands in backticks in the first column of the tables of a document. */
function firstColumn(text: string): string[] {
  const cells = [...text.matchAll(/^\| (`[^|]*`) \|/gm)].map((match) => match[1] ?? '')
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ''))
}

/** The sections under `### `, by what their heading has in backticks. */
function sectionsOf(text: string): Map<string, string> {
  const sections = text.split(/^(?=#{2,3} )/m).flatMap((section) => {
    const name = /^### `([^`]+)`$/m.exec(section)?.[1]
    return name === undefined ? [] : [[name, section] as const]
  })
  return new Map(sections)
}

const eventSections = sectionsOf(read('docs/journal.md'))

test('docs/journal.md describes exactly the events that exist', () => {
  assert.deepEqual([...eventSections.keys()].toSorted(), eventTypes.toSorted())
})

for (const type of eventTypes) {
  test(`docs/journal.md has the fields and the class of ${type}`, () => {
    const section = eventSections.get(type) ?? ''

    const fields = Object.keys((eventBodies[type] as z.ZodObject).shape)
    assert.deepEqual(firstColumn(section).toSorted(), fields.toSorted())
    assert.match(section, isBarrier(type) ? /^Barrier\./m : /^Delta\./m)
    assert.match(section, /^Read by: /m)
  })
}

test('docs/journal.md holds exactly the edges of the state machine', () => {
  const documented = [...read('docs/journal.md').matchAll(/^\| (TR-\d+) \| (\w+) \| `([\w.]+)` \| (\w+) \|$/gm)]

  assert.deepEqual(
    documented.map(([, id, from, trigger, to]) => ({ id, from, trigger, to })),
    transitions,
  )
})

test('docs/configuration.md holds exactly the settings that are read', () => {
  assert.deepEqual(firstColumn(read('docs/configuration.md')).toSorted(), Object.keys(settingTable).toSorted())
})

test('docs/dependencies.md has a reason for exactly the dependencies that there are', () => {
  const { dependencies, devDependencies } = JSON.parse(read('package.json')) as Record<string, Record<string, string>>
  const [server, tools, inConsole] = read('docs/dependencies.md').split(/^## (?:For working on it|In the console)$/m)
  const ofConsole = JSON.parse(read('console/package.json')) as Record<string, Record<string, string>>

  assert.deepEqual(firstColumn(server ?? ''), Object.keys(dependencies ?? {}).toSorted())
  assert.deepEqual(firstColumn(tools ?? ''), Object.keys(devDependencies ?? {}).toSorted())
  assert.deepEqual(firstColumn(inConsole ?? ''), Object.keys(ofConsole['devDependencies'] ?? {}).toSorted())
})

/** Variables of clients, of tests, of commands that tools start, and of Compose and Kubernetes; not of the server. */
const otherVariables = [
  'POLYLOG_KEY',
  'POLYLOG_PORT',
  'POLYLOG_SHELL',
  'POLYLOG_TEST_DATABASE',
  'POLYLOG_TEST_PICTURES',
  'POLYLOG_TOKEN',
  'POLYLOG_URL',
]

test('the documents show only settings that exist', () => {
  const known = new Set([...firstColumn(read('docs/configuration.md')), ...otherVariables])
  const shown = documents().flatMap((file) =>
    [...read(file).matchAll(/\b(?:POLYLOG|OPENAI|ANTHROPIC|GOOGLE|OLLAMA)_[A-Z_]*[A-Z]\b/g)].map(([name]) => [
      file,
      name,
    ]),
  )
  assert.ok(shown.length > 50)

  assert.deepEqual(
    shown.filter(([, name]) => !known.has(name ?? '')),
    [],
  )
})

test('links between the documents work', () => {
  assert.ok(documents().length > 8)

  const broken = documents().flatMap((file) => {
    const text = read(file).replace(/^```.*?^```/gms, '')
    const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? '')
    return targets
      .filter((target) => !/^[a-z]+:|^#/.test(target))
      .filter((target) => !existsSync(join(root, dirname(file), target.split('#', 1)[0] ?? '')))
      .map((target) => `${file}: ${target}`)
  })

  assert.deepEqual(broken, [])
})

function documents(): string[] {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z', '*.md'], {
    cwd: root,
    encoding: 'utf8',
  })
  return listed.split('\0').filter((file) => file !== '' && existsSync(join(root, file)))
}

/** The pages whose commands a reader types one after the other, and what the server then says, in this order. */
const walkthroughs: Record<string, RegExp[]> = {
  'README.md': [
    /event: agent\.end\ndata: .*"status":"succeeded"/,
    /#####\nid: 6\n.*event: agent\.end\n/s,
    /--- vercel-ai\nf:\{"messageId":.*--- ui-message\n.*"type":"start".*--- openai-chat\n.*"object":"chat\.completion\.chunk"/s,
    /--- ag-ui\n.*"type":"RUN_STARTED".*--- a2a\n.*--- langgraph\n.*--- chunks\n.*--- fcmp\n.*--- session\n.*"type":"start"/s,
  ],
  'docs/agent-api.md': [
    /event: agent\.end\ndata: .*"status":"succeeded"/,
    /#####\n.*"role":"user","content":"帮我想一句给老朋友的新年祝福"/,
    /#####\nid: 6\n.*event: agent\.end\n/s,
    /"toolName":"remember_note".*"status":"confirmed"/,
    /"name":"remember_note","status":"succeeded"/,
    /"status":"cancelled".*"accepted":true/,
    /^\{"runId":.*"status":"cancelled".*"events":\[\{"seq":1,"id":"1","event":"agent\.start"/m,
    /#####\nf:\{"messageId":.*\n0:"1"\n0:" 2"\n.*\nd:\{"finishReason":"other"/s,
  ],
  'docs/chat-api.md': [
    /^data: \{"type":"tool_end",.*"status":"success"/m,
    /\{"success":true,"trace":\{"trace_id":.*"status":"completed"/,
    /\{"message":"Liked","state":"like"\}\{"conversations":/,
    /^data: \{"type":"error","status":499,.*"code":"cancelled"\}/m,
    /\{"success":true,"cancelled_count":1,/,
    /^id: a:\d+,b:\d+\ndata: \{"type":"done",.*"arm":"b","comparison_id":.*"vote_requested":true\}/m,
    /"preference":"b".*"side_b_config":"default".*\{"success":true,"scope":"mine","votes":1,/,
  ],
  'docs/jobs.md': [/"type":"interaction\.auto_decide\.timeout".*"type":"conversation\.completed".*"decision":"green"/s],
  'docs/session-api.md': [
    /^data: \{"type":"tool_result",.*"modified":true,"paths":\["note\.txt"\]\},"is_error":false,/m,
    /^data: \{"type":"start","agentId":"agt-\w+","isNewSession":false,/m,
    /\{"status":"ok","service":"polylog","timestamp":\d+,"conversations":\{"total":1,"active":0\}\}/,
  ],
}

describe('the commands of a page do what it says', () => {
  let server: Polylog
  before(async () => {
    server = await startPolylog({ POLYLOG_DEMO_PACE_MS: '2' })
  })
  after(() => server.dispose())

  for (const [file, expected] of Object.entries(walkthroughs)) {
    test(file, async () => {
      const blocks = [...read(file).matchAll(/^```bash\n(.*?)^```$/gms)].map((match) => match[1] ?? '')
      assert.ok(blocks.length > 0)
      const script = blocks.map((block) => block + waitAfter(block)).join('\necho "#####"\n')

      const { code, output, errors } = await bash(script.replaceAll('http://localhost:3000', server.baseUrl))

      assert.equal(code, 0, output + errors)
      for (const pattern of expected) assert.match(output, pattern)
    })
  }
})

test('docs/telemetry.md lists exactly the metrics that there are', async () => {
  const server = await startPolylog({})
  try {
    const metrics = await (await fetch(`${server.baseUrl}/metrics`)).text()
    const served = [...metrics.matchAll(/^# HELP (polylog_\w+) /gm)].map(([, name = '']) => name)
    const listed = read('docs/telemetry.md')
      .split('\n')
      .filter((line) => line.startsWith('| `polylog_'))
      .flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`(polylog_\w+)`/g)].map(([, name = '']) => name))
    assert.deepEqual(listed.toSorted(), served.toSorted())
  } finally {
    await server.dispose()
  }
})

/** A reader waits for what the background stream shows before going on; so does the script. */
function waitAfter(block: string): string {
  if (block.includes('/confirm')) return 'wait\n'
  if (!block.trimEnd().endsWith('&')) return ''
  const reached = block.includes('remember that')
    ? '"status":"awaiting_input"'
    : '"status":"running".*"cursor":"[0-9][0-9]'
  const newest = 'curl -s "http://localhost:3000/v1/agent/runs?userId=user_123&limit=1"'
  return `for i in $(seq 500); do if ${newest} | grep -q '${reached}'; then break; fi; done\n`
}

function bash(script: string): Promise<{ code: number | null; output: string; errors: string }> {
  const child = spawn('bash', ['-e', '-o', 'pipefail', '-c', `${script}\nwait\n`], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  let errors = ''
  child.stdout.on('data', (part: Buffer) => (output += part.toString()))
  child.stderr.on('data', (part: Buffer) => (errors += part.toString()))
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output, errors })))
}
