// Commands: what they see, what they leave behind, and how they end. Real processes,
// once without a sandbox and once in each that works on this machine.

import assert from 'node:assert/strict'
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { manualClock } from '../../../test/support/manual-clock.ts'
import { type Bench, openBench, secret } from '../../../test/support/workspace.ts'
import { findSandbox, type SandboxKind } from './shell-sandbox.ts'
import { until } from '../../../test/support/until.ts'

/** Processes whose command line holds the text. */
function processesWith(text: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text)
    } catch {
      return false
    }
  })
}

/** A sleep duration that no other process uses. */
let naps = 0
const nap = () => `${3000 + ++naps}.${process.pid}`

for (const kind of ['none', 'unshare', 'bwrap'] as SandboxKind[]) {
  describe(
    `bash_run (${kind})`,
    { skip: findSandbox(kind) === null ? `${kind} does not work on this machine` : false },
    () => {
      let bench: Bench
      before(() => {
        process.env['POLYLOG_TEST_SECRET'] = 'sk-do-not-leak'
        bench = openBench({ bash: 'allow', sandbox: kind })
      })
      after(async () => {
        delete process.env['POLYLOG_TEST_SECRET']
        await bench.close()
      })

      test('gives the output of both streams and the exit code, and works in the directory', async () => {
        const answer = await bench.use('bash_run', { cmd: 'echo out; echo err >&2; pwd; echo made > made.txt' })
        assert.equal(answer.ok, true)
        assert.equal(answer.output.code, 0)
        assert.equal(answer.output.background, false)
        for (const line of ['out', 'err', bench.directory])
          assert.ok(answer.output.output.split('\n').includes(line), line)
        assert.equal(bench.read('made.txt'), 'made\n')
        assert.match(answer.summary, /^Command succeeded: .*out/)
      })

      test('an exit code other than 0 is an answer that says no', async () => {
        const answer = await bench.use('bash_run', { cmd: 'exit 3' })
        assert.equal(answer.ok, false)
        assert.deepEqual(answer.output, { background: false, code: 3, output: '' })
        assert.equal(answer.summary, 'Command failed with exit code 3: no output')
        const killed = await bench.use('bash_run', { cmd: "bash -c 'kill -TERM $$'; exit $?" })
        assert.equal(killed.output.code, 143)
      })

      test('knows nothing of the server’s environment', async () => {
        const { output } = await bench.use('bash_run', { cmd: 'env; cat /proc/self/environ | tr "\\0" "\\n"' })
        assert.doesNotMatch(output.output, /sk-do-not-leak|POLYLOG_TEST_SECRET|NODE_/)
        const names = output.output
          .split('\n')
          .filter((line: string) => line.includes('='))
          .map((line: string) => line.split('=')[0])
        const allowed = ['PATH', 'HOME', 'PWD', 'LANG', 'TERM', 'POLYLOG_SHELL', 'SHLVL', '_', 'OLDPWD']
        for (const name of names) assert.ok(allowed.includes(name), name)
      })

      test('has no input to wait for, and no open file of the server', async () => {
        // Without a pipe, which would be an open file of its own.
        const { output } = await bench.use('bash_run', { cmd: 'cat; ls /proc/$$/fd > open; cat open' })
        assert.equal(output.output, '0\n1\n2\n')
      })

      test('at its time limit all of it is gone, and the call throws', async () => {
        const [a, b, c] = [nap(), nap(), nap()]
        const call = bench.use('bash_run', {
          cmd: `echo begun; sleep ${a} & setsid sleep ${b} & (trap '' TERM INT HUP; sleep ${c}; true)`,
          timeout_ms: 700,
        })
        await until('the processes', () => [a, b, c].every((time) => processesWith(`sleep\0${time}`).length > 0))
        await assert.rejects(call, (error: { code: string; message: string }) => {
          assert.equal(error.code, 'tool_timed_out')
          assert.match(error.message, /^Command execution timeout: stopped after 700 ms.*begun/)
          return true
        })
        await until('their end', () => [a, b, c].every((time) => processesWith(time).length === 0))
      })

      test('a cancel ends all of it', async () => {
        const [a, b] = [nap(), nap()]
        const call = new AbortController()
        const running = bench.use('bash_run', { cmd: `sleep ${a} & setsid sleep ${b} & wait` }, { signal: call.signal })
        await until('the processes', () => [a, b].every((time) => processesWith(`sleep\0${time}`).length > 0))
        call.abort(new Error('cancelled'))
        await assert.rejects(running, /cancelled/)
        await until('their end', () => [a, b].every((time) => processesWith(time).length === 0))
      })

      test('what a finished command left running is ended with it', async () => {
        const [a, b, c] = [nap(), nap(), nap()]
        const answer = await bench.use('bash_run', {
          cmd: `sleep ${a} & setsid sleep ${b} & env -i sleep ${c} & echo done`,
        })
        assert.equal(answer.ok, true)
        assert.match(answer.output.output, /done/)
        await until('their end', () => [a, b, c].every((time) => processesWith(`sleep\0${time}`).length === 0))
      })

      test('reports its lines while it runs', async () => {
        const lines: string[] = []
        const call = new AbortController()
        const running = bench.use(
          'bash_run',
          { cmd: `echo first; sleep ${nap()}` },
          { signal: call.signal, progress: (line) => lines.push(line) },
        )
        await until('the first line', () => lines.includes('first'))
        call.abort(new Error('enough'))
        await assert.rejects(running, /enough/)
      })

      test('a flood of output is cut in the middle, and said to be', async () => {
        let told = 0
        const answer = await bench.use(
          'bash_run',
          { cmd: 'echo begin; head -c 3000000 /dev/zero | tr "\\0" x; echo; echo end' },
          { progress: (text) => (told += text.length) },
        )
        const { output } = answer.output
        assert.match(output, /^begin\n/)
        assert.match(output, /\nend\n$/)
        assert.match(output, /\[… \d+ characters left out …\]/)
        assert.ok(output.length < 500_000)
        assert.ok(told < 250_000)
      })

      test('in the background: runs on, reports its output, and is stopped with all its processes', async () => {
        const [a, b] = [nap(), nap()]
        const started = await bench.use('bash_run', {
          cmd: `echo hello; setsid sleep ${b} & sleep ${a}`,
          background: true,
        })
        const id = started.output.shell_id
        assert.equal(started.ok, true)
        await until('the processes', () => [a, b].every((time) => processesWith(`sleep\0${time}`).length > 0))
        // The output comes through a pipe, which may be read later than the processes are seen.
        const logs = await until('its output', async () => {
          const answer = await bench.use('bash_logs', { shell_id: id })
          return answer.output.output === '' ? undefined : answer
        })
        assert.deepEqual(logs.output, { ok: true, shell_id: id, running: true, code: null, output: 'hello\n' })

        const foreign = await bench.use('bash_logs', { shell_id: id }, { conversationId: 'another' })
        assert.equal(foreign.ok, false, 'another session does not see it')
        assert.equal((await bench.use('bash_kill', { shell_id: id }, { conversationId: 'another' })).ok, false)

        assert.equal((await bench.use('bash_kill', { shell_id: id })).ok, true)
        await until('their end', () => [a, b].every((time) => processesWith(time).length === 0))
        assert.equal((await bench.use('bash_logs', { shell_id: id })).ok, false)
      })

      test('the end of a command in the background is reported with its exit code', async () => {
        const { output } = await bench.use('bash_run', { cmd: 'echo bye; exit 4', background: true })
        const logs = await until('its end', async () => {
          const found = await bench.use('bash_logs', { shell_id: output.shell_id })
          return found.output.running ? undefined : found
        })
        assert.deepEqual(logs.output, { ok: true, shell_id: output.shell_id, running: false, code: 4, output: 'bye\n' })
      })

      test('closing the tools ends what is in the background', async () => {
        const other = openBench({ bash: 'allow', sandbox: kind })
        const time = nap()
        await other.use('bash_run', { cmd: `sleep ${time}`, background: true })
        await until('the process', () => processesWith(`sleep\0${time}`).length > 0)
        await other.close()
        assert.deepEqual(processesWith(time), [])
      })

      if (kind !== 'none') {
        test('sees no process of others, so it cannot read the server’s environment either', async () => {
          const { output } = await bench.use('bash_run', {
            cmd: 'cat /proc/[0-9]*/environ | tr "\\0" "\\n"; ls -d /proc/[0-9]* | wc -l',
          })
          assert.doesNotMatch(output.output, /sk-do-not-leak/)
          assert.ok(Number(output.output.trim().split('\n').at(-1)) < 10)
        })
      }
      if (kind === 'bwrap') {
        test('sees no file outside its directory', async () => {
          const { output } = await bench.use('bash_run', { cmd: 'cat ../../secret.txt ../theirs/secret.txt' })
          assert.ok(!output.output.includes(secret))
        })
      }
    },
  )
}

