import assert from 'node:assert/strict'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { type AgentFolder, agentFolder, objectSchema } from '../../test/support/agent-folder.ts'
import type { AgentDefinition } from './agent-definition.ts'
import { agentFileBytesMax, DefinitionFiles } from './definition-files.ts'
import { readDefinition } from './read-definition.ts'

let folder: AgentFolder
beforeEach(() => {
  folder = agentFolder()
})
afterEach(() => folder.dispose())

async function read(card?: Record<string, unknown>, files?: Record<string, string>): Promise<AgentDefinition> {
  folder.agent('tidy', card, files)
  return await readDefinition(new DefinitionFiles(join(folder.path, 'tidy')))
}

describe('a definition', () => {
  test('that declares no operations has one without an id, with the fields of the agent and the documented defaults', async () => {
    const { operations } = await read({ name: 'Tidy' }, { 'user.mustache': 'Tidy: {{{data}}}' })

    const [only] = operations
    assert.equal(operations.length, 1)
    assert.deepEqual(
      { ...only, promptVersion: '', inputSchema: '', outputSchema: '', dataSchema: '' },
      {
        id: null,
        name: 'Tidy',
        description: '',
        systemTemplate: 'Write in {{language}}. Schema: {{{outputSchema}}}',
        userTemplate: 'Tidy: {{{data}}}',
        defaults: {},
        inputSchema: '',
        outputSchema: '',
        dataSchema: '',
        cache: null,
        reads: 'input',
        scope: 'user',
        citations: 'optional',
        promptVersion: '',
      },
    )
    assert.deepEqual(only?.dataSchema, only?.outputSchema)
  })

  test('with operations gives each the fields of the agent, unless the operation has its own', async () => {
    const { operations, systemTemplate } = await read(
      {
        reads: 'contact',
        citations: 'required',
        cache: { ttl: 60, sourceHashFields: ['depth'] },
        operations: [
          { id: 'same' },
          {
            id: 'own',
            description: 'Its own.',
            reads: 'network',
            cache: { ttl: 0 },
            prompt: { systemTemplate: 'own.mustache', defaultsFile: 'own.json' },
            validation: { outputSchema: 'own-output.json' },
          },
          { id: 'wide', scope: 'global' },
        ],
      },
      { 'own.mustache': 'Be {{tone}}.', 'own.json': '{"tone":"brief"}', 'own-output.json': objectSchema() },
    )

    const [same, own, wide] = operations
    assert.equal(systemTemplate, same?.systemTemplate)
    assert.deepEqual(
      [same?.reads, same?.scope, same?.citations, same?.cache],
      ['contact', 'contact', 'required', { ttlMs: 60_000, inputFields: ['depth'] }],
    )
    assert.deepEqual(
      [own?.reads, own?.scope, own?.cache, own?.systemTemplate, own?.userTemplate, own?.defaults],
      ['network', 'user', { ttlMs: null, inputFields: null }, 'Be {{tone}}.', '{{{data}}}', { tone: 'brief' }],
    )
    assert.deepEqual(own?.inputSchema, same?.inputSchema)
    assert.deepEqual(own?.outputSchema, JSON.parse(objectSchema()))
    assert.equal(wide?.scope, 'global')
  })

  test('shows the fields that the server adds as read-only properties of the result', async () => {
    const { operations } = await read(
      { validation: { outputSchema: 'output.json', serverFields: 'server.json' } },
      { 'server.json': objectSchema({ hash: { type: 'string' } }, ['hash']) },
    )

    assert.deepEqual(operations[0]?.dataSchema, {
      type: 'object',
      properties: { answer: { type: 'string' }, hash: { type: 'string', readOnly: true } },
      required: ['answer', 'hash'],
    })
    assert.deepEqual(operations[0]?.outputSchema, JSON.parse(objectSchema({ answer: { type: 'string' } }, ['answer'])))
  })

  test('has another prompt version after each change that can change an answer, and only then', async () => {
    const versionOf = async (card?: Record<string, unknown>, files?: Record<string, string>) =>
      (await read(card, files)).operations[0]?.promptVersion
    const first = await versionOf()
    const changes = [
      await versionOf({ version: '1.0.1' }),
      await versionOf({}, { 'system.mustache': 'Write well in {{language}}.' }),
      await versionOf({}, { 'user.mustache': 'Data: {{{data}}}' }),
      await versionOf({}, { 'output.json': objectSchema({ answer: { type: 'string', maxLength: 9 } }) }),
      await versionOf({ citations: 'required' }),
      await versionOf({ reads: 'network' }),
    ]

    assert.match(String(first), /^1\.0\.0\+[0-9a-f]{8}$/)
    assert.equal(new Set([first, ...changes]).size, 7)
    assert.equal(await versionOf({ name: 'Another name', cache: { ttl: 5 } }), first)
  })
})

