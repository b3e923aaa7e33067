// The examples are clients that people copy, so they are run against a real server: with a tool
// that asks for consent, with a client that disconnects, and with a server that is killed in the
// middle of an answer.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type Polylog, startPolylog } from './support/polylog.ts'
import { startPolylogProcess } from './support/polylog-process.ts'

const root = join(import.meta.dirname, '..')

type Client = {
  said(): string
  /** Resolves as soon as the client has printed `text`; rejects when it ends without. */
  says(text: string): Promise<void>
  ended: Promise<number | null>
  kill(): void
}

function runExample(
  command: string,
  args: string[],
  baseUrl: string,
  typed: string,
  environment: Record<string, string> = {},
): Client {
  const child = spawn(command, args, {
    cwd: root,
    env: { PATH: process.env.PATH ?? '', POLYLOG_URL: baseUrl, ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let output = ''
  const listeners = new Set<() => void>()
  const hear = (part: Buffer) => {
    output += part.toString()
    for (const listener of listeners) listener()
  }
  child.stdout.on('data', hear)
  child.stderr.on('data', hear)
  child.stdin.end(typed)
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  return {
    said: () => output,
    says: (text) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (output.includes(text)) resolve()
        }
        listeners.add(look)
        look()
        void ended.then(() => reject(new Error(`it ended without saying ${text}:\n${output}`)))
      }),
    ended,
    kill: () => child.kill(),
  }
}

const chatTs = (baseUrl: string, input: string, typed = '') =>
  runExample(process.execPath, ['examples/chat.ts', input], baseUrl, typed)
const chatSh = (baseUrl: string, input: string, typed = '') =>
  runExample('bash', ['examples/chat.sh', input], baseUrl, typed)