/** A server of its own with commands; `script` has a bench. */
function anotherServer(
  script: string,
  inherited: (number | 'ignore')[] = [],
): ChildProcessByStdio<null, Readable, null> {
  const support = new URL('../../../test/support/workspace.ts', import.meta.url).href
  const opening = `import { openBench } from ${JSON.stringify(support)}\nconst bench = openBench({ bash: 'allow', sandbox: 'none' })\n`
  return spawn(process.execPath, ['--input-type=module', '-e', opening + script], {
    stdio: ['ignore', 'pipe', 'inherit', ...inherited],
  }) as ChildProcessByStdio<null, Readable, null>
}

test('a server that is killed takes its commands along', async () => {
  const time = nap()
  const server = anotherServer(`
    bench.use('bash_run', { cmd: 'sleep ${time} & sleep ${time}' })
    await bench.use('bash_run', { cmd: 'sleep ${time}', background: true })
    console.log(bench.folder)
    setInterval(() => {}, 1000)`)
  const folder = String((await once(server.stdout, 'data'))[0]).trim()
  await until('the commands', () => processesWith(`sleep\0${time}`).length >= 3)
  server.kill('SIGKILL')
  await until('their end', () => processesWith(time).length === 0)
  rmSync(folder, { recursive: true })
})

test('what the server itself had inherited is not handed on', async () => {
  const file = openSync('/dev/null', 'r')
  const server = anotherServer(
    `console.log((await bench.use('bash_run', { cmd: 'ls /proc/$$/fd > open; cat open' })).output.output)
    await bench.close()`,
    // Node closes the first sixteen by itself.
    [...Array.from({ length: 20 }, () => 'ignore' as const), file],
  )
  assert.equal(String((await once(server.stdout, 'data'))[0]).trim(), '0\n1\n2')
  closeSync(file)
})

