// The file of model configurations: what it may contain, and the errors for mistakes in it.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { AppError } from '../errors/app-error.ts'
import { modelConfigsOf, readModelConfigs } from './model-configs.ts'

const folder = mkdtempSync(join(tmpdir(), 'polylog-configs-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const models = {
  resolve(name: string | undefined): string {
    if (name?.startsWith('nobody/')) throw new AppError('unknown_model', 'There is no provider nobody.')
    return name ?? 'demo/demo'
  },
}

function file(content: unknown): string {
  const path = join(folder, `${Math.random()}.json`)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

describe('model configurations', () => {
  it('are one set called default where there is no file', async () => {
    const configs = await readModelConfigs(null, models)

    assert.deepEqual(configs.list(), [{ name: 'default' }])
    assert.deepEqual(configs.get(undefined), { name: 'default' })
    assert.deepEqual(configs.get('default'), { name: 'default' })
  })

  it('are read as a list, and as an object that holds one', async () => {
    const sets = [
      { name: 'brief', model: 'demo/demo', temperature: 0, systemPrompt: 'Be brief.', tools: [] },
      { name: 'long' },
    ]

    for (const content of [sets, { configs: sets }]) {
      assert.deepEqual((await readModelConfigs(file(content), models)).list(), sets)
    }
  })

  it('take the set called default for the default, else the first', () => {
    assert.equal(modelConfigsOf([{ name: 'a' }, { name: 'default' }]).get(undefined).name, 'default')
    assert.equal(modelConfigsOf([{ name: 'a' }, { name: 'b' }]).get(undefined).name, 'a')
  })

  it('refuse an unknown name, and list the known ones', () => {
    for (const name of ['c', '', 'toString']) {
      assert.throws(() => modelConfigsOf([{ name: 'a' }, { name: 'b' }]).get(name), {
        code: 'unknown_config',
        message: /known are a, b\.$/,
      })
    }
  })

  const wrong: [what: string, content: unknown, sentence: RegExp][] = [
    ['no JSON', '{', /is not valid JSON/],
    ['nothing in it', [], /does not fit/],
    ['a set without a name', [{ model: 'demo/demo' }], /0\.name/],
    ['a misspelt setting', { configs: [{ name: 'a', temprature: 1 }] }, /temprature/],
    ['two sets of one name', [{ name: 'a' }, { name: 'a' }], /two sets called "a"/],
    ['a model that is not there', [{ name: 'a', model: 'nobody/x' }], /"a" that cannot be used: There is no provider/],
  ]
  for (const [what, content, sentence] of wrong) {
    it(`stop the start where the file has ${what}`, async () => {
      await assert.rejects(readModelConfigs(file(content), models), { code: 'config_invalid', message: sentence })
    })
  }

  it('stop the start where the file is missing', async () => {
    await assert.rejects(readModelConfigs(join(folder, 'none.json'), models), {
      code: 'config_invalid',
      message: /cannot be read/,
    })
  })
})