/** A port that a server can come back to after its death. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

describe('the examples', () => {
  let server: Polylog
  before(async () => {
    server = await startPolylog({ POLYLOG_DEMO_PACE_MS: '2' })
  })
  after(() => server.dispose())

  it('chat.ts prints the answer and runs a tool that the person allowed', async () => {
    const client = chatTs(server.baseUrl, 'remember that the door code is 4711', 'y\n')

    assert.equal(await client.ended, 0, client.said())
    assert.match(client.said(), /\[remember_note: awaiting_input\] Save a note: “the door code is 4711”/)
    assert.match(client.said(), /\[remember_note: succeeded\] The note was saved\./)
    assert.match(client.said(), /That is all I was asked to do\.\n$/)
  })

  it('chat.ts does not run a tool that the person did not allow', async () => {
    const client = chatTs(server.baseUrl, 'remember that the door code is 4711', 'n\n')

    assert.equal(await client.ended, 0, client.said())
    assert.match(client.said(), /remember_note was not allowed to run/)
    assert.doesNotMatch(client.said(), /\[remember_note: succeeded\]/)
  })

  it('chat.ts says what is wrong with a request and ends', async () => {
    const client = chatTs(server.baseUrl, '  ')

    assert.equal(await client.ended, 1)
    assert.match(client.said(), /messages_or_prompt_required/)
  })

  it('chat.ts prints the whole answer once, though the server is killed in the middle of it', async () => {
    const mortal = await startPolylogProcess({ POLYLOG_DEMO_PACE_MS: '4', PORT: String(await freePort()) })
    const client = chatTs(mortal.baseUrl, 'count to 200')
    await client.says(' 60 61')

    await mortal.kill()
    const reborn = await mortal.restart()

    try {
      assert.equal(await client.ended, 0, client.said())
      const numbers = Array.from({ length: 200 }, (_, index) => index + 1).join(' ')
      const answer = client.said().replaceAll('(the server is not there; trying again)\n', '')
      const [introduction, blank, counted, ...more] = answer.trimEnd().split('\n')
      assert.match(introduction ?? '', /^I am the built-in demo model/)
      assert.deepEqual([blank, counted, more], ['', numbers, []])
      assert.match(client.said(), /trying again/)
    } finally {
      await reborn.dispose()
    }
  })

  it('chat.sh comes back after it hung up, misses no frame and sees none twice', async () => {
    const client = chatSh(server.baseUrl, 'say "hello" and count to 20')

    assert.equal(await client.ended, 0, client.said())
    assert.match(client.said(), /hung up after frame \d+ of run \w+, coming back/)
    const run = / of run (\w+),/.exec(client.said())?.[1] ?? ''
    const whole = await fetch(`${server.baseUrl}/v1/agent/runs/${run}/stream`)
    const frames = client.said().replace(/\(hung up.*\)\n\n/, '')
    assert.equal(frames.trim(), (await whole.text()).trim())
  })

  it('chat.sh asks before a tool that needs consent', async () => {
    const yes = chatSh(server.baseUrl, 'remember that the door code is 4711', 'y\n')
    const no = chatSh(server.baseUrl, 'remember that the door code is 4711')

    assert.equal(await yes.ended, 0, yes.said())
    assert.match(yes.said(), /"status":"succeeded".*The note was saved/)
    assert.equal(await no.ended, 0, no.said())
    assert.match(no.said(), /remember_note was not allowed to run/)
  })

  it('chat-api.sh asks, decides, looks at the trace, likes and loads', async () => {
    const client = runExample(
      'bash',
      ['examples/chat-api.sh', 'remember that the "door" code is 4711'],
      server.baseUrl,
      'y\n',
    )

    assert.equal(await client.ended, 0, client.said())
    assert.match(client.said(), /"type":"tool_end".*"status":"success"/)
    assert.match(client.said(), /That is all I was asked to do\.\n\nThe trace:\n\{"success":true.*"status":"completed"/)
    assert.match(client.said(), /Liked:\n\{"message":"Liked","state":"like"\}/)
    assert.match(client.said(), /The conversation:\n\{"conversation_id":.*"feedback":"like"/)
  })

  it('chat-api.sh says what is wrong with a request and ends', async () => {
    const client = runExample('bash', ['examples/chat-api.sh', ' '], server.baseUrl, '')

    assert.equal(await client.ended, 1)
    assert.match(client.said(), /messages_or_prompt_required/)
  })

  it('ab.sh shows both answers, takes the vote, and reveals which was which', async () => {
    const client = runExample('bash', ['examples/ab.sh', 'say "hello"'], server.baseUrl, 'B\n')

    assert.equal(await client.ended, 0, client.said())
    assert.match(client.said(), /--- Answer a ---\n.*--- Answer b ---\n/s)
    assert.match(client.said(), /which was which:\n\{.*"preference":"b".*"side_b_config":"default"/)
    assert.match(client.said(), /All your votes so far:\n\{"success":true,"scope":"mine","votes":1,/)
  })

  it('ab.sh says what is wrong with a request and ends', async () => {
    const client = runExample('bash', ['examples/ab.sh', 'hello', 'nobody', 'default'], server.baseUrl, '')

    assert.equal(await client.ended, 1)
    assert.match(client.said(), /unknown_config/)
  })

  it('session.sh says several things in one session, whose files stay', async () => {
    const client = runExample(
      'bash',
      [
        'examples/session.sh',
        'use tool fs_write {"path":"a.txt","content":"hello"}',
        'use tool fs_read {"path":"a.txt"}',
      ],
      server.baseUrl,
      '',
    )

    assert.equal(await client.ended, 0, client.said())
    const sessions = [...client.said().matchAll(/^\(session (agt-\w+)\)$/gm)].map((match) => match[1])
    assert.equal(sessions.length, 2)
    assert.equal(new Set(sessions).size, 1)
    assert.match(client.said(), /"type":"tool_result".*"status":"success".*"modified":true/)
    assert.match(client.said(), /"type":"tool_result".*"status":"success".*"modified":false/)
  })

  it('session.sh says what is wrong with a request and ends', async () => {
    const client = runExample('bash', ['examples/session.sh', ' '], server.baseUrl, '')

    assert.equal(await client.ended, 1)
    assert.match(client.said(), /BAD_REQUEST/)
  })

  it('config/ starts with its tools, asks before it refunds, and calls its hook', async () => {
    const command = {
      file: process.execPath,
      args: [join(root, 'src/app/main.ts')],
      cwd: join(root, 'examples/config'),
    }
    const shop = await startPolylogProcess({}, undefined, command)
    try {
      const look = chatTs(shop.baseUrl, 'use the tool look_up_order with {"orderId": "A-17"}')
      assert.equal(await look.ended, 0, look.said())
      assert.match(look.said(), /\[look_up_order: succeeded\] item: “a desk lamp”, cents: 4900/)

      const refund = () => chatTs(shop.baseUrl, 'use the tool refund_order with {"orderId": "A-17"}', 'y\n')
      const first = refund()
      assert.equal(await first.ended, 0, first.said())
      assert.match(first.said(), /\[refund_order: awaiting_input\] Refund order A-17/)
      assert.match(first.said(), /\[refund_order: succeeded\] orderId: “A-17”, cents: 4900, refundedBy: /)
      const second = refund()
      assert.equal(await second.ended, 0, second.said())
      assert.match(second.said(), /Order A-17 was refunded before\./)
      assert.match(shop.log(), /'s run \w+ has succeeded/)
    } finally {
      await shop.dispose()
    }
  })

  it('remote-agent/ answers from elsewhere, asks before it warns, and has a tool in code', async () => {
    const auth = { WEATHER_AGENT_AUTH: 'Bearer secret' }
    const port = String(await freePort())
    const folder = mkdtempSync(join(tmpdir(), 'polylog-remote-'))
    cpSync(join(root, 'examples/remote-agent'), folder, { recursive: true })
    // As it is, but at a port that is free.
    const card = join(folder, 'agents/weather/agent.json')
    writeFileSync(card, readFileSync(card, 'utf8').replace('8123', port))
    // As an installed package, which the configuration imports.
    mkdirSync(join(folder, 'node_modules'))
    symlinkSync(root, join(folder, 'node_modules/polylog'))
    const agent = runExample(process.execPath, [join(folder, 'weather-agent.ts')], '', '', { ...auth, PORT: port })
    await agent.says('The weather agent is ready.')
    const command = { file: process.execPath, args: [join(root, 'src/app/main.ts')], cwd: folder }
    const server = await startPolylogProcess(auth, undefined, command)
    const ask = (input: string, typed = '', more = { AGENT: 'weather' }) =>
      runExample(process.execPath, ['examples/chat.ts', input], server.baseUrl, typed, more)
    try {
      const plain = ask('how is the weather')
      assert.equal(await plain.ended, 0, plain.said())
      assert.equal(plain.said(), 'A storm is coming.\n')

      const warned = ask('warn everybody of the storm', 'y\n')
      assert.equal(await warned.ended, 0, warned.said())
      assert.match(warned.said(), /\[send_warning: awaiting_input\] Send a storm warning to everybody/)
      assert.match(warned.said(), /Everybody is warned\.\n$/)
      const quiet = ask('warn everybody of the storm', 'n\n')
      assert.equal(await quiet.ended, 0, quiet.said())
      assert.match(quiet.said(), /I told nobody\.\n$/)

      const dice = chatTs(server.baseUrl, 'use the tool roll_dice with {"count": 2}')
      assert.equal(await dice.ended, 0, dice.said())
      assert.match(dice.said(), /\[roll_dice: succeeded\] sum: \d+/)
    } finally {
      await server.dispose()
      agent.kill()
      await agent.ended
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it('embed.ts starts a server in its own process, and ends with it', async () => {
    const data = mkdtempSync(join(tmpdir(), 'polylog-embed-'))
    try {
      const client = runExample(process.execPath, ['examples/embed.ts'], '', '', { EXAMPLE_DATA: data })
      assert.equal(await client.ended, 0, client.said())
      assert.match(client.said(), /"toolName":"toss_coins"/)
      assert.match(client.said(), /^a:\{.*"result":\[("heads"|"tails"),("heads"|"tails"),("heads"|"tails")\]/m)
      assert.match(client.said(), /^d:\{"finishReason":"stop"/m)
    } finally {
      rmSync(data, { recursive: true, force: true })
    }
  })

  it('docs/agents.md leads to an agent of one’s own that is listed and runs', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'polylog-docs-'))
    const text = readFileSync(join(root, 'docs/agents.md'), 'utf8')
    const written = [...text.matchAll(/^\*\*`([^`]+)`\*\*\n\n```\w+\n(.*?)^```$/gms)]
    assert.equal(written.length, 4)
    for (const [, path = '', body = ''] of written) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), body)
    }
    const withAgents = await startPolylog({ POLYLOG_AGENTS_DIR: join(folder, 'my-agents'), POLYLOG_DEMO_PACE_MS: '1' })
    try {
      const blocks = [...text.matchAll(/^```bash\n(.*?)^```$/gms)].map(([, block = '']) => block)
      const script = blocks.join('\necho "#####"\n').replaceAll('http://localhost:3000', withAgents.baseUrl)
      const client = runExample('bash', ['--norc', '-e', '-c', script], withAgents.baseUrl, '')

      assert.equal(await client.ended, 0, client.said())
      const [listed, ran] = client.said().split('#####\n')
      const { agents } = JSON.parse(listed ?? '') as { agents: { id: string; status: string; statusError: unknown }[] }
      const { status, statusError } = agents.find(({ id }) => id === 'meeting_minutes') ?? {}
      assert.deepEqual([status, statusError], ['available', null])
      const { data, cached, snapshotId } = JSON.parse(ran ?? '') as Record<string, unknown>
      assert.deepEqual(Object.keys(data as object).toSorted(), ['decisions', 'subject', 'tasks'])
      assert.deepEqual([cached, typeof snapshotId], [false, 'string'])
    } finally {
      await withAgents.dispose()
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it('are short enough to be read at once', () => {
    for (const file of globSync('examples/**/*.*', { cwd: root })) {
      assert.ok(readFileSync(join(root, file), 'utf8').split('\n').length <= 60, file)
    }
  })
})