test('a process that hides from its shell does not keep the call waiting', async () => {
  const bench = openBench({ bash: 'allow' })
  const time = nap()
  try {
    const answer = await bench.use('bash_run', { cmd: `env -i setsid sleep ${time} & echo done` })
    assert.equal(answer.output.output, 'done\n')
  } finally {
    // What docs/workspace.md says that we cannot end.
    for (const pid of processesWith(`sleep\0${time}`)) process.kill(Number(pid), 'SIGKILL')
    await bench.close()
  }
})

test('a command starts in the directory that was checked, also when its name becomes a link', async () => {
  const bench = openBench({ bash: 'allow' })
  try {
    const workspace = await bench.folders.of({ workspace: { dir: 'mine' } })
    const inDirectory = workspace.inDirectory.bind(workspace)
    // The swap comes after the directory was opened.
    workspace.inDirectory = (place, use) =>
      inDirectory(place, (handle) => {
        renameSync(bench.directory, `${bench.directory}-moved`)
        symlinkSync(join(bench.folder, 'workspace', 'theirs'), bench.directory)
        return use(handle)
      })
    const folders = bench.folders as { of: typeof bench.folders.of }
    folders.of = async () => workspace
    const answer = await bench.use('bash_run', { cmd: 'cat secret.txt' })
    assert.equal(answer.ok, false)
    assert.ok(!answer.output.output.includes(secret))
  } finally {
    await bench.close()
  }
})

