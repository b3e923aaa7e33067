// The further files of a skill (references, templates): the prompt lists their names, and the
// model lists and reads them with its tools and can reach nothing else. The same for both
// families.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { calls, type Json, messagesOf, says, someone } from '../support/test-server.ts'
import {
  errand,
  errandResult,
  families,
  type Family,
  type Job,
  jobOf,
  upload,
  zipped,
  sharedJobServer,
  writeSkill,
} from '../support/jobs.ts'

const { server, folder } = sharedJobServer()
// The first page would end in the middle of the emoji.
const long = `${'x'.repeat(19_999)}🙂${'x'.repeat(9_999)}`
const files = { 'references/guide.md': 'Hop twice.', 'references/long.md': long, 'logo.png': '\0PNG' }

writeSkill(folder, 'errand', files)

async function run(family: Family, user: string): Promise<Job> {
  const body = family === 'jobs' ? { skill_id: 'errand', input: { what: user } } : { input: { what: user } }
  const created = await server.call('POST', `/v1/${family}`, { user, body })
  const job = jobOf(server, family, user, String(created.body.request_id))
  if (family === 'temp-skill-runs') {
    const sent = await upload(server, job.path, user, { skill_package: zipped(errand(files)) })
    assert.equal(sent.status, 200, sent.text)
  }
  return job
}

for (const family of families) {
  test(`a model reads the files of its skill, and nothing else (${family})`, async () => {
    const user = someone()
    const wanted: [tool: string, input: Json, told: RegExp][] = [
      ['list_skill_files', {}, /"references\/guide\.md","size":10/],
      ['read_skill_file', { path: 'references/guide.md' }, /^Hop twice\.$/],
      ['read_skill_file', { path: './references/guide.md' }, /^Hop twice\.$/],
      [
        'read_skill_file',
        { path: 'references/long.md' },
        /^x{19999}\n\[10001 more characters: read on with from 19999\]$/,
      ],
      ['read_skill_file', { path: 'references/long.md', from: 19_999 }, /^🙂x{9999}$/],
      ['read_skill_file', { path: 'references/long.md', from: 900_000 }, /^$/],
      ['read_skill_file', { path: 'logo.png' }, /not a text file/],
      ['read_skill_file', { path: '../needs-file/SKILL.md' }, /has no file/],
      ['read_skill_file', { path: 'references/../../picky/SKILL.md' }, /has no file/],
      ['read_skill_file', { path: '/etc/passwd' }, /has no file/],
      ['read_skill_file', { path: 'assets/runner.json' }, /has no file/],
      ['read_skill_file', { path: 'x'.repeat(301) }, /do not fit|301|longer|fewer|300/],
      ['read_skill_file', { path: 'a', from: -1 }, /do not fit|minimum|>= 0|less/],
    ]
    await server.provider.script([...wanted.map(([tool, input]) => calls([tool, input])), says(errandResult)], user)

    const job = await run(family, user)
    await job.reaches('succeeded')

    const asked = await server.asked(user)
    assert.equal(asked.length, wanted.length + 1)
    for (const [index, [tool, input, told]] of wanted.entries())
      assert.match(
        String(messagesOf(asked[index + 1]).at(-1)?.content),
        told,
        `${tool} ${JSON.stringify(input).slice(0, 80)}`,
      )
    const system = String(messagesOf(asked[0])[0]?.content)
    assert.match(system, /# Files of the skill[\s\S]*- references\/guide\.md \(10 bytes\)/)
    assert.doesNotMatch(system, /runner\.json|output\.json/)
  })
}

test('GET /v1/skills/{id} names the further files', async () => {
  const { body } = await server.call('GET', '/v1/skills/errand')

  assert.deepEqual(body.files, [
    { path: 'logo.png', size: 4 },
    { path: 'references/guide.md', size: 10 },
    { path: 'references/long.md', size: 30_002 },
  ])
})

test('a skill without further files has no such tools, and neither has a chat', async () => {
  const user = someone()
  const created = await server.call('POST', '/v1/jobs', { user, body: { skill_id: 'plain', input: { what: user } } })
  await jobOf(server, 'jobs', user, String(created.body.request_id)).reaches('succeeded')
  await server.chatToEnd(user, `chat ${user}`)

  for (const request of await server.asked(user)) {
    const names = ((request.body as Json).tools as Json[]).map((tool) => tool.function.name)
    assert.deepEqual(
      names.filter((name) => String(name).includes('skill_file')),
      [],
    )
  }
})
