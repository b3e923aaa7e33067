// `polylog chat` as a person uses it, in a real terminal, and as a script uses it, in a pipe.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createClient } from '../../client/src/client.ts'
import { commandLine, polylog } from '../support/command-line.ts'
import { type Polylog, startPolylog } from '../support/polylog.ts'
import { compileCache, startPolylogProcess } from '../support/polylog-process.ts'
import { hasTerminal, inTerminal, type TerminalSession } from '../support/terminal.ts'
import { until } from '../support/test-server.ts'

let server: Polylog

before(async () => {
  server = await startPolylog({ POLYLOG_DEMO_PACE_MS: '4' })
})

after(async () => await server.dispose())

/** As in a real terminal; in a dumb one lines cannot be edited. The commands that move its cursor are left out here. */
function inPlainTerminal(args: string[]): TerminalSession {
  const environment = { ...compileCache(), TERM: 'xterm' }
  const session = inTerminal([process.execPath, commandLine, 'chat', ...args], process.cwd(), environment)
  // eslint-disable-next-line no-control-regex -- these are the commands
  return { ...session, shown: () => session.shown().replace(/\u001b\[[\d;?]*[A-Za-z]/g, '') }
}

function chat(user: string, ...args: string[]): TerminalSession {
  return inPlainTerminal(['--url', server.baseUrl, '--user', user, ...args])
}

const clientOf = (userId: string) => createClient({ baseUrl: server.baseUrl, userId })

/** Waits until the terminal shows something, after what was there before. */
async function shows(session: TerminalSession, what: RegExp, from = 0): Promise<number> {
  await until(`the terminal to show ${what}`, () => what.test(session.shown().slice(from)) || undefined).catch(
    (error: Error) => assert.fail(`${error.message}, but:\n${session.shown()}`),
  )
  return session.shown().length
}

describe('polylog chat in a terminal', { skip: hasTerminal ? false : 'needs python3' }, () => {
  test('answers, keeps the conversation, and Ctrl-C at the prompt leaves with the command to come back', async () => {
    const session = chat('one')
    try {
      await shows(session, /> $/)
      session.type('count to 5\r')
      let at = await shows(session, /1 2 3 4 5[^]*succeeded[^]*> $/)
      session.type('hello\r')
      at = await shows(session, /— succeeded[^]*> $/, at)
      session.type('\u0003')

      assert.equal(await session.exited, 0)
      const id = /To come back: polylog chat --resume (\S+)/.exec(session.shown())?.[1] ?? ''
      const runs = await clientOf('one').runs.list({ conversationId: id })
      assert.equal(runs.length, 2)
    } finally {
      session.child.kill('SIGKILL')
    }
  })

  test('Ctrl-C cancels the answer, and the prompt comes back', async () => {
    const session = chat('two')
    try {
      await shows(session, /> $/)
      session.type('count to 5000\r')
      await shows(session, /1 2 3/)
      session.type('\u0003')
      await shows(session, /— cancelled[^]*> $/)
      const [run] = await clientOf('two').runs.list()
      assert.equal(run?.status, 'cancelled')
      session.type('\u0004')
      assert.equal(await session.exited, 0)
    } finally {
      session.child.kill('SIGKILL')
    }
  })

  test('Ctrl-D leaves in the middle of an answer, which goes on, and --resume shows all of it', async () => {
    const session = chat('three')
    try {
      await shows(session, /> $/)
      session.type('count to 400\r')
      await shows(session, /1 2 3/)
      session.type('\u0004')
      assert.equal(await session.exited, 0)
    } finally {
      session.child.kill('SIGKILL')
    }
    const id = /goes on at the server\. To come back: polylog chat --resume (\S+) /.exec(session.shown())?.[1] ?? ''
    assert.notEqual(id, '', session.shown())
    const resumed = chat('three', '--resume', id)
    try {
      await shows(resumed, /> count to 400[^]* 399 400[^]*> $/)
      resumed.type('\u0003')
      assert.equal(await resumed.exited, 0)
    } finally {
      resumed.child.kill('SIGKILL')
    }
  })

  test('a approves a tool call, d denies it with a reason, e changes its arguments', async () => {
    const session = chat('four')
    try {
      await shows(session, /> $/)
      session.type('remember that the key is red\r')
      await shows(session, /a approve remember_note, d deny, e edit the arguments/)
      assert.doesNotMatch(session.shown(), /remember_note runs/)
      session.type('a')
      let at = await shows(session, /✔ remember_note[^]*— succeeded[^]*> $/)

      session.type('remember that the key is green\r')
      at = await shows(session, /a approve/, at)
      session.type('d')
      at = await shows(session, /reason \(may be empty\)> $/, at)
      session.type('not green\r')
      at = await shows(session, /✖ remember_note[^]*— succeeded[^]*> $/, at)

      session.type('remember that the key is blue\r')
      at = await shows(session, /a approve/, at)
      session.type('e')
      at = await shows(session, /arguments> \{"text":"the key is blue"\}/, at)
      session.type('\u0015nonsense\r')
      at = await shows(session, /have to be a JSON object/, at)
      session.type('e')
      at = await shows(session, /arguments> \{"text":"the key is blue"\}/, at)
      session.type('\u0015{"text":"the key is yellow"}\r')
      at = await shows(session, /✔ remember_note[^]*— succeeded[^]*> $/, at)

      session.type('search my notes for key\r')
      await shows(session, /— succeeded[^]*> $/, at)
      const answer = session.shown().slice(at)
      assert.match(answer, /key is red/)
      assert.match(answer, /key is yellow/)
      assert.doesNotMatch(answer, /key is (?:green|blue)/)
    } finally {
      session.child.kill('SIGKILL')
    }
  })

  test('a decision that is made elsewhere withdraws the question', async () => {
    const session = chat('five')
    try {
      await shows(session, /> $/)
      session.type('remember that it rains\r')
      await shows(session, /a approve/)
      const client = clientOf('five')
      const [run] = await client.runs.list()
      for await (const frame of client.attach(run?.runId ?? '')) {
        if (frame.event !== 'tool.state' || frame.data.confirmationId === undefined) continue
        await client.confirm(frame.data.confirmationId)
        break
      }
      const at = await shows(session, /✔ remember_note[^]*— succeeded[^]*> $/)
      session.type('hello\r')
      await shows(session, /— succeeded/, at)
    } finally {
      session.child.kill('SIGKILL')
    }
  })

  test('an answer goes on over a server that is killed and started again', async () => {
    const first = await startPolylogProcess({ POLYLOG_DEMO_PACE_MS: '4' })
    const session = inPlainTerminal(['--url', first.baseUrl, '--user', 'ada'])
    try {
      await shows(session, /> $/)
      session.type('count to 200\r')
      await shows(session, /1 2 3/)
      await first.kill()
      await shows(session, /the connection is lost/)
      const again = await first.restartProcess({ PORT: new URL(first.baseUrl).port })
      try {
        await shows(session, /connected again[^]* 199 200[^]*— succeeded[^]*> $/)
      } finally {
        await again.dispose()
      }
    } finally {
      session.child.kill('SIGKILL')
    }
  })
})

describe('polylog chat in a pipe', () => {
  const ask = (input: string, ...args: string[]) =>
    polylog(['chat', '--url', server.baseUrl, '--user', 'pipe', ...args], { input })

  test('each line is a message of one conversation', async () => {
    const { code, stdout } = await ask('count to 3\ncount to 4\n')
    assert.equal(code, 0)
    assert.match(stdout, /1 2 3\n— succeeded[^]*1 2 3 4\n— succeeded/)
  })

  test('--json gives the frames, and an argument is the message', async () => {
    const { code, stdout } = await ask('', 'count to 3', '--json')
    assert.equal(code, 0)
    const frames = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { event: string; data: { status?: string } })
    assert.equal(frames[0]?.event, 'agent.start')
    assert.deepEqual([frames.at(-1)?.event, frames.at(-1)?.data.status], ['agent.end', 'succeeded'])
  })

  test('a tool call that waits is exit code 1, with the command that decides it', async () => {
    const { code, stderr } = await ask('remember that it snows\n', '--user', "Ann O'Hara")
    assert.equal(code, 1)
    assert.match(stderr, /polylog: A tool call of run \w+ waits for a decision.*polylog chat --resume \w+/)
    const commands = stderr.split('\n').filter((line) => line.includes('--resume'))
    assert.equal(commands.length, 2)
    for (const line of commands) {
      assert.ok(
        line.endsWith(` --url ${server.baseUrl} --user 'Ann O'\\''Hara'`),
        `can be pasted into a shell: ${line}`,
      )
    }
  })

  test('nothing to resume is exit code 3, a model that is not there is exit code 1 or 2', async () => {
    assert.equal((await ask('', '--resume', 'nothing')).code, 3)
    const { code, stderr } = await ask('hello\n', '--model', 'nowhere/none')
    assert.ok(code === 1 || code === 2)
    assert.match(stderr, /nowhere/)
  })
})
