// runs, show, tail and replay, as processes against a real server.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createClient } from '../../client/src/client.ts'
import { polylog, type CommandResult } from '../support/command-line.ts'
import { type Polylog, startPolylog } from '../support/polylog.ts'
import { type PolylogProcess, startPolylogProcess } from '../support/polylog-process.ts'
import { spawnCommand } from '../support/command-line.ts'
import { until } from '../support/test-server.ts'

let server: Polylog
let answered: string
let waiting: string

before(async () => {
  server = await startPolylog()
  const client = createClient({ baseUrl: server.baseUrl, userId: 'ada' })
  const run = await client.chat({ input: 'What time is it? Please think.' })
  await run.result()
  answered = run.id
  const parked = await client.chat({ input: 'remember that the key is under the mat' })
  for await (const frame of parked) {
    if (frame.event === 'tool.state' && frame.data.status === 'awaiting_input') break
  }
  waiting = parked.id
})

after(async () => await server.dispose())

const ada = (...args: string[]): Promise<CommandResult> => polylog([...args, '--url', server.baseUrl, '--user', 'ada'])

const linesOf = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

describe('polylog runs', () => {
  test('lists the runs of the user, newest first, and filters them', async () => {
    const all = await ada('runs')
    assert.equal(all.code, 0)
    const [head, ...rows] = all.stdout.trimEnd().split('\n')
    assert.match(head ?? '', /^RUN +STATUS +STARTED +TOOK +AGENT +CONVERSATION$/)
    assert.deepEqual(
      rows.map((row) => row.split(/ {2,}/).slice(0, 2)),
      [
        [waiting, 'awaiting_input'],
        [answered, 'succeeded'],
      ],
    )
    const filtered = await ada('runs', '--status', 'succeeded', '--json')
    assert.deepEqual(
      linesOf(filtered.stdout).map(({ runId, status }) => [runId, status]),
      [[answered, 'succeeded']],
    )
    assert.deepEqual(linesOf((await ada('runs', '--limit', '1', '--json')).stdout).length, 1)
  })

  test('another user has none, and a wrong status is exit code 2', async () => {
    const none = await polylog(['runs', '--url', server.baseUrl, '--user', 'bob'])
    assert.deepEqual([none.code, none.stdout], [0, ''])
    assert.equal((await ada('runs', '--status', 'sleeping')).code, 2)
  })
})

describe('polylog show', () => {
  test('shows attempts, steps and tools as a tree with durations', async () => {
    const { code, stdout } = await ada('show', answered)
    assert.equal(code, 0)
    assert.match(stdout, new RegExp(`^${answered} {2}succeeded {2}.*chat_conversation\n`))
    assert.match(stdout, /├─ ○ queued/)
    assert.match(stdout, /└─ ● attempt 1 {2}\d+ ms\n/)
    assert.match(stdout, /├─ ◆ step 1 {2}\d+ ms {2}demo\/demo, first token after \d+ ms, tool-calls/)
    assert.match(stdout, /│ {2}└─ ⚙ current_time.* succeeded\n/)
  })

  test('shows what waits for a person, and the same as JSON', async () => {
    const { stdout } = await ada('show', waiting, '--json')
    type Node = { kind: string; name: string; endMs: number | null; children: Node[] }
    const tree = JSON.parse(stdout) as { status: string; phases: Node[] }
    assert.equal(tree.status, 'awaiting_input')
    assert.deepEqual(
      tree.phases.map(({ kind }) => kind),
      ['queued', 'attempt', 'waiting'],
    )
    const tool = tree.phases[1]?.children[0]?.children.find(({ kind }) => kind === 'tool')
    assert.deepEqual([tool?.name, tool?.endMs, tool?.children[0]?.kind], ['remember_note', null, 'question'])
  })

  test('a run of another user does not exist: exit code 3', async () => {
    const { code, stderr } = await polylog(['show', answered, '--url', server.baseUrl, '--user', 'bob'])
    assert.equal(code, 3)
    assert.match(stderr, /does not exist/)
  })
})

