// The files for deployments do what docs/deploy.md says: the Dockerfile step by step as far as no engine is needed, compose,
// nginx in front of real nodes, the unit of systemd, and the configurations in the page.

import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, matchesGlob } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { parse } from 'yaml'
import { doctorStream } from '../../client/src/doctor.ts'
import { createClient } from '../../client/src/index.ts'
import { ensureProgram } from '../../scripts/ensure-programs.ts'
import { readConfig } from '../../src/app/config.ts'
import { settingTable } from '../../src/app/setting-table.ts'
import { closedAddress } from '../support/closed-port.ts'
import { startCluster } from '../support/cluster.ts'
import { startPolylog } from '../support/polylog.ts'
import { hangsAfter, says, someone, until } from '../support/test-server.ts'

const root = join(import.meta.dirname, '../..')
const read = (file: string) => readFileSync(join(root, file), 'utf8')

const closedPort = async () => Number(new URL(await closedAddress()).port)

type Instruction = { stage: string; name: string; text: string }

/** The instructions of the Dockerfile, with lines that go on joined. */
function instructionsOf(text: string): Instruction[] {
  const lines = text.replace(/\\\n/g, ' ').split('\n')
  let stage = ''
  let stages = 0
  return lines
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', rest = ''] = /^(\w+)\s+(.*)$/.exec(line) ?? []
      if (name === 'FROM') {
        stages += 1
        stage = / AS (\w+)/.exec(rest)?.[1] ?? `stage ${stages}`
      }
      return { stage, name, text: rest.replace(/\s+/g, ' ').trim() }
    })
}

const instructions = instructionsOf(read('Dockerfile'))
const final = instructions.filter(({ stage }) => stage === instructions.at(-1)?.stage)
const one = (name: string) => final.find((each) => each.name === name)?.text ?? ''

function isIgnored(file: string): boolean {
  const patterns = read('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const parents = file.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'))
  return patterns.some((pattern) => parents.some((path) => matchesGlob(path, pattern)))
}

describe('the Dockerfile', () => {
  test('copies only what is there, and its build has every file that the package is made of', () => {
    const sources = instructions
      .filter(({ name, text }) => name === 'COPY' && !text.startsWith('--from'))
      .flatMap(({ text }) => text.split(' ').slice(0, -1))
    for (const source of sources) assert.ok(existsSync(join(root, source)), source)
    const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' }).split('\0')
    const needed = tracked.filter((file) =>
      /^(src|client|console|agents|skills|bin|scripts)\/|^(index\.js|package(-lock)?\.json|\.npmrc|tsconfig[^/]*\.json|README\.md|LICENSE)$/.test(
        file,
      ),
    )
    assert.ok(needed.length > 500)
    assert.deepEqual(needed.filter(isIgnored), [])
    for (const secret of ['.env', '.env.local', 'node_modules/x/index.js', '.git/config', 'data/polylog.db'])
      assert.ok(isIgnored(secret), secret)
  })

  test('installs what the lock file has, without scripts, and builds the package as npm pack does', () => {
    const runs = instructions.filter(({ name }) => name === 'RUN').map(({ text }) => text)
    const installs = runs.filter((text) => text.includes('npm ci'))
    assert.equal(installs.length, 2)
    for (const text of installs) assert.match(text, /--ignore-scripts/)
    assert.match(installs[1] ?? '', /--omit=dev/)
    assert.ok(runs.some((text) => text.includes('npm pack --pack-destination /packed')))
    const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } }
    const version = /^NODE=node:(\d+)-/.exec(instructions.find(({ name }) => name === 'ARG')?.text ?? '')?.[1]
    assert.ok(Number(version) >= Number(engines.node.replace(/\D/g, '')))
  })

  test('runs as a user, with its data in a volume, and does not start before somebody chose who may use it', () => {
    assert.equal(one('USER'), 'node')
    assert.equal(one('VOLUME'), '/data')
    const environment = Object.fromEntries(
      one('ENV')
        .split(' ')
        .map((pair) => pair.split('=') as [string, string]),
    )
    assert.deepEqual(
      Object.keys(environment).filter((name) => !(name in settingTable)),
      [],
    )
    assert.equal(environment['POLYLOG_DATA'], '/data')
    assert.throws(() => readConfig(environment), /POLYLOG_AUTH/)
    assert.equal(readConfig({ ...environment, POLYLOG_AUTH: 'required' }).host, '0.0.0.0')
    const [program, file] = JSON.parse(one('ENTRYPOINT')) as string[]
    assert.deepEqual([program, file?.replace('/app/', '')], ['node', 'bin/polylog.js'])
    assert.deepEqual(JSON.parse(one('CMD')), ['serve'])
  })

  test('its health check is 0 for a server that works and 1 for none', async () => {
    const command = JSON.parse(/CMD (\[.*\])$/.exec(one('HEALTHCHECK'))?.[1] ?? '[]') as string[]
    const exitOf = async (port: string) => {
      const child = spawn(process.execPath, command.slice(1), { env: { PORT: port }, stdio: 'ignore' })
      const [code] = (await once(child, 'exit')) as [number]
      return code
    }
    const server = await startPolylog()
    try {
      assert.equal(await exitOf(new URL(server.baseUrl).port), 0)
    } finally {
      await server.dispose()
    }
    assert.equal(await exitOf(String(await closedPort())), 1)
  })
})

