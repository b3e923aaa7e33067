import assert from 'node:assert/strict'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type AgentFolder, agentFolder } from '../../test/support/agent-folder.ts'
import { type ManualClock, manualClock } from '../../test/support/manual-clock.ts'
import { type ReloadableCatalogue, readCatalogue } from './catalogue.ts'
import type { AgentsFound } from './read-agents.ts'
import { type AgentsWatch, type WatchDirectory, watchAgents } from './watch-agents.ts'

const builtIn = fileURLToPath(new URL('../../agents', import.meta.url))

let own: AgentFolder
let clock: ManualClock
let catalogue: ReloadableCatalogue
let watched: Map<string, { onChange(): void; onError(error: unknown): void }>
let reloads: number
let errors: unknown[]
let next: PromiseWithResolvers<void>
let agents: AgentsWatch

beforeEach(async () => {
  own = agentFolder()
  own.agent(
    'mine',
    { prompt: { systemTemplate: 'templates/system.mustache' } },
    { 'templates/system.mustache': 'One.' },
  )
  clock = manualClock()
  catalogue = await readCatalogue([builtIn, own.path])
  watched = new Map()
  reloads = 0
  errors = []
  next = Promise.withResolvers()
  const watch: WatchDirectory = (directory, onChange, onError) => {
    assert.ok(!watched.has(directory), 'a directory is watched once')
    watched.set(directory, { onChange, onError })
    return { close: () => watched.delete(directory) }
  }
  const done = () => {
    next.resolve()
    next = Promise.withResolvers()
  }
  agents = watchAgents({
    catalogue,
    clock,
    watch,
    onReload() {
      reloads += 1
      done()
    },
    onError(error) {
      errors.push(error)
      done()
    },
  })
})
afterEach(() => {
  agents.close()
  own.dispose()
})

function change(...path: string[]): void {
  const directory = join(own.path, ...path)
  const watcher = watched.get(directory)
  assert.ok(watcher !== undefined, `${directory} is not watched`)
  watcher.onChange()
}

async function quiet(): Promise<void> {
  const reading = next.promise
  await clock.advance(200)
  await reading
}

test('a changed template is used after a moment of quiet; many changes cause one reading', async () => {
  own.write('mine/templates/system.mustache', 'Two.')
  change('mine', 'templates')
  await clock.advance(199)
  change('mine', 'templates')
  change('mine')
  await clock.advance(199)
  assert.equal(catalogue.get('mine').systemTemplate, 'One.')

  await quiet()

  assert.equal(catalogue.get('mine').systemTemplate, 'Two.')
  assert.equal(reloads, 1)
  assert.equal(clock.pending, 0)
})

test('a new agent is found and watched from then on; one that is removed is not watched any more', async () => {
  own.agent('new')
  change()
  await quiet()
  assert.equal(catalogue.get('new').card.id, 'new')
  assert.ok(watched.has(join(own.path, 'new')))
  // Its files may have changed between the reading and the watching.
  await quiet()
  assert.equal(reloads, 2)
  assert.equal(clock.pending, 0)

  own.remove('new')
  change()
  await quiet()
  assert.ok(!watched.has(join(own.path, 'new')))
})

test('a definition that breaks is unavailable, and works again when it is corrected', async () => {
  own.write('mine/templates/system.mustache', '{{broken')
  change('mine', 'templates')
  await quiet()
  assert.throws(() => catalogue.get('mine'), { code: 'agent_unavailable' })

  own.write('mine/templates/system.mustache', 'Three.')
  change('mine', 'templates')
  await quiet()
  assert.equal(catalogue.get('mine').systemTemplate, 'Three.')
})

test('a reading that fails as a whole, and a watcher that fails, are reported and leave the agents as they were', async () => {
  watched.get(join(own.path, 'mine'))?.onError(Object.assign(new Error('no more watchers'), { code: 'ENOSPC' }))
  assert.equal(errors.length, 1)
  own.dispose()
  change()
  await quiet()
  assert.equal(errors.length, 2)
  assert.equal(catalogue.get('mine').systemTemplate, 'One.')
})

test('a directory that was deleted and created again under its name is watched anew', async () => {
  const before = watched.get(join(own.path, 'mine'))
  change()
  await quiet()
  assert.notEqual(watched.get(join(own.path, 'mine')), before)
})

test('a change during a reading causes another one, because it may have come too late', async () => {
  const readings: PromiseWithResolvers<AgentsFound>[] = []
  const slow: ReloadableCatalogue = {
    ...catalogue,
    found: { listings: [], warnings: [], directories: new Set(['only']) },
    reload() {
      readings.push(Promise.withResolvers())
      return readings.at(-1)?.promise ?? assert.fail()
    },
  }
  let onChange = () => {}
  const watch: WatchDirectory = (_directory, changed) => {
    onChange = changed
    return { close() {} }
  }
  const slowWatch = watchAgents({ catalogue: slow, clock, watch, onReload() {}, onError: assert.fail })
  onChange()
  await clock.advance(200)
  onChange()
  await clock.advance(200)
  assert.equal(readings.length, 1, 'there is one reading at a time')
  readings[0]?.resolve(slow.found)
  await clock.advance(200)
  assert.equal(readings.length, 2)
  slowWatch.close()
})

test('after close nothing is watched and nothing is read', async () => {
  change('mine')
  agents.close()
  assert.equal(watched.size, 0)
  assert.equal(clock.pending, 0)
})

test('the files of a real folder are watched', async () => {
  const seen = Promise.withResolvers<void>()
  const real = watchAgents({
    catalogue,
    clock: { ...clock, after: (_delay, fire) => (setImmediate(fire), { cancel() {} }) },
    onReload: (found) => {
      if (found.listings.find(({ id }) => id === 'mine')?.definition?.systemTemplate === 'Seen.') seen.resolve()
    },
    onError: (error) => seen.reject(error),
  })
  own.write('mine/templates/system.mustache', 'Seen.')
  await seen.promise
  real.close()
})
