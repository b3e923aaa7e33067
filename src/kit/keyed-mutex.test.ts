import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { KeyedMutex } from './keyed-mutex.ts'

describe('a mutex for each key', () => {
  it('runs the work of one key in order, one at a time', async () => {
    const mutex = new KeyedMutex()
    const steps: string[] = []
    const work = (name: string) => async () => {
      steps.push(`${name} starts`)
      await new Promise((resolve) => setImmediate(resolve))
      steps.push(`${name} ends`)
    }

    await Promise.all(['a', 'b', 'c'].map((name) => mutex.run('key', work(name))))

    assert.deepEqual(steps, ['a starts', 'a ends', 'b starts', 'b ends', 'c starts', 'c ends'])
  })

  it('does not make the work of one key wait for another key', async () => {
    const mutex = new KeyedMutex()
    const first = Promise.withResolvers<void>()
    const blocked = mutex.run('a', () => first.promise)

    assert.equal(await mutex.run('b', async () => 'done'), 'done')
    first.resolve()
    await blocked
  })

  it('gives an error to the caller whose work failed, and runs the work behind it', async () => {
    const mutex = new KeyedMutex()
    const failed = mutex.run('key', async () => {
      throw new Error('broken')
    })
    const next = mutex.run('key', async () => 'next')

    await assert.rejects(failed, /broken/)
    assert.equal(await next, 'next')
  })

  it('keeps nothing of a key whose work has finished', async () => {
    const mutex = new KeyedMutex()
    const both = Promise.all([mutex.run('key', async () => 1), mutex.run('key', async () => 2)])

    assert.equal(mutex.size, 1)
    await both
    assert.equal(mutex.size, 0)
  })
})