type Service = {
  image: string
  environment?: Record<string, string>
  command?: string
  networks?: { cluster?: { ipv4_address?: string } }
}
const compose = (file: string) => parse(read(file), { merge: true }) as { services: Record<string, Service> }

/** `${NAME:-default}` and `${NAME:?…}` as Compose replaces them. */
function filled(environment: Record<string, string> = {}, given: Record<string, string> = {}): Record<string, string> {
  const fill = (text: string) =>
    text.replace(/\$\{(\w+)(?::[-?]([^}]*))?\}/g, (_, name: string, rest = '') => given[name] ?? String(rest))
  return Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, fill(value)]))
}

describe('compose', () => {
  test('gives every node settings that are valid, a name of its own, and enough connections', () => {
    const { services } = compose('compose.yaml')
    const nodes = Object.entries(services).filter(([name]) => /^node\d$/.test(name))
    assert.equal(nodes.length, 3)
    let connections = 0
    for (const [name, { environment, image }] of nodes) {
      const settings = filled(environment, { POSTGRES_PASSWORD: 'secret' })
      assert.deepEqual(
        Object.keys(settings).filter((setting) => !(setting in settingTable)),
        [],
      )
      const config = readConfig({ HOST: '0.0.0.0', ...settings })
      assert.deepEqual([config.nodeName, config.auth.mode, image], [name, 'required', 'polylog'])
      assert.equal(config.databaseUrl, 'postgres://polylog:secret@postgres:5432/polylog')
      connections += config.databaseConnections + 1
    }
    const max = Number(/max_connections=(\d+)/.exec(services['postgres']?.command ?? '')?.[1])
    assert.ok(connections < max - 10, `${connections} of ${max}`)
    assert.deepEqual([services['migrate']?.command, services['migrate']?.image], ['migrate', 'polylog'])
  })

  test('nginx sends requests to exactly the addresses of the nodes', () => {
    const { services } = compose('compose.yaml')
    const addresses = Object.values(services).flatMap(({ networks }) => networks?.cluster?.ipv4_address ?? [])
    const named = [...read('deploy/nginx.conf').matchAll(/^ *server ([\d.]+):3000 /gm)].map(([, address]) => address)
    assert.deepEqual(named, addresses)
  })

  test('a single node is open on this machine only', () => {
    const { services } = compose('compose.single.yaml')
    const { environment, ports } = services['polylog'] as Service & { ports: string[] }
    assert.equal(readConfig({ HOST: '0.0.0.0', ...filled(environment) }).auth.mode, 'open')
    assert.deepEqual(ports, ['${POLYLOG_PORT:-127.0.0.1:3000}:3000'])
  })
})

