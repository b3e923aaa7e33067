// Finding and loading polylog.config.ts: every mistake is a sentence with the file, the line
// and the fix.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type ConfigFolder, configFolder } from '../../test/support/config-folder.ts'
import { manualClock } from '../../test/support/manual-clock.ts'
import { AppError } from '../errors/app-error.ts'
import { checkCodeTools } from '../tools/check-code-tools.ts'
import { type LoadedConfig, loadConfigFile } from './config-file.ts'
import { readConfig } from './config.ts'

let folder: ConfigFolder
before(() => {
  folder = configFolder()
})
after(() => folder.remove())

let files = 0
/** A file in a folder of its own, because Node keeps a module that it has loaded. */
function write(text: string, name = 'polylog.config.ts'): string {
  files += 1
  return folder.write(`case-${files}/${name}`, text)
}

async function load(file: string): Promise<LoadedConfig> {
  return await loadConfigFile({}, dirname(file), manualClock())
}

async function problemOf(file: string): Promise<string> {
  try {
    readConfig({}, (await load(file)).config)
  } catch (error) {
    assert.ok(error instanceof AppError, String(error))
    assert.equal(error.code, 'config_invalid')
    return error.message
  }
  return assert.fail('it was loaded')
}

const cases: [what: string, text: string, sentence: RegExp][] = [
  ['a syntax error', 'export default {\n  port: 1,,\n}\n', /polylog\.config\.ts:2: Unexpected token/],
  [
    'an enum',
    'enum A { B }\nexport default { port: A.B }\n',
    /polylog\.config\.ts:1: .*use a plain object instead of an enum/,
  ],
  ['an exception', 'const a = 1\nthrow new Error("no vault " + a)\n', /polylog\.config\.ts:2: no vault 1\./],
  [
    'a rejected promise',
    '\n\nawait Promise.reject(new Error("no vault"))\nexport default {}',
    /polylog\.config\.ts:3: no vault\./,
  ],
  [
    'a package that is not installed',
    '\nimport x from "left-pad"\nexport default x\n',
    /polylog\.config\.ts:2: .*left-pad.*Run npm install left-pad/,
  ],
  [
    'an import without its ending',
    'import x from "./tool"\nexport default x\n',
    /polylog\.config\.ts:1: .*with its ending \(\.\/tool\.ts\)/,
  ],
  [
    'an export that does not exist',
    "import { defineTol } from 'polylog'\nexport default defineTol",
    /polylog\.config\.ts:1: .*defineTol/,
  ],
  [
    'no default export',
    'export const port = 1\n',
    /polylog\.config\.ts: It has no default export; write export default defineConfig/,
  ],
  [
    'a misspelt key',
    'export default {\n  host: "127.0.0.1",\n  prot: 1,\n}\n',
    /polylog\.config\.ts:3: prot is not a setting; did you mean port\?/,
  ],
  [
    'a wrong value',
    'export default {\n  maxSteps: 0,\n}\n',
    /maxSteps \(\S*polylog\.config\.ts:2\) is "0"; it must be a whole number from 1/,
  ],
  [
    'require',
    'const x = require("node:fs")\nexport default x\n',
    /polylog\.config\.ts:1: .*Write it with import and export/,
  ],
]

