import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Skill } from '../skills/skill.ts'
import { checkEngine, checkInlineInput, checkParameter, checkSupport, withFiles } from './job-inputs.ts'

function skillOf(changes: Partial<Skill> = {}): Skill {
  return {
    id: 'errand',
    name: 'Errand',
    description: '',
    version: undefined,
    text: 'Run.',
    modes: ['auto'],
    engines: null,
    unsupportedEngines: [],
    schemas: { input: undefined, parameter: undefined, output: undefined },
    fileInputs: [],
    files: [],
    ...changes,
  }
}

const input = {
  type: 'object',
  properties: { what: { type: 'string' }, notes: { type: 'string', 'x-input-source': 'file' } },
  required: ['what', 'notes'],
  additionalProperties: false,
}
const needsNotes = skillOf({
  schemas: { input, parameter: input, output: undefined },
  fileInputs: [{ name: 'notes', required: true }],
})

describe('a skill', () => {
  test('runs on this server if both have the engine and the mode', () => {
    const supported =
      (skill: Skill, engine: string, mode: 'auto' | 'interactive' = 'auto') =>
      () =>
        checkSupport(skill, engine, mode, 'local')

    supported(skillOf(), 'local')()
    supported(skillOf({ engines: ['local'] }), 'local')()
    assert.throws(supported(skillOf({ engines: ['codex'] }), 'local'), { code: 'skill_engine_unsupported' })
    assert.throws(supported(skillOf({ unsupportedEngines: ['local'] }), 'local'), { code: 'skill_engine_unsupported' })
    assert.throws(supported(skillOf({ engines: ['codex'] }), 'codex'), { message: /no engine "codex"/ })
    assert.throws(supported(skillOf(), 'local', 'interactive'), { code: 'skill_execution_mode_unsupported' })
    assert.throws(() => checkEngine('codex', 'local'), { code: 'skill_engine_unsupported' })
  })
})

describe('inline values', () => {
  test('have to fit their schemas, except for what is uploaded as a file', () => {
    checkInlineInput(needsNotes, { what: 'x' })
    checkInlineInput(needsNotes, { what: 'x', notes: 'named.txt' })
    const typed = { ...input, properties: { ...input.properties, notes: { type: 'object' } } }
    checkInlineInput({ ...needsNotes, schemas: { ...needsNotes.schemas, input: typed } }, { what: 'x', notes: 'a.txt' })
    assert.throws(() => checkInlineInput(needsNotes, { what: 3 }), { code: 'job_input_invalid' })
    checkInlineInput(skillOf(), { anything: 1 })
    checkParameter(skillOf(), { anything: 1 })
    assert.throws(() => checkInlineInput(needsNotes, {}), { code: 'job_input_invalid', message: /what/ })
    assert.throws(() => checkInlineInput(needsNotes, { what: 'x', more: 1 }), { code: 'job_input_invalid' })
    assert.throws(() => checkParameter(needsNotes, { what: 'x' }), { code: 'job_parameter_invalid', message: /notes/ })
  })
})

describe('an uploaded file', () => {
  const placed = (paths: string[], given: Record<string, string> = {}, inputs = needsNotes.fileInputs) =>
    withFiles(skillOf({ fileInputs: inputs }), given, paths)

  test('is found by the path that was named, by its name, by its name without the ending, or because it is the only one', () => {
    const optional = [
      { name: 'notes', required: true },
      { name: 'more', required: false },
    ]
    assert.deepEqual(placed(['a/b.txt', 'notes'], { notes: 'a/b.txt' }), { notes: 'a/b.txt' })
    assert.deepEqual(placed(['x/notes.md', 'notes']), { notes: 'notes' })
    assert.deepEqual(placed(['other.txt', 'x/notes.md']), { notes: 'x/notes.md' })
    assert.deepEqual(placed(['other.txt']), { notes: 'other.txt' })
    assert.deepEqual(placed(['notes.md'], {}, optional), { notes: 'notes.md' })
    assert.deepEqual(placed(['notes.md', 'more.md'], {}, optional), { notes: 'notes.md', more: 'more.md' })
  })

  test('that is needed, or was named, and is not there is missed by name', () => {
    const optional = [{ name: 'notes', required: false }]
    for (const [paths, given, inputs] of [
      [['a.txt', 'b.txt'], {}, undefined],
      [[], {}, undefined],
      [['a.txt'], { notes: 'b.txt' }, undefined],
      [['notes'], { notes: 'b.txt' }, optional],
      [['other.txt'], {}, [...needsNotes.fileInputs, { name: 'more', required: true }]],
    ] as const) {
      assert.throws(() => placed([...paths], given, inputs === undefined ? undefined : [...inputs]), {
        code: 'job_input_invalid',
        message: /needs a file for "notes"/,
      })
    }
    assert.deepEqual(placed([], {}, optional), {})
  })
})
