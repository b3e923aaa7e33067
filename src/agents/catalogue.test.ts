import assert from 'node:assert/strict'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type AgentFolder, agentFolder } from '../../test/support/agent-folder.ts'
import { readCatalogue } from './catalogue.ts'
import { agentFoldersMax } from './read-agents.ts'

const builtIn = fileURLToPath(new URL('../../agents', import.meta.url))

let own: AgentFolder
beforeEach(() => {
  own = agentFolder()
})
afterEach(() => own.dispose())

const idsOf = (catalogue: { list(): readonly { id: string }[] }) => catalogue.list().map(({ id }) => id)
const builtInIds = ['chat_conversation', 'archive_brief', 'title_summary', 'network_action', 'contact_insight']

test('the built-in agents all work, in their fixed order', async () => {
  const catalogue = await readCatalogue([builtIn])

  assert.deepEqual(idsOf(catalogue), builtInIds)
  assert.deepEqual(
    catalogue.list().flatMap(({ error }) => error ?? []),
    [],
  )
  assert.deepEqual(
    catalogue.get('archive_brief').operations.map(({ id, reads, scope }) => [id, reads, scope]),
    [
      ['archive_extract', 'conversation', 'conversation'],
      ['brief_generate', 'contact_brief', 'contact'],
    ],
  )
})

test('agents of the operator are added to the built-in ones by id, and replace one with the same id', async () => {
  own.agent('zebra')
  own.agent('ant')
  own.agent('my_titles', { id: 'title_summary', version: '9' })
  own.write('notes.txt', 'not a folder')
  own.write('.git/config', 'hidden')

  const catalogue = await readCatalogue([builtIn, own.path])

  assert.deepEqual(idsOf(catalogue), [...builtInIds, 'ant', 'zebra'])
  assert.equal(catalogue.get('title_summary').card.version, '9')
  assert.equal(catalogue.get('ant').card.id, 'ant')
})

test('a broken definition is listed with the reason, also in place of a built-in one, and does not affect the others', async () => {
  own.agent('fine')
  own.agent('no_template', { prompt: { systemTemplate: 'gone.mustache' }, name: 'Still named' })
  own.write('empty/readme.md', '')
  own.write('title_summary/agent.json', '{')

  const catalogue = await readCatalogue([builtIn, own.path])

  const broken = catalogue.list().filter(({ error }) => error !== null)
  assert.deepEqual(
    broken.map(({ id, definition, card, error }) => [id, definition, card?.name, error?.split(':')[0]]),
    [
      ['title_summary', null, undefined, 'agent.json is not valid JSON'],
      ['empty', null, undefined, "agent.json does not exist in the agent's folder"],
      ['no_template', null, 'Still named', 'prompt.systemTemplate'],
    ],
  )
  assert.equal(catalogue.get('fine').card.id, 'fine')
  assert.throws(() => catalogue.get('no_template'), { code: 'agent_unavailable', message: /gone\.mustache/ })
  assert.throws(() => catalogue.get('nobody'), { code: 'agent_not_found' })
})

test('two folders with one id: neither is used, and the reason names both', async () => {
  own.agent('first', { id: 'twin' })
  own.agent('second', { id: 'twin' })

  const catalogue = await readCatalogue([builtIn, own.path])

  assert.throws(() => catalogue.get('twin'), { code: 'agent_unavailable', message: /folders first and second/ })
  assert.equal(idsOf(catalogue).filter((id) => id === 'twin').length, 1)
})

test('the server does not start without a chat agent that works, and says why', async () => {
  await assert.rejects(readCatalogue([own.path]), { code: 'config_invalid', message: /there is no such folder/ })
  own.agent('chat_conversation', { memory: undefined })
  await assert.rejects(readCatalogue([builtIn, own.path]), { code: 'config_invalid', message: /agent\.json: memory/ })
  await assert.rejects(readCatalogue([builtIn, join(own.path, 'none')]), {
    code: 'config_invalid',
    message: /POLYLOG_AGENTS_DIR/,
  })
})

test('more folders than allowed are not read, and a warning says so', async () => {
  for (let index = 0; index < agentFoldersMax + 1; index++) own.write(`a${1000 + index}/x`, '')

  const { found } = await readCatalogue([builtIn, own.path])

  assert.equal(found.listings.length, builtInIds.length + agentFoldersMax)
  assert.match(found.warnings.join(), new RegExp(`${agentFoldersMax + 1} folders; only the first ${agentFoldersMax}`))
})

test('definitions that are too large together are listed with the reason', async () => {
  const large = 'x'.repeat(250 * 1024)
  for (let index = 0; index < 34; index++) own.agent(`a${10 + index}`, {}, { 'user.mustache': large })

  const catalogue = await readCatalogue([builtIn, own.path])

  assert.equal(catalogue.get('a20').card.id, 'a20')
  assert.throws(() => catalogue.get('a43'), { code: 'agent_unavailable', message: /all agents together/ })
})

test('a link to a folder is an agent, because the operator placed it', async () => {
  const elsewhere = agentFolder()
  elsewhere.agent('linked')
  symlinkSync(join(elsewhere.path, 'linked'), join(own.path, 'linked'))

  assert.equal((await readCatalogue([builtIn, own.path])).get('linked').card.id, 'linked')
  elsewhere.dispose()
})

test('a reading again replaces the list at once; runs under way keep the last definition that worked', async () => {
  own.agent('mine', { version: '1' })
  const catalogue = await readCatalogue([builtIn, own.path])
  const before = catalogue.list()
  own.agent('mine', { version: '2' })
  own.agent('new')
  const reading = catalogue.reload()
  assert.equal(catalogue.list(), before)
  await reading
  assert.deepEqual(idsOf(catalogue).slice(-2), ['mine', 'new'])
  assert.equal(catalogue.get('mine').card.version, '2')

  own.write('mine/agent.json', '{')
  await catalogue.reload()
  assert.throws(() => catalogue.get('mine'), { code: 'agent_unavailable' })
  assert.equal(catalogue.lastWorking('mine').card.version, '2')

  own.remove('mine')
  await catalogue.reload()
  assert.throws(() => catalogue.get('mine'), { code: 'agent_not_found' })
  assert.equal(catalogue.lastWorking('mine').card.version, '2')
  assert.throws(() => catalogue.lastWorking('nobody'), { code: 'agent_not_found' })
})

test('a folder that cannot be read any more changes nothing', async () => {
  own.agent('mine')
  const catalogue = await readCatalogue([builtIn, own.path])
  own.dispose()

  await assert.rejects(catalogue.reload(), { code: 'config_invalid' })
  assert.equal(catalogue.get('mine').card.id, 'mine')
})
