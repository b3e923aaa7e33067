// The structure of the repository, as tests: imports go down the ladder, there are no cycles,
// and the documents list what the code has. If a rule no longer fits, change it here and give
// the reason; do not work around it.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { test } from 'node:test'
import { AppError } from '../src/errors/app-error.ts'
import { errorCodes, type ErrorCode } from '../src/errors/codes.ts'
import { httpStatusOf } from '../src/http/error-reply.ts'

const root = join(import.meta.dirname, '..')
const isTest = (file: string) => file.endsWith('.test.ts')

/** Code of the server (without tests), each file with the files of ours that it imports. */
const graph = new Map<string, string[]>(
  globSync('src/**/*.ts', { cwd: root })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => !isTest(file))
    .toSorted()
    .map((file) => [file, importsOf(file, readFileSync(join(root, file), 'utf8'))]),
)

function importsOf(file: string, text: string): string[] {
  const patterns = [
    /^(?:import|export)\s[^'"()=]*?\bfrom\s+['"]([^'"]+)['"]/gm,
    /^import\s+['"]([^'"]+)['"]/gm,
    /\bimport\(\s*['"]([^'"]+)['"]/g,
    // A worker's file is loaded as surely as an imported one.
    /\bnew URL\(\s*['"](\.[^'"]+\.ts)['"]/g,
  ]
  const names = patterns.flatMap((pattern) => [...text.matchAll(pattern)].map((match) => match[1] ?? ''))
  return names.filter((name) => name.startsWith('.')).map((name) => posix.join(posix.dirname(file), name))
}

/** The store and its parts: what any store promises. */
const storeInterfaces = [...graph.keys()].filter((file) => /^src\/stores\/[^/]+\.ts$/.test(file))

/** The promises of a folder, which those above it may know; what keeps them is handed in by `app`. */
const interfaces = [
  ...storeInterfaces,
  'src/bus/live-bus.ts',
  'src/bus/cluster-bus.ts',
  'src/engines/engine.ts',
  'src/models/model.ts',
  'src/tools/tool.ts',
  'src/agents/agent-definition.ts',
]
const ground = ['src/journal/', 'src/errors/', 'src/kit/']

/**
 * What each folder may import besides itself: paths, or beginnings of paths. A folder that is not listed may be
 * not imported and import nothing, so a new one is placed here first. The longest entry that fits a file counts.
 */
const services = [
  'src/runs/',
  'src/conversations/',
  'src/comparisons/',
  'src/feed/',
  'src/feedback/',
  'src/files/',
  'src/contacts/',
  'src/skills/',
  'src/jobs/',
  'src/one-shot/',
  'src/agents/',
]
const ladder: Record<string, string[]> = {
  'src/errors/': [],
  'src/kit/': ['src/errors/'],
  'src/journal/': ['src/errors/', 'src/kit/'],
  'src/dialects/': ground,
  'src/stores/': ground,
  'src/stores/sqlite/': [...ground, ...storeInterfaces],
  'src/stores/postgres/': [...ground, ...storeInterfaces],
  'src/bus/': [...ground, ...interfaces],
  'src/models/': [...ground, ...interfaces],
  'src/tools/': [...ground, ...interfaces],
  // The retries of a provider are a matter of models; engines decide when to use them.
  'src/engines/': [...ground, ...interfaces, 'src/models/retry.ts'],
  'src/agents/': [...ground, ...interfaces],
  'src/skills/': [...ground, ...interfaces],
  'src/files/': [...ground, ...interfaces],
  // A run asks the catalogue which agent it is.
  'src/runs/': [
    ...ground,
    ...interfaces,
    'src/bus/',
    'src/files/',
    'src/agents/catalogue.ts',
    'src/agents/agent-model.ts',
    'src/agents/template.ts',
  ],
  'src/conversations/': [...ground, ...interfaces, 'src/runs/'],
  'src/comparisons/': [...ground, ...interfaces, 'src/runs/', 'src/conversations/'],
  // A job is a run of a skill.
  'src/jobs/': [
    ...ground,
    ...interfaces,
    'src/runs/',
    'src/skills/',
    'src/agents/catalogue.ts',
    'src/agents/agent-model.ts',
  ],
  'src/feed/': [...ground, ...interfaces],
  'src/feedback/': [...ground, ...interfaces, 'src/conversations/'],
  // A contact is deleted with its conversations.
  'src/contacts/': [...ground, ...interfaces, 'src/conversations/'],
  // A one-shot run is a run of an agent over data that the services own.
  'src/one-shot/': [
    ...ground,
    ...interfaces,
    'src/runs/',
    'src/conversations/',
    'src/contacts/',
    'src/agents/catalogue.ts',
    'src/agents/agent-model.ts',
    'src/agents/template.ts',
  ],
  'src/http/': [...ground, ...interfaces, ...services, 'src/bus/', 'src/dialects/'],
  'src/app/': ['src/'],
  // Commands that work on the data folder compose parts as the server does; the others are clients.
  'src/cli/': [...ground, ...interfaces, 'src/app/', 'client/src/'],
  // The exports of the package.
  'src/index.ts': ['src/app/', 'src/tools/define-tool.ts'],
}

function folderOf(file: string): string | undefined {
  return Object.keys(ladder)
    .filter((folder) => file.startsWith(folder))
    .toSorted((a, b) => b.length - a.length)[0]
}

test('the writer thread of SQLite loads nothing but our own files: a library such as zod would double the time and memory of its start', () => {
  const loaded = new Set<string>()
  const libraries: string[] = []
  const load = (file: string) => {
    if (loaded.has(file)) return
    loaded.add(file)
    const text = readFileSync(join(root, file), 'utf8')
    for (const [, name = ''] of text.matchAll(/^(?:import|export)\s(?!type\s)[^'"()=]*?\bfrom\s+['"]([^'"]+)['"]/gm)) {
      if (name.startsWith('.')) load(posix.join(posix.dirname(file), name))
      else if (!name.startsWith('node:')) libraries.push(`${file} imports ${name}`)
    }
  }
  load('src/stores/sqlite/writer-worker.ts')
  assert.ok(loaded.size > 20)
  assert.deepEqual(libraries, [])
})

test('the imports of the server were found at all', () => {
  assert.ok(graph.size > 20)
  assert.ok(graph.get('src/app/config.ts')?.includes('src/http/caller.ts'))
})

test('imports go down the ladder', () => {
  const wrong: string[] = []
  for (const [file, imports] of graph) {
    const folder = folderOf(file)
    if (folder === undefined) wrong.push(`${file} is in a folder that has no place on the ladder`)
    for (const imported of imports) {
      const allowed = folder === undefined ? [] : [folder, ...(ladder[folder] ?? [])]
      if (!allowed.some((beginning) => imported.startsWith(beginning))) wrong.push(`${file} imports ${imported}`)
    }
  }

  assert.deepEqual(wrong, [])
})

test('only its own files import the command line', () => {
  const found = [...graph].filter(
    ([file, imports]) => !file.startsWith('src/cli/') && imports.some((imported) => imported.startsWith('src/cli/')),
  )

  assert.deepEqual(found, [])
})

test('dialects see events and errors only: no store, no clock, no ids, and runs do not know them', () => {
  for (const [file, imports] of graph) {
    for (const imported of imports) {
      if (file.startsWith('src/dialects/')) assert.doesNotMatch(imported, /\/(stores|runs|http|bus)\/|kit\/ids/, file)
      if (file.startsWith('src/runs/')) assert.doesNotMatch(imported, /\/dialects\//, file)
    }
    if (file.startsWith('src/dialects/')) {
      const text = readFileSync(join(root, file), 'utf8')
      assert.ok(!text.includes('Math.random('), `${file} must be pure`)
    }
  }
})

test('the lowest folders name no dialect', () => {
  const named = /\bfcmp\b|\bvercel|\bconversation\.(?:state|started|completed|failed)\b/i
  const found = [...graph.keys()].filter(
    (file) => ground.some((folder) => file.startsWith(folder)) && named.test(readFileSync(join(root, file), 'utf8')),
  )

  assert.deepEqual(found, [])
})

test('only app names a concrete store or engine', () => {
  for (const [file, imports] of graph) {
    if (file.startsWith('src/app/')) continue
    for (const imported of imports) {
      const concrete = /^src\/(?:stores|engines)\/[^/]+\//.exec(imported)?.[0]
      assert.ok(concrete === undefined || file.startsWith(concrete), `${file} imports ${imported}`)
    }
  }
})

test('http knows the rows of the store but none of its methods: services call it and check ownership', () => {
  const found = [...graph.keys()].filter((file) => {
    if (!file.startsWith('src/http/')) return false
    const imports = readFileSync(join(root, file), 'utf8').matchAll(
      /^import (type )?\{([^}]*)\} from '[^']*\/stores\/[^']*'/gm,
    )
    return [...imports].some(([, isType, names]) => isType === undefined || /\bStore|Store\b/.test(names ?? ''))
  })

  assert.deepEqual(
    found.filter((file) => !isTest(file)),
    [],
  )
})

test('nothing but app reads the system clock, sets timers or mints ids by itself', () => {
  // The one place that wraps each of them.
  const wrappers = ['src/kit/clock.ts', 'src/kit/ids.ts']
  const impure =
    /\bDate\.now\b|\bnew Date\(\)|(?<![.\w])setTimeout\(|(?<![.\w])setInterval\(|\brandomUUID\b|\bsystemClock\b/
  const found = [...graph.keys()].filter((file) => {
    if (file.startsWith('src/app/') || file.startsWith('src/cli/') || wrappers.includes(file)) return false
    const code = readFileSync(join(root, file), 'utf8').replace(/\/\*[^]*?\*\/|\/\/.*$/gm, '')
    return impure.test(code)
  })

  assert.deepEqual(found, [])
})

test('no two files export the same name, so that a name means one thing', () => {
  // Implementations of the store have the same files, so that they can be compared: these count as one file.
  const mirrored = (file: string) => file.replace(/^src\/stores\/[^/]+\//, 'src/stores/<implementation>/')
  const declared =
    /^export\s+(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:const|let|function\*?|class|type|interface)\s+([\w$]+)/gm
  const homes = new Map<string, Set<string>>()
  for (const file of graph.keys()) {
    const text = readFileSync(join(root, file), 'utf8')
    // A list without `from` exports names of this file; with `from` it is the same thing under the same name.
    const lists = [...text.matchAll(/^export\s+(?:type\s+)?\{([^}]*)\}(?!\s*from)/gm)].flatMap(([, names]) =>
      (names ?? '').split(',').map((name) => name.trim().split(/\s+/).at(-1) ?? ''),
    )
    const names = [...text.matchAll(declared)].map(([, name]) => name ?? '')
    for (const name of [...names, ...lists]) {
      if (name !== '') homes.set(name, (homes.get(name) ?? new Set()).add(mirrored(file)))
    }
  }

  assert.ok(homes.get('AppError')?.has('src/errors/app-error.ts'))
  const shared = [...homes].filter(([, files]) => files.size > 1)
  assert.deepEqual(
    shared.map(([name, files]) => `${name}: ${[...files].join(', ')}`),
    [],
  )
})

test('server code imports nothing from tests', () => {
  for (const [file, imports] of graph) {
    for (const imported of imports) {
      const isOurs = imported.startsWith('src/') || (file.startsWith('src/cli/') && imported.startsWith('client/src/'))
      assert.ok(isOurs && !isTest(imported), `${file} imports ${imported}`)
    }
  }
})

test('imports have no cycles', () => {
  const done = new Set<string>()
  const circles: string[] = []
  function visit(file: string, path: string[]): void {
    if (done.has(file)) return
    const start = path.indexOf(file)
    if (start >= 0) {
      circles.push([...path.slice(start), file].join(' → '))
      return
    }
    for (const imported of graph.get(file) ?? []) visit(imported, [...path, file])
    done.add(file)
  }

  for (const file of graph.keys()) visit(file, [])

  assert.deepEqual(circles, [])
})

test('docs/errors.md holds exactly the codes that exist, each with its status', () => {
  const text = readFileSync(join(root, 'docs/errors.md'), 'utf8')
  const documented = [...text.matchAll(/^\| `(\w+)` \| (\d+) \| \S[^|]* \| \S[^|]* \|$/gm)].map(
    (match) => `${match[1]} ${match[2]}`,
  )
  const existing = (Object.keys(errorCodes) as ErrorCode[]).map(
    (code) => `${code} ${httpStatusOf(new AppError(code, ''))}`,
  )

  assert.deepEqual(documented.toSorted(), existing.toSorted())
})

const texts = projectFiles().filter((file) =>
  /\.(ts|tsx|cjs|js|json|jsonc|md|sql|sh|yml|yaml|html|css|txt)$|^\.ci\//.test(file),
)

/** Everything that git tracks or would track. */
function projectFiles(): string[] {
  const output = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], {
    cwd: root,
    encoding: 'utf8',
  })
  return output.split('\0').filter((file) => file !== '' && globSync(file, { cwd: root }).length > 0)
}

test('no file names a folder of the machine it was written on', () => {
  // Put together here, so that this file does not find itself.
  const folders = ['home', 'root', 'Users', 'work', 'tmp'].join('|')
  const absolute = new RegExp(`(?<![\\w.})\\]/~-])/(?:${folders})/\\w`)
  const found = texts.filter(
    (file) => file !== 'package-lock.json' && absolute.test(readFileSync(join(root, file), 'utf8')),
  )

  assert.deepEqual(found, [])
})

test('the lock file names no package host', () => {
  type Lock = { packages: Record<string, { resolved?: string; link?: boolean }> }
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock
  // The packages of this repository are links to their folders.
  const resolved = Object.values(packages).filter((entry) => entry.resolved !== undefined)

  assert.deepEqual(resolved, [
    { resolved: 'client', link: true },
    { resolved: 'console', link: true },
  ])
})

test('no test is marked as the only one to run', () => {
  const alone = /\b(?:test|it|describe|suite)\.only\(|\bonly: true/
  const found = texts.filter((file) => isTest(file) && alone.test(readFileSync(join(root, file), 'utf8')))

  assert.deepEqual(found, [])
})