/** nginx with the configuration of compose.yaml, in front of these nodes. */
async function startNginx(context: TestContext, path: string, nodes: readonly string[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-deploy-'))
  mkdirSync(join(folder, 'tmp'))
  const port = await closedPort()
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path tmp/${name};`)
  const addresses = [...nodes]
  const text = read('deploy/nginx.conf')
    .replace(/172\.30\.77\.\d+:3000/g, () => addresses.shift() ?? '')
    .replace('worker_processes auto;', 'worker_processes 1; daemon off; master_process off;')
    .replace('/run/nginx.pid', 'nginx.pid')
    .replace('access_log off;', `access_log off; ${places.join(' ')}`)
    .replace('listen 8080;', `listen 127.0.0.1:${port};`)
  writeFileSync(join(folder, 'nginx.conf'), text)
  const child = spawn(path, ['-p', folder, '-e', 'stderr', '-c', 'nginx.conf'], { stdio: 'ignore' })
  context.after(async () => {
    if (child.exitCode === null) {
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      await gone
    }
    rmSync(folder, { recursive: true, force: true })
  })
  const baseUrl = `http://127.0.0.1:${port}`
  await until('nginx to answer', async () => (await fetch(`${baseUrl}/v1/ready`).catch(() => undefined))?.ok)
  return baseUrl
}

test('through the nginx of compose.yaml streams come as they are sent, and an answer goes on when its node is killed', async (context) => {
  const nginx = ensureProgram('nginx')
  if ('missing' in nginx) return context.skip(nginx.missing)
  const cluster = await startCluster({ nodes: 2, environment: { POLYLOG_LEASE_MS: '1500', POLYLOG_TRUST_PROXY: '1' } })
  context.after(() => cluster.close())
  const hosts = cluster.nodes.map(({ server }) => new URL(server.polylog.baseUrl).host)
  // The third node is down from the start.
  const baseUrl = await startNginx(context, nginx.path, [...hosts, `127.0.0.1:${await closedPort()}`])
  await until('a stream without findings', async () => {
    const { findings } = await doctorStream({ baseUrl, frames: 6, intervalMs: 200 })
    return findings.length === 0
  })

  const user = someone()
  await cluster.provider.script([hangsAfter('So far '), says('So far ', 'so good.')], user)
  const run = await createClient({ baseUrl, userId: user }).chat({ input: user })
  const frames = run[Symbol.asyncIterator]()
  for (;;) {
    const next = await frames.next()
    assert.equal(next.done, false)
    if (next.value.event === 'agent.delta') break
  }
  const { body } = await cluster.nodes[0]!.server.call('GET', '/v1/operations')
  const working = (body.runs as { runId: string; node: string }[]).find(({ runId }) => runId === run.id)?.node
  const name = (body.nodes as { id: string; name: string }[]).find(({ id }) => id === working)?.name
  await cluster.nodes.find((node) => node.name === name)?.kill()
  let text = ''
  for (let next = await frames.next(); next.done !== true; next = await frames.next()) {
    if (next.value.event === 'agent.end') text = next.value.data.output ?? ''
  }
  assert.equal(text, 'So far so good.')
})

test('nginx lets the largest upload through: a skill package and its input files', () => {
  const largest = 2 * readConfig({}).limits.uploadBytes
  for (const file of ['deploy/nginx.conf', 'docs/deploy.md', 'docs/proxies.md']) {
    const mebibytes = Number(/client_max_body_size (\d+)m;/.exec(read(file))?.[1])
    assert.ok(mebibytes * 1024 * 1024 > largest, file)
  }
})

test('the unit of systemd allows what the server asks of the network', () => {
  const families = /^RestrictAddressFamilies=(.*)$/m.exec(read('deploy/polylog.service'))?.[1]?.split(' ')
  // Without AF_NETLINK, os.networkInterfaces() throws, and a server with HOST=0.0.0.0 does not start.
  assert.deepEqual(families, ['AF_INET', 'AF_INET6', 'AF_UNIX', 'AF_NETLINK'])
})

test('the unit of systemd is one that systemd accepts', (context) => {
  const verified = spawnSync('systemd-analyze', ['verify', '--man=no', join(root, 'deploy/polylog.service')], {
    encoding: 'utf8',
  })
  if (verified.error !== undefined) return context.skip('there is no systemd-analyze here')
  // Units of the machine itself may have problems of their own.
  const said = verified.stderr.split('\n').filter((line) => line.includes('polylog'))
  assert.deepEqual(said, [])
})

describe('the configurations in docs/deploy.md', () => {
  const page = read('docs/deploy.md')

  test('Caddy accepts its own', (context) => {
    const caddy = ensureProgram('caddy')
    if ('missing' in caddy) return context.skip(caddy.missing)
    const sites = [...page.matchAll(/```caddy\n([^]*?)```/g)].map(([, text = '']) => text)
    assert.equal(sites.length, 2)
    const folder = mkdtempSync(join(tmpdir(), 'polylog-caddy-'))
    try {
      for (const text of sites) {
        writeFileSync(join(folder, 'Caddyfile'), text)
        execFileSync(caddy.path, ['adapt', '--adapter', 'caddyfile', '--config', 'Caddyfile'], {
          cwd: folder,
          env: { ...process.env, HOME: folder },
          stdio: 'pipe',
        })
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test('nginx accepts its own', (context) => {
    const nginx = ensureProgram('nginx')
    if ('missing' in nginx) return context.skip(nginx.missing)
    const folder = mkdtempSync(join(tmpdir(), 'polylog-nginx-'))
    try {
      const certificate = ['-x509', '-newkey', 'ed25519', '-nodes', '-subj', '/CN=x', '-days', '1']
      const made = spawnSync('openssl', ['req', ...certificate, '-keyout', 'key.pem', '-out', 'cert.pem'], {
        cwd: folder,
      })
      if (made.status !== 0) return context.skip('there is no openssl here to make a certificate')
      mkdirSync(join(folder, 'tmp'))
      const site = (/```nginx\n([^]*?)```/.exec(page)?.[1] ?? '')
        .replace(/\/etc\/ssl\/\S+\.pem/, join(folder, 'cert.pem'))
        .replace(/\/etc\/ssl\/\S+\.key/, join(folder, 'key.pem'))
        .replace('listen 443 ssl http2', 'listen 127.0.0.1:54321 ssl http2')
      const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (name) => `${name}_temp_path tmp/${name};`,
      )
      writeFileSync(
        join(folder, 'nginx.conf'),
        `pid nginx.pid; error_log stderr; events {} http { access_log off; ${places.join(' ')} ${site} }`,
      )
      const checked = spawnSync(nginx.path, ['-t', '-p', folder, '-e', 'stderr', '-c', 'nginx.conf'], {
        encoding: 'utf8',
      })
      assert.equal(checked.status, 0, checked.stderr)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