test('a command in the background has a time limit too', async () => {
  const clock = manualClock()
  const bench = openBench({ bash: 'allow', clock })
  try {
    const time = nap()
    const { output } = await bench.use('bash_run', { cmd: `sleep ${time}`, background: true })
    await until('the process', () => processesWith(`sleep\0${time}`).length > 0)
    await clock.advance(60 * 60_000)
    await until('its end', () => processesWith(`sleep\0${time}`).length === 0)
    assert.match((await bench.use('bash_logs', { shell_id: output.shell_id })).summary, /time limit/)
  } finally {
    await bench.close()
  }
})

test('a session has at most eight commands in the background', async () => {
  const bench = openBench({ bash: 'allow' })
  try {
    const start = () => bench.use('bash_run', { cmd: `sleep ${nap()}`, background: true })
    for (let i = 0; i < 8; i += 1) assert.equal((await start()).ok, true)
    assert.equal((await start()).ok, false)
  } finally {
    await bench.close()
  }
})

test('a session has at most eight commands in the background, also if one step starts more', async () => {
  const bench = openBench({ bash: 'allow' })
  try {
    const start = () => bench.use('bash_run', { cmd: `sleep ${nap()}`, background: true })
    const started = await Promise.all(Array.from({ length: 12 }, start))
    assert.equal(started.filter(({ ok }) => ok).length, 8)
  } finally {
    await bench.close()
  }
})

test('a command with a NUL character is refused with the reason', async () => {
  const bench = openBench({ bash: 'allow' })
  try {
    const { ok, summary } = await bench.use('bash_run', { cmd: 'echo a\0b' })
    assert.deepEqual([ok, summary], [false, 'A command must not hold a NUL character.'])
  } finally {
    await bench.close()
  }
})

test('commands are off unless configured, and asked about unless allowed', async () => {
  for (const [bash, confirm] of [
    ['off', undefined],
    ['confirm', 'always'],
    ['allow', 'never'],
  ] as const) {
    const bench = openBench({ bash })
    assert.equal(bench.registry.get('bash_run')?.confirm, confirm)
    const listed = bench.registry.list().find(({ name }) => name === 'bash_run')
    assert.equal(listed?.available, bash !== 'off')
    if (bash === 'off') assert.match(listed?.reason ?? '', /POLYLOG_BASH/)
    await bench.close()
  }
})

test('the best sandbox that works is taken, and a named one that does not work is not replaced', () => {
  const only =
    (...kinds: SandboxKind[]) =>
    (one: { kind: SandboxKind }) =>
      kinds.includes(one.kind)
  assert.equal(findSandbox('auto', only('bwrap', 'unshare'))?.kind, 'bwrap')
  assert.equal(findSandbox('auto', only('unshare'))?.kind, 'unshare')
  assert.equal(findSandbox('auto', only())?.kind, 'none')
  assert.equal(findSandbox('bwrap', only('unshare')), null)
  assert.equal(findSandbox('none', only('bwrap'))?.kind, 'none')
})

test('bwrap is asked for the working directory and the system only, without a network', () => {
  const line = findSandbox('bwrap', () => true)?.command('echo hi', '/w/mine') ?? []
  assert.equal(line[0], 'bwrap')
  for (const flag of ['--unshare-all', '--die-with-parent', '--new-session']) assert.ok(line.includes(flag))
  const writable = line.flatMap((word, at) => (word === '--bind' ? [line[at + 1]] : []))
  assert.deepEqual(writable, ['/w/mine'])
  assert.deepEqual(line.slice(-5), ['/bin/bash', '--noprofile', '--norc', '-c', 'echo hi'])
  assert.ok(!line.includes('/home') && !line.includes('/etc'))
})

test('sentences for people show the command', () => {
  const bench = openBench({ bash: 'allow' })
  mkdirSync(bench.directory, { recursive: true })
  assert.equal(bench.registry.get('bash_run')?.describe({ cmd: 'npm  test' }), 'Run Bash: npm test')
  return bench.close()
})
