// To-do lists and skills.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type Bench, openBench, secret } from '../../../test/support/workspace.ts'

describe('todo_read and todo_write', () => {
  let bench: Bench
  before(() => {
    bench = openBench()
  })
  after(() => bench.close())
  const item = (id: string, status = 'pending') => ({ id, title: `Do ${id}`, status })

  test('keep one list for each session; writing replaces it', async () => {
    assert.deepEqual((await bench.use('todo_read', {})).output, { todos: [] })
    const written = await bench.use('todo_write', {
      todos: [item('a', 'in_progress'), { ...item('b'), notes: 'later' }],
    })
    assert.deepEqual(written.output, { ok: true, count: 2 })
    await bench.use('todo_write', { todos: [item('c')] }, { conversationId: 'another' })
    assert.deepEqual((await bench.use('todo_read', {})).output, {
      todos: [item('a', 'in_progress'), { ...item('b'), notes: 'later' }],
    })
    await bench.use('todo_write', { todos: [item('b', 'completed')] })
    assert.deepEqual((await bench.use('todo_read', {})).output, { todos: [item('b', 'completed')] })
  })

  test('a list with two of one id, or two in progress, is an exception and changes nothing', async () => {
    await bench.use('todo_write', { todos: [item('a')] })
    for (const todos of [
      [item('x'), item('x')],
      [item('x', 'in_progress'), item('y', 'in_progress')],
    ]) {
      await assert.rejects(bench.use('todo_write', { todos }), { code: 'tool_input_invalid' })
    }
    await assert.rejects(bench.use('todo_write', { todos: [item('x', 'someday')] }))
    assert.deepEqual((await bench.use('todo_read', {})).output, { todos: [item('a')] })
  })
})

describe('skills', () => {
  let folder: string
  let bench: Bench
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'polylog-skills-'))
    const skillsDir = join(folder, 'skills')
    for (const name of ['report', 'plain', 'empty', '.hidden']) mkdirSync(join(skillsDir, name), { recursive: true })
    writeFileSync(
      join(skillsDir, 'report', 'SKILL.md'),
      '---\nname: report\ndescription: "Writes reports"\n---\nDo it well.',
    )
    writeFileSync(join(skillsDir, 'plain', 'SKILL.md'), 'Just words.')
    writeFileSync(join(folder, 'SKILL.md'), secret)
    symlinkSync(folder, join(skillsDir, 'linked'))
    mkdirSync(join(skillsDir, 'report', 'references'))
    writeFileSync(join(skillsDir, 'report', 'references', 'style.md'), 'Short sentences.')
    writeFileSync(join(skillsDir, 'report', '.env'), secret)
    symlinkSync(join(folder, 'SKILL.md'), join(skillsDir, 'report', 'linked.md'))
    mkdirSync(join(skillsDir, 'sly'))
    symlinkSync(join(folder, 'SKILL.md'), join(skillsDir, 'sly', 'SKILL.md'))
    bench = openBench({ skillsDir })
  })
  after(async () => {
    await bench.close()
    rmSync(folder, { recursive: true })
  })

  test('are listed with what they are for', async () => {
    const { output } = await bench.use('skills', { action: 'list' })
    assert.deepEqual(
      output.data.toSorted((a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)),
      [
        { name: 'plain', description: '' },
        { name: 'report', description: 'Writes reports' },
      ],
    )
  })

  test('bring the files beside their instructions, and nothing else', async () => {
    const loaded = await bench.use('skills', { action: 'load', skill_name: 'report' })
    assert.deepEqual(loaded.output.data.files, ['references/style.md'])

    const file = await bench.use('skills', { action: 'load', skill_name: 'report', file: 'references/style.md' })
    assert.deepEqual(file.output.data, { name: 'report', file: 'references/style.md', content: 'Short sentences.' })
    for (const path of ['nope.md', '../plain/SKILL.md', '../../SKILL.md', '/etc/passwd', 'linked.md', 'references']) {
      const answer = await bench.use('skills', { action: 'load', skill_name: 'report', file: path })
      assert.equal(answer.ok, false, path)
      assert.ok(!JSON.stringify(answer).includes(secret))
    }
  })

  test('are loaded by their name, and nothing else is', async () => {
    const loaded = await bench.use('skills', { action: 'load', skill_name: 'plain' })
    assert.deepEqual(loaded.output, { ok: true, data: { name: 'plain', content: 'Just words.', files: [] } })
    for (const skill_name of [
      '..',
      '.',
      '',
      'nope',
      'linked',
      'sly',
      '../skills/plain',
      'plain/../..',
      '/etc',
      'empty',
      'plain\0',
    ]) {
      const answer = await bench.use('skills', { action: 'load', skill_name })
      assert.equal(answer.ok, false, skill_name)
      assert.ok(!JSON.stringify(answer).includes(secret))
    }
  })

  test('without a directory the tool is listed with the reason', async () => {
    const none = openBench()
    const listed = none.registry.list().find(({ name }) => name === 'skills')
    assert.equal(listed?.available, false)
    assert.equal(listed?.reason, 'There is no skills directory.')
    await none.close()
  })
})
