// The package that `npm pack` makes, as a user installs it: JavaScript, a command, and no other
// file of the clone. It is unpacked into an empty folder beside the production dependencies,
// which are links to those of this clone, so that no network is needed.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { agentFolder } from '../support/agent-folder.ts'
import { callServer, type Json, named, runIdOf, until } from '../support/test-server.ts'
import { type PolylogProcess, startPolylogProcess } from '../support/polylog-process.ts'
import { openStream } from '../support/sse.ts'

const root = join(import.meta.dirname, '../..')
/** Several times what is packed today. */
const packedBytesMax = 2 * 1024 * 1024

let folder: string
let tarball: string
let installed: string
let files: string[]

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'polylog-package-'))
  installed = join(folder, 'node_modules/polylog')
  tarball = pack(folder)
  mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1'])
  files = globSync('**/*', { cwd: installed, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(installed.length + 1)
        .replaceAll('\\', '/'),
    )
  linkDependencies(join(folder, 'node_modules'))
})

after(() => rmSync(folder, { recursive: true, force: true }))

function pack(into: string): string {
  const npm = process.env.npm_execpath
  const command = npm === undefined ? 'npm' : process.execPath
  execFileSync(command, [...(npm === undefined ? [] : [npm]), 'pack', '--pack-destination', into, '--loglevel=error'], {
    cwd: root,
    // `prepack` runs `node`: this one.
    env: { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}` },
    stdio: 'pipe',
  })
  const [name] = globSync('*.tgz', { cwd: into })
  return join(into, name as string)
}

/** Only those that an install without development dependencies has at the top. */
function linkDependencies(modules: string): void {
  type Lock = { packages: Record<string, { dev?: boolean; link?: boolean }> }
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock
  for (const [path, { dev, link }] of Object.entries(packages)) {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1]
    if (name === undefined || dev === true || link === true) continue
    const found = join(root, path)
    if (statSync(found, { throwIfNoEntry: false }) === undefined) continue
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(realpathSync(found), join(modules, name), 'junction')
  }
}

/** As npm links the command of an installed package. */
function command(): string {
  const link = join(folder, 'node_modules/.bin/polylog')
  mkdirSync(dirname(link), { recursive: true })
  const { bin } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as { bin: { polylog: string } }
  rmSync(link, { force: true })
  symlinkSync(join('../polylog', bin.polylog), link)
  return link
}

async function start(data: string, environment: Record<string, string> = {}): Promise<PolylogProcess> {
  const path = `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}`
  return await startPolylogProcess({ PATH: path, ...environment }, data, { file: command(), args: [], cwd: folder })
}

describe('the packed server', () => {
  test('holds what it needs to run, and nothing else', () => {
    const allowed =
      /^(package\.json|README\.md|LICENSE|index\.js|bin\/polylog\.js|dist\/.+\.(d\.ts|js|json|sql)|console\/dist\/.+|(agents|skills)\/.+)$/
    assert.deepEqual(
      files.filter((file) => !allowed.test(file)),
      [],
    )
    assert.deepEqual(
      files.filter((file) => /\.test\.|(?<!\.d)\.ts$|\.env|\.npmrc|\.pem$|\.key$|\.db$|\.log$|(^|\/)data\//.test(file)),
      [],
    )
    assert.ok(statSync(tarball).size < packedBytesMax, `${statSync(tarball).size} bytes`)
  })

  test('has a built file for each source file, and every file that is read at run time', () => {
    const builtOf = (pattern: string, from: RegExp, to: string) =>
      globSync(pattern, { cwd: root })
        .map((file) => file.replaceAll('\\', '/'))
        .filter((file) => !file.endsWith('.test.ts'))
        .map((file) => file.replace(from, to).replace(/\.ts$/, '.js'))
    const sources = builtOf('src/**/*.{ts,json,sql}', /^src/, 'dist')
    const clientSources = builtOf('client/src/*.ts', /^client\/src/, 'dist/client')
    const built = files.filter((file) => file.startsWith('dist/') && !file.endsWith('.d.ts'))
    const ofClient = built.filter((file) => file.startsWith('dist/client/'))

    assert.ok(sources.length > 200)
    assert.deepEqual(built.filter((file) => !ofClient.includes(file)).toSorted(), sources.toSorted())
    // The command line uses a part of the client.
    assert.ok(ofClient.includes('dist/client/client.js'))
    assert.deepEqual(
      ofClient.filter((file) => !clientSources.includes(file)),
      [],
    )
  })

  test('names no folder of the machine it was built on, and holds no key', () => {
    const key = /-----BEGIN [A-Z ]*PRIVATE KEY|\bsk-[\w-]{20,}|\bAKIA[A-Z0-9]{16}\b|\bgh[pos]_\w{36}/
    for (const file of files) {
      const text = readFileSync(join(installed, file), 'utf8')
      assert.ok(!text.includes(root), file)
      assert.doesNotMatch(text, key, file)
    }
  })

  test('answers a chat, is killed in the middle of its life, and has the run after the next start', async () => {
    const data = join(folder, 'data')
    const first = await start(data)
    let runId: string
    try {
      const stream = await openStream(`${first.baseUrl}/v1/agent/chat?userId=ada`, {
        method: 'POST',
        body: { messages: [{ role: 'user', content: 'What time is it?' }] },
      })
      runId = runIdOf(stream)
      await stream.waitFor(named('agent.end'))
      assert.ok(stream.frames.some(named('tool.state')))
    } finally {
      await first.kill()
    }

    const second = await start(data)
    try {
      const run = await callServer(second.baseUrl, 'GET', `/v1/agent/runs/${runId}`, { user: 'ada' })
      assert.deepEqual([run.status, run.body.status], [200, 'succeeded'])
      const again = await openStream(`${second.baseUrl}/v1/agent/runs/${runId}/stream?userId=ada`)
      await again.waitFor(named('agent.end'))
      const page = await callServer(second.baseUrl, 'GET', '/')
      const [, script = ''] = /src="(\/assets\/[^"]+)"/.exec(page.text) ?? []
      assert.equal((await callServer(second.baseUrl, 'GET', script)).status, 200, 'the console and its script')
    } finally {
      assert.equal(await second.stop(), 0)
    }
  })

  test('finds its threads, agents, skills and pages where they are', async () => {
    const data = join(folder, 'data-of-tools')
    mkdirSync(join(data, 'workspace/project'), { recursive: true })
    writeFileSync(join(data, 'workspace/project/list.txt'), 'pears\napples\n')
    const server = await start(data)
    try {
      const stream = await openStream(`${server.baseUrl}/api/chat/stream`, {
        method: 'POST',
        body: {
          message: 'use the tool fs_grep with {"pattern": "app?les", "path": "."}',
          context: { userId: 'ada', workingDir: 'project' },
        },
      })
      await stream.ended()
      assert.match(stream.text(), /"type":"tool_result".*"status":"success"/)
      const skills = await callServer(server.baseUrl, 'GET', '/v1/skills')
      assert.match(skills.text, /text-digest/)
      const page = await callServer(server.baseUrl, 'GET', '/docs/')
      assert.equal(page.status, 200)
      assert.doesNotMatch(server.log(), /watchdog stopped|Cannot find module|ERR_/)
    } finally {
      await server.dispose()
    }
  })

  test('has all built-in agents, adds those of a folder of the user, and offers them over MCP', async () => {
    const own = agentFolder()
    own.agent('mine')
    const server = await start(join(folder, 'data-of-agents'), { POLYLOG_AGENTS_DIR: own.path })
    try {
      const { body } = await callServer(server.baseUrl, 'GET', '/v1/agent/list')
      const builtIn = ['chat_conversation', 'archive_brief', 'title_summary', 'network_action', 'contact_insight']
      assert.deepEqual(
        (body.agents as Json[]).map(({ id, status }) => `${id} ${status}`),
        [...builtIn, 'mine'].map((id) => `${id} available`),
      )
      const client = new Client({ name: 'test', version: '1' })
      await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', server.baseUrl)))
      assert.ok((await client.listTools()).tools.some(({ name }) => name === 'mine'))
      await client.close()
    } finally {
      await server.dispose()
      own.dispose()
    }
  })

  test('serves with a polylog.config.ts and its tool, and starts again when the file changes', async () => {
    const project = join(folder, 'project')
    const config = (greeting: string) => `
      import { defineConfig, defineTool, z } from 'polylog'
      import { greeting } from './greeting.ts'
      export default defineConfig({
        demoPaceMs: 0,
        tools: [
          defineTool({
            name: 'greet', description: 'Greets.', input: z.object({ who: z.string() }), effect: 'read',
            execute: ({ who }: { who: string }) => \`${greeting}, \${who}\${greeting}\`,
          }),
        ],
      })`
    const save = (file: string, text: string) => writeFileSync(join(project, file), text)
    mkdirSync(project)
    save('package.json', '{ "type": "module" }')
    save('greeting.ts', "export const greeting: string = '.'")
    save('polylog.config.ts', config('Hello'))
    const path = `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}`
    const run = { file: command(), args: ['--watch'], cwd: project }
    const server = await startPolylogProcess({ PATH: path }, join(project, 'data'), run)
    /** What the server answers after it has been started so many times. */
    const greeting = async (starts: number) => {
      const baseUrl = await until(`start ${starts}`, () => {
        const addresses = [...server.log().matchAll(/serves at (http:\/\/[^\s"]+)/g)]
        return addresses[starts - 1]?.[1]
      })
      const body = { userId: 'ada', input: 'use the tool greet with {"who": "Bo"}' }
      const stream = await openStream(`${baseUrl}/v1/agent/chat`, { method: 'POST', body })
      await stream.ended()
      return stream.text()
    }
    try {
      assert.match(await greeting(1), /Hello, Bo\./)
      save('polylog.config.ts', 'export default { prot: 1 }')
      const mistake = /prot is not a setting; did you mean port\?\n[^]*Waiting for file changes/
      await until('the mistake', () => mistake.test(server.log()) || undefined)
      save('polylog.config.ts', config('Good day'))
      assert.match(await greeting(2), /Good day, Bo\./)
      save('greeting.ts', "export const greeting: string = '!'")
      assert.match(await greeting(3), /Good day, Bo!/)
      assert.match(server.log(), /"msg":"stopped"/)
      assert.equal(await server.stop(), 0)
    } finally {
      await server.stop()
    }
  })

  test('is embedded by a program, whose compiler knows its types', () => {
    const program = join(folder, 'program')
    mkdirSync(join(program, 'node_modules/@types'), { recursive: true })
    symlinkSync(
      realpathSync(join(root, 'node_modules/@types/node')),
      join(program, 'node_modules/@types/node'),
      'junction',
    )
    writeFileSync(join(program, 'package.json'), '{ "type": "module" }')
    const code = (setting: string) => `
      import { createPolylog, defineTool, z, type PolylogConfig } from 'polylog'
      const tool = defineTool({
        name: 'add', description: 'Adds.', input: z.object({ a: z.number() }), effect: 'read', execute: ({ a }) => a.toFixed(),
      })
      const config: PolylogConfig = { ${setting}: 0, data: 'data', log: 'silent', tools: [tool] }
      const server = await createPolylog(config)
      console.log(await server.listen())
      await server.close()`
    writeFileSync(join(program, 'good.ts'), code('port'))
    writeFileSync(join(program, 'bad.ts'), code('prot'))
    const compiler = join(root, 'node_modules/typescript-native/bin/tsc')
    const compile = (file: string) =>
      spawnSync(
        process.execPath,
        [compiler, '--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--types', 'node', file],
        { cwd: program, encoding: 'utf8' },
      )

    const good = compile('good.ts')
    assert.deepEqual([good.stdout, good.status], ['', 0])
    assert.match(compile('bad.ts').stdout, /bad\.ts.*'prot' does not exist/)
    const { status, stdout, stderr } = spawnSync(process.execPath, ['good.ts'], { cwd: program, encoding: 'utf8' })
    assert.deepEqual([status, stderr], [0, ''])
    assert.match(stdout, /^http:\/\/127\.0\.0\.1:\d+\n$/)
  })

  test('has the command line: help, version, and a suggestion for a misspelt command', () => {
    const run = (...args: string[]) => spawnSync(process.execPath, [command(), ...args], { encoding: 'utf8' })

    assert.match(run('--help').stdout, /Usage: polylog[^]*\n {2}serve /)
    assert.match(run('--version').stdout, /^\d+\.\d+\.\d+\n$/)
    const misspelt = run('sevre')
    assert.deepEqual(
      [misspelt.status, misspelt.stderr],
      [2, 'polylog: There is no command sevre. Did you mean serve?\n'],
    )
  })

  test('says in a sentence that a Node is too old', () => {
    const old = `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.1.0'}})`
    const { status, stderr } = spawnSync(process.execPath, ['--import', old, command()], { encoding: 'utf8' })

    assert.equal(status, 1)
    assert.equal(stderr, 'Polylog cannot start. It needs Node 24 or later, and this is Node 20.1.0.\n')
  })
})