describe('a configuration file that cannot be used', () => {
  for (const [what, text, sentence] of cases) {
    test(`${what}: the file, the line and the fix are named`, async () => {
      const message = await problemOf(write(text))

      assert.match(message, sentence)
      assert.doesNotMatch(message, /\n\s+at /, 'no stack')
    })
  }

  test('a syntax error of plain JavaScript has its line too', async () => {
    const file = write('export default {\n  port: 1,,\n}\n', 'polylog.config.mjs')

    assert.match(await problemOf(file), /polylog\.config\.mjs:2: Unexpected token/)
  })

  test('a mistake in a file that it imports is found there', async () => {
    for (const [text, sentence] of [
      ['\nexport const = 1\n', /tools\.ts:2: Unexpected token/],
      ['\n\nthrow new Error("no database")\n', /tools\.ts:3: no database\./],
      ['import "./nothing.ts"\n', /tools\.ts: Cannot find module .*nothing\.ts/],
    ] as const) {
      const file = write("import './tools.ts'\nexport default {}\n")
      folder.write(`case-${files}/tools.ts`, text)

      assert.match(await problemOf(file), sentence)
    }
  })

  test('POLYLOG_CONFIG names a file that does not exist, or a folder', async () => {
    const named = (POLYLOG_CONFIG: string) => loadConfigFile({ POLYLOG_CONFIG }, folder.path, manualClock())

    await assert.rejects(named('nowhere.ts'), { message: /nowhere\.ts does not exist; correct POLYLOG_CONFIG/ })
    await assert.rejects(named('.'), { message: /is a folder; correct POLYLOG_CONFIG/ })
  })

  test('there are two of them', async () => {
    const file = write('export default {}')
    folder.write(`case-${files}/polylog.config.mjs`, 'export default {}')

    assert.match(await problemOf(file), /There are polylog\.config\.ts and polylog\.config\.mjs; keep one/)
  })

  test('it waits for something that never comes', async () => {
    const clock = manualClock()
    const file = write('await new Promise(() => {})\nexport default {}\n')
    const loading = loadConfigFile({}, dirname(file), clock)
    const rejected = assert.rejects(loading, { message: /It was not loaded within 60 seconds/ })
    await clock.advance(60_000)

    await rejected
  })
})

describe('a configuration file', () => {
  test('is found by each of its names, or by POLYLOG_CONFIG', async () => {
    for (const name of ['polylog.config.ts', 'polylog.config.mts', 'polylog.config.js', 'polylog.config.mjs']) {
      const file = write('export default { port: 4000 }\n', name)
      assert.deepEqual([(await load(file)).file, readConfig({}, (await load(file)).config).port], [file, 4000])
    }
    const other = write('export default { port: 5000 }\n', 'elsewhere.ts')
    const loaded = await loadConfigFile({ POLYLOG_CONFIG: other }, folder.path, manualClock())
    assert.equal(readConfig({}, loaded.config).port, 5000)
  })

  test('need not exist', async () => {
    const { file, config } = await loadConfigFile({ POLYLOG_CONFIG: ' ' }, folder.path, manualClock())

    assert.deepEqual([file, readConfig({}, config).port], [null, 3000])
  })

  test('may export a promise, import JSON with its type, and use the package by its name', async () => {
    const file = write(
      `import { defineConfig } from 'polylog'
       import numbers from './numbers.json' with { type: 'json' }
       export default Promise.resolve(defineConfig({ port: numbers.port }))`,
    )
    folder.write(`case-${files}/numbers.json`, '{ "port": 4001 }')

    assert.equal(readConfig({}, (await load(file)).config).port, 4001)
  })

  test('gets a warning about a key that is written in its text, and none about a key that comes from elsewhere', async () => {
    const file = write(`export default {
      openaiApiKey: 'sk-in-the-text',
      anthropicApiKey: ['k', 'e', 'y'].join('-'),
      jwtSecret: 'also in the text',
    }`)
    const { warnings } = await load(file)

    assert.equal(warnings.length, 2)
    assert.match(
      warnings[0] ?? '',
      /polylog\.config\.ts:2: openaiApiKey is written into the file.*use process\.env\.OPENAI_API_KEY/,
    )
    assert.match(warnings[1] ?? '', /:4: jwtSecret is written/)
    assert.doesNotMatch(warnings.join(), /in-the-text|also in the text/)
  })
})

test('the configuration files in the documents can be loaded, with their tools', async () => {
  const documents = ['configuration-file.md', 'tools-in-code.md'].map((name) =>
    readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8'),
  )
  const blocks = documents.flatMap((text) => [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map((match) => match[1] ?? ''))
  const configs = blocks.filter((block) => block.includes('export default'))
  assert.equal(configs.length, 2)
  for (const block of configs) {
    const { config } = await load(write(block))
    readConfig({}, config)
    const { entries, problems } = checkCodeTools(config.tools, [], { timeoutMs: 1, log: { warn() {} } })
    assert.deepEqual([entries.length, problems], [1, []])
  }
})
