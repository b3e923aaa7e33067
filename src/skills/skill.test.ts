import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { readSkills } from './skill-registry.ts'
import { readSkill, supportsEngine } from './skill.ts'

const skillMd = '---\nname: errand\ndescription: "Runs: an errand"\n---\n\nRun it.\n'
const packageOf = (files: Record<string, string>) => (path: string) => Promise.resolve(files[path])
const card = (changes: object = {}) => JSON.stringify({ id: 'errand', execution_modes: ['auto'], ...changes })

test('a skill without a card has the name of its front matter, both modes, every engine and no schemas', async () => {
  const skill = await readSkill(packageOf({ 'SKILL.md': skillMd }), { folder: 'errand', strict: false })

  assert.deepEqual(
    [skill.id, skill.name, skill.description, skill.text],
    ['errand', 'errand', 'Runs: an errand', 'Run it.'],
  )
  assert.deepEqual(
    [skill.modes, supportsEngine(skill, 'anything'), skill.schemas.output],
    [['auto', 'interactive'], true, undefined],
  )
})

test('a description over several lines is read as YAML means it', async () => {
  const source = '---\nname: errand\ndescription: >-\n  Runs an errand\n  for you.\n---\nRun it.'
  const skill = await readSkill(packageOf({ 'SKILL.md': source }), { folder: 'errand', strict: false })

  assert.equal(skill.description, 'Runs an errand for you.')
})

test('a card says which engines, and which inputs are files', async () => {
  const input = {
    properties: { a: { 'x-input-source': 'file' }, b: { 'x-input-source': 'file' }, c: {} },
    required: ['b', 'c'],
  }
  const files = {
    'SKILL.md': skillMd,
    'assets/runner.json': card({ engines: ['local', 'codex'], schemas: { input: 'in.json' } }),
    'in.json': JSON.stringify(input),
  }
  const skill = await readSkill(packageOf(files), { folder: 'errand', strict: false })

  assert.deepEqual([supportsEngine(skill, 'codex'), supportsEngine(skill, 'gemini')], [true, false])
  assert.deepEqual(skill.fileInputs, [
    { name: 'a', required: false },
    { name: 'b', required: true },
  ])
})

test('what is wrong with a package is said in a sentence', async () => {
  const wrong: [Record<string, string>, RegExp][] = [
    [{}, /no SKILL\.md/],
    [{ 'SKILL.md': 'text' }, /front matter/],
    [{ 'SKILL.md': '---\ndescription: x\n---\nRun.' }, /has no name/],
    [{ 'SKILL.md': '---\nname: errand\ndescription: {a: b}\n---\nRun.' }, /^SKILL\.md: description .* must be text/],
    [{ 'SKILL.md': '---\nname: errand\n---\n' }, /no instructions/],
    [{ 'SKILL.md': skillMd, 'assets/runner.json': '{' }, /not valid JSON/],
    [{ 'SKILL.md': skillMd, 'assets/runner.json': card({ execution_modes: ['fast'] }) }, /execution_modes/],
    [{ 'SKILL.md': skillMd, 'assets/runner.json': card({ id: 'other' }) }, /must be the same/],
    [
      { 'SKILL.md': skillMd, 'assets/runner.json': card({ engines: ['a'], unsupported_engines: ['a'] }) },
      /in engines and in unsupported_engines/,
    ],
    [{ 'SKILL.md': skillMd, 'assets/runner.json': card({ schemas: { output: '/etc/passwd' } }) }, /not a path inside/],
    [{ 'SKILL.md': skillMd, 'assets/runner.json': card({ schemas: { output: 'a/../../b' } }) }, /not a path inside/],
    [
      { 'SKILL.md': skillMd, 'assets/runner.json': card({ schemas: { output: 'gone.json' } }) },
      /there is no gone\.json/,
    ],
    [
      { 'SKILL.md': skillMd, 'assets/runner.json': card({ schemas: { output: 'o.json' } }), 'o.json': '[]' },
      /not a JSON Schema/,
    ],
  ]
  for (const [files, message] of wrong) {
    await assert.rejects(readSkill(packageOf(files), { folder: 'errand', strict: false }), { message })
  }
})

test('the files of a skill are listed for the model: not what the server reads itself, no links, nothing hidden or huge', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-skill-'))
  try {
    const root = join(folder, 'errand')
    const write = (path: string, text: string) => {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text)
    }
    write('SKILL.md', skillMd)
    write('assets/runner.json', card({ schemas: { output: 'assets/out.json' } }))
    write('assets/out.json', '{}')
    write('assets/template.md', 'a template')
    write('references/deep/guide.md', 'a guide')
    write('references/.secret', 'x')
    write('.git/config', 'x')
    write('model.bin', 'x'.repeat(1024 * 1024 + 1))
    writeFileSync(join(folder, 'outside.md'), 'outside')
    symlinkSync(join(folder, 'outside.md'), join(root, 'references', 'link.md'))
    symlinkSync('/etc', join(root, 'etc'))

    const skills = await readSkills(folder)

    assert.deepEqual(
      skills.get('errand').files.map(({ path, size }) => [path, size]),
      [
        ['assets/template.md', 10],
        ['references/deep/guide.md', 7],
      ],
    )
    assert.equal((await skills.readFile('errand', 'references/deep/guide.md'))?.toString(), 'a guide')
    for (const path of [
      '../outside.md',
      'references/link.md',
      'references/.secret',
      'SKILL.md',
      'etc/passwd',
      '',
      '/etc/passwd',
    ])
      assert.equal(await skills.readFile('errand', path), undefined, path)
    assert.equal(await skills.readFile('nothing', 'a'), undefined)
    // What became a link since the start is not followed either.
    rmSync(join(root, 'assets', 'template.md'))
    symlinkSync(join(folder, 'outside.md'), join(root, 'assets', 'template.md'))
    assert.equal(await skills.readFile('errand', 'assets/template.md'), undefined)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('a link in a skill’s folder that leads out of it is not followed, and a missing folder holds no skills', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-skill-'))
  try {
    mkdirSync(join(folder, 'skills', 'linked'), { recursive: true })
    writeFileSync(join(folder, 'SKILL.md'), skillMd)
    symlinkSync(join(folder, 'SKILL.md'), join(folder, 'skills', 'linked', 'SKILL.md'))

    const [listing] = (await readSkills(join(folder, 'skills'))).list()

    assert.match(listing?.error ?? '', /lies outside/)
    assert.deepEqual((await readSkills(join(folder, 'nowhere'))).list(), [])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