describe('the error of a broken definition names the field, the file and what to do', () => {
  const long = 'x'.repeat(agentFileBytesMax + 1)
  const half = 'x'.repeat(agentFileBytesMax - 1)
  const cases: [what: string, error: RegExp, card?: Record<string, unknown>, files?: Record<string, string>][] = [
    ['no JSON', /^agent\.json is not valid JSON: /, {}, { 'agent.json': '{' }],
    ['a missing field', /^agent\.json: memory: /, { memory: undefined }],
    [
      'a field that has no effect',
      /^agent\.json: memory\.summaryModel: is used only with the strategy "summary"/,
      { memory: { strategy: 'sliding_window', summaryModel: 'openai/gpt-4o-mini' } },
    ],
    ['an unknown field', /^agent\.json: Unrecognized key: "descripton"/, { descripton: 'x' }],
    ['an id with other characters', /^agent\.json: id: must be 1 to 64 letters/, { id: 'a b' }],
    ['a negative ttl', /^agent\.json: cache\.ttl: /, { cache: { ttl: -1 } }],
    ['a source that does not exist', /^agent\.json: reads: /, { reads: 'mail' }],
    [
      'too many operations',
      /^agent\.json: operations: /,
      { operations: Array.from({ length: 21 }, () => ({ id: 'a' })) },
    ],
    [
      'two operations with one id',
      /^agent\.json: operations\.1\.id: another .*"a"; rename/,
      { operations: [{ id: 'a' }, { id: 'a' }] },
    ],
    [
      'a file that is not there',
      /^prompt\.systemTemplate: the file "no\.mustache" does not exist/,
      { prompt: { systemTemplate: 'no.mustache' } },
    ],
    [
      'a path that leaves the folder',
      /^prompt\.systemTemplate: the file "\.\.\/secret" lies outside .*; copy it/,
      { prompt: { systemTemplate: '../secret' } },
    ],
    ['an absolute path', /lies outside the agent's folder/, { prompt: { systemTemplate: '/etc/hostname' } }],
    ['a link that leaves the folder', /"link\.mustache" lies outside/, { prompt: { systemTemplate: 'link.mustache' } }],
    ['a directory', /"sub" is not a regular file/, { prompt: { systemTemplate: 'sub' } }],
    [
      'an unclosed tag',
      /^prompt\.systemTemplate: the file "system\.mustache": it is not a valid Mustache template: Unclosed tag/,
      {},
      { 'system.mustache': '{{language' },
    ],
    ['an unclosed section', /Unclosed section "input"/, {}, { 'user.mustache': '{{#input}}' }],
    [
      'a misspelt name',
      /\{\{langauge\}\} is not known; templates can use input, data, language/,
      {},
      { 'system.mustache': '{{langauge}}' },
    ],
    ['a partial', /\{\{> other\}\} includes another template/, {}, { 'system.mustache': '{{> other}}' }],
    [
      'defaults that are no object',
      /^prompt\.defaultsFile: .* must hold a JSON object/,
      { prompt: { systemTemplate: 'system.mustache', defaultsFile: 'list.json' } },
      { 'list.json': '[]' },
    ],
    [
      'a schema that is no JSON',
      /^validation\.outputSchema: the file "output\.json" is not valid JSON/,
      {},
      { 'output.json': '{' },
    ],
    [
      'a schema with a wrong keyword',
      /^validation\.outputSchema: the file "output\.json" is not a usable JSON Schema: /,
      {},
      { 'output.json': '{"type":"object","minProperties":"many"}' },
    ],
    [
      'a schema of another type',
      /^validation\.inputSchema: .*must describe a JSON object; write "type": "object"/,
      {},
      { 'input.json': '{"type":"string"}' },
    ],
    [
      'a schema of an operation',
      /^operations\.0\.validation\.outputSchema: the file "no\.json" does not exist/,
      { operations: [{ id: 'a', validation: { outputSchema: 'no.json' } }] },
    ],
    [
      'a schema that is nested too deeply',
      /nested more than 64 levels/,
      {},
      { 'output.json': `${'['.repeat(100)}${']'.repeat(100)}` },
    ],
    [
      'a translation into something that is not a language',
      /translations/,
      { translations: { English: { name: 'Tidy' } } },
      {},
    ],
    ['a translation of another field', /translations\.en/, { translations: { en: { title: 'Tidy' } } }, {}],
    ['a file that is too large', /"user\.mustache" has 262145 bytes; at most 262144/, {}, { 'user.mustache': long }],
    [
      'files that are too large together',
      /more than 1048576 bytes together/,
      { operations: ['a', 'b', 'c', 'd', 'e'].map((id) => ({ id, prompt: { userTemplate: `${id}.mustache` } })) },
      Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((id) => [`${id}.mustache`, half])),
    ],
  ]
  for (const [what, error, card, files] of cases) {
    test(what, async () => {
      folder.write('secret', 'Not yours.')
      folder.write('tidy/sub/file', '')
      symlinkSync('../secret', join(folder.path, 'tidy', 'link.mustache'))

      await assert.rejects(read(card, files), (thrown: Error) => {
        assert.match(thrown.message, error)
        assert.ok(!thrown.message.includes(folder.path), 'the message names no path of the machine')
        return true
      })
    })
  }

  test('a file that is not UTF-8', async () => {
    folder.agent('tidy')
    const { writeFileSync } = await import('node:fs')
    writeFileSync(join(folder.path, 'tidy', 'user.mustache'), Buffer.from([0xff, 0xfe, 0x41]))
    await assert.rejects(readDefinition(new DefinitionFiles(join(folder.path, 'tidy'))), {
      message: /is not UTF-8 text/,
    })
  })

  test('unknown names are allowed inside a section, and names of the defaults are known', async () => {
    await read(
      { prompt: { systemTemplate: 'system.mustache', defaultsFile: 'defaults.json' } },
      {
        'system.mustache':
          '{{! a note }}{{tone}} {{#input.list}}{{name}} {{.}}{{/input.list}}{{^input.list}}{{tone}}{{/input.list}}',
        'defaults.json': '{"tone":"kind"}',
      },
    )
  })
})
