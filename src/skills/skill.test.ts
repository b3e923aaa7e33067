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

test('the error for an invalid package is a sentence that says what is wrong', async () => {
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

test('an uploaded package has to have a card, all three schemas, and one name everywhere; an installed skill does not', async () => {
  const schemas = { input: 'any.json', parameter: 'any.json', output: 'any.json' }
  const whole = { 'SKILL.md': skillMd, 'assets/runner.json': card({ schemas }), 'any.json': '{}' }
  const renamed = { ...whole, 'SKILL.md': skillMd.replace('name: errand', 'name: other') }
  const read = (files: Record<string, string>, strict: boolean) =>
    readSkill(packageOf(files), { folder: 'errand', strict })

  assert.equal((await read(whole, true)).id, 'errand')
  assert.equal((await read(renamed, false)).id, 'errand')
  await assert.rejects(read(renamed, true), { message: /must be the same/ })
  await assert.rejects(read({ 'SKILL.md': skillMd }, true), { message: /no assets\/runner\.json/ })
  for (const kind of Object.keys(schemas)) {
    const fewer = { ...whole, 'assets/runner.json': card({ schemas: { ...schemas, [kind]: undefined } }) }
    await assert.rejects(read(fewer, true), { message: new RegExp(`names no ${kind} schema`) })
    assert.equal((await read(fewer, false)).id, 'errand')
  }
})

test('instructions, the card and schemas have a maximum length', async () => {
  const read = (files: Record<string, string>) => readSkill(packageOf(files), { folder: 'errand', strict: false })
  const ofLength = (length: number) => skillMd + 'x'.repeat(length - skillMd.length)
  const withSchema = (text: string) => ({
    'SKILL.md': skillMd,
    'assets/runner.json': card({ schemas: { input: 'in.json' } }),
    'in.json': text,
  })

  await read({ 'SKILL.md': ofLength(256 * 1024) })
  await assert.rejects(read({ 'SKILL.md': ofLength(256 * 1024 + 1) }), { message: /longer than 256 KiB/ })
  await read(withSchema(`{}${' '.repeat(128 * 1024 - 2)}`))
  await assert.rejects(read(withSchema(`{}${' '.repeat(128 * 1024 - 1)}`)), { message: /longer than 128 KiB/ })
  const withCard = (length: number) => ({ 'SKILL.md': skillMd, 'assets/runner.json': card({}).padEnd(length) })
  await read(withCard(64 * 1024))
  await assert.rejects(read(withCard(64 * 1024 + 1)), { message: /runner\.json is longer than 64 KiB/ })
  for (const properties of ['null', '[1]', '3'])
    await read(withSchema(`{"properties":${properties}}`)).then(
      ({ fileInputs }) => assert.deepEqual(fileInputs, []),
      (error: Error) => assert.match(error.message, /not a JSON Schema/),
    )
})

test('asking for a skill that is not there, or is broken, says which; a skills folder that is a file stops the start', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-skill-'))
  try {
    mkdirSync(join(folder, 'broken'))
    writeFileSync(join(folder, 'broken', 'SKILL.md'), 'no front matter')
    const skills = await readSkills(folder)

    assert.throws(() => skills.get('nothing'), { code: 'skill_not_found' })
    assert.throws(() => skills.get('broken'), { code: 'skill_broken', message: /front matter/ })
    assert.equal(await skills.readFile('broken', 'SKILL.md'), undefined)
    await assert.rejects(readSkills(join(folder, 'broken', 'SKILL.md')), { code: 'config_invalid' })
  } finally {
    rmSync(folder, { recursive: true, force: true })
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
    // What grew beyond the bound since the start is not read any more.
    writeFileSync(join(root, 'references', 'deep', 'guide.md'), 'x'.repeat(1024 * 1024))
    assert.equal((await skills.readFile('errand', 'references/deep/guide.md'))?.length, 1024 * 1024)
    writeFileSync(join(root, 'references', 'deep', 'guide.md'), 'x'.repeat(1024 * 1024 + 1))
    assert.equal(await skills.readFile('errand', 'references/deep/guide.md'), undefined)
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