describe('polylog tail', () => {
  test('prints an ended run for people, and ends with 0', async () => {
    const { code, stdout } = await ada('tail', answered)
    assert.equal(code, 0)
    assert.match(stdout, /^> What time is it\? Please think\.\n/)
    assert.match(stdout, /\n⚙ current_time \{\}\n[^]*✔ current_time \(\d+ ms\): It is /)
    assert.match(stdout, /\n— succeeded: .*tokens\n$/)
  })

  test('--json gives frames, and --from those after a cursor', async () => {
    const all = linesOf((await ada('tail', answered, '--json')).stdout)
    const cursor = String(all[3]?.['id'])
    const rest = linesOf((await ada('tail', answered, '--json', '--from', cursor)).stdout)
    assert.equal(all[0]?.['event'], 'agent.start')
    assert.deepEqual(rest, all.slice(4))
  })

  test('--format prints the bytes of a dialect as the server sends them', async () => {
    for (const format of ['openai-chat', 'vercel-ai', 'fcmp', 'chunks-ndjson']) {
      const { code, stdout, stderr } = await ada('tail', answered, '--format', format)
      const path = `/v1/agent/runs/${answered}/stream?format=${format}&after=0&userId=ada`
      const body = await (await fetch(server.baseUrl + path)).text()
      assert.deepEqual([code, stderr], [0, ''], format)
      assert.equal(stdout, body, format)
    }
    assert.equal((await ada('tail', answered, '--format', 'morse')).code, 2)
  })

  test('text of a model cannot send commands to the terminal', async () => {
    const client = createClient({ baseUrl: server.baseUrl, userId: 'eve' })
    const run = await client.chat({ input: 'Say \u001b]0;owned\u0007 and \u009b31m' })
    await run.result()
    const { stdout } = await polylog(['tail', run.id, '--url', server.baseUrl, '--user', 'eve'])
    // eslint-disable-next-line no-control-regex -- these must not be there
    assert.doesNotMatch(stdout, /[\u001b\u0007\u009b]/)
    assert.match(stdout, /\\x1b\]0;owned\\x07/)
  })

  test('goes on over a server that is killed and started again, in both ways of reading', async () => {
    const data: PolylogProcess = await startPolylogProcess({ POLYLOG_DEMO_PACE_MS: '3' })
    const port = new URL(data.baseUrl).port
    const client = createClient({ baseUrl: data.baseUrl, userId: 'ada' })
    const run = await client.chat({ input: 'count to 300' })
    const readable = spawnCommand(['tail', run.id, '--url', data.baseUrl, '--user', 'ada'])
    const raw = spawnCommand(['tail', run.id, '--url', data.baseUrl, '--user', 'ada', '--format', 'sse'])
    await until('both have begun', () => (/ 9 /.test(readable.stdout()) && /" 9"/.test(raw.stdout())) || undefined)
    await data.kill()
    await until('both have noticed', () => (/lost/.test(readable.stderr()) && /lost/.test(raw.stderr())) || undefined)
    const again = await data.restartProcess({ PORT: port })
    try {
      const [first, second] = await Promise.all([readable.ended, raw.ended])
      assert.deepEqual([first.code, second.code], [0, 0], first.stderr + second.stderr)
      assert.match(first.stdout, / 298 299 300\n— succeeded/)
      const path = `/v1/agent/runs/${run.id}/stream?after=0&userId=ada`
      const withoutPings = (text: string) => text.replace(/^event: ping\n.*\n\n|^retry: .*\n\n?|^:.*\n\n?/gm, '')
      assert.equal(withoutPings(second.stdout), withoutPings(await (await fetch(again.baseUrl + path)).text()))
    } finally {
      await again.dispose()
    }
  })
})

describe('polylog replay', () => {
  test('shows a run again; without waiting it prints what tail prints', async () => {
    const { code, stdout } = await ada('replay', answered, '--speed', 'max')
    assert.equal(code, 0)
    assert.equal(stdout, (await ada('tail', answered)).stdout)
  })

  test('waits as long as the run did, divided by the speed, and shortens long pauses', async () => {
    const client = createClient({ baseUrl: server.baseUrl, userId: 'ada' })
    const { events } = await client.runs.timeline(answered)
    const entries = linesOf((await ada('replay', answered, '--speed', '1000', '--json')).stdout)
    assert.deepEqual(entries, events)
    assert.equal((await ada('replay', answered, '--speed', '0')).code, 2)
  })
})
