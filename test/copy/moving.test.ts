// A real server moves to PostgreSQL and back with `polylog copy`: every stream is the same bytes,
// and a question that waited for a person can be decided on the other database.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createClient } from '../../client/src/client.ts'
import { polylog } from '../support/command-line.ts'
import { newStoreDatabase, type TestDatabase } from '../support/postgres.ts'
import { type Polylog, startPolylog } from '../support/polylog.ts'
import { onlyOnSqlite } from '../support/test-database.ts'
import { callServer, until } from '../support/test-server.ts'

const formats = ['sse', 'vercel-ai', 'chunks', 'session', 'ag-ui']
const user = 'ada'

describe('a server that moves to another database', { skip: onlyOnSqlite('it moves between both databases') }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-moving-'))
  let database: TestDatabase
  let server: Polylog | undefined

  before(async () => {
    database = await newStoreDatabase()
  })
  after(async () => {
    await server?.stop()
    await database?.drop()
    rmSync(folder, { recursive: true, force: true })
  })

  const call = async (method: string, path: string, body?: unknown) => {
    const answer = await callServer(server?.baseUrl ?? '', method, path, {
      user,
      ...(body === undefined ? {} : { body }),
    })
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`)
    return answer
  }

  async function streams(runIds: readonly string[]): Promise<Record<string, string>> {
    const texts: Record<string, string> = {}
    for (const id of runIds)
      for (const format of formats)
        texts[`${id} ${format}`] = (await call('GET', `/v1/agent/runs/${id}/stream?format=${format}`)).text
    return texts
  }

  async function start(settings: Record<string, string>, dataDir: string): Promise<void> {
    server = await startPolylog(settings, join(folder, dataDir))
  }

  async function move(from: string, to: string): Promise<void> {
    await server?.stop()
    server = undefined
    const { code, stdout, stderr } = await polylog(['copy', '--from', from, '--to', to])
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(stdout, /^TABLE +ROWS +HASH\n/)
    assert.match(stdout, /\nThe copy is equal to the source\.\n$/)
  }

  test('keeps conversations, jobs, contacts, files, and a question that waits', async () => {
    await start({}, 'first')
    const client = () => createClient({ baseUrl: server?.baseUrl ?? '', userId: user })
    const answered = await client().chat({ input: 'What time is it? Please think.', conversationId: 'trip' })
    await answered.result()
    const parked = await client().chat({ input: 'remember that the key is under the mat' })
    for await (const frame of parked) if (frame.event === 'tool.state' && frame.data.status === 'awaiting_input') break
    await call('POST', '/v1/contacts', { id: 'c1', name: '张伟', tags: ['go'] })
    const form = new FormData()
    form.append('file', new Blob([Buffer.alloc(700_000, 'x')], { type: 'text/plain' }), 'x.txt')
    const sent = await fetch(`${server?.baseUrl}/v1/files?userId=${user}`, { method: 'POST', body: form })
    const file = (await sent.json()) as { id: string }
    const job = await call('POST', '/v1/jobs', { skill_id: 'text-digest', input: { text: 'Some words.' } })
    const jobPath = `/v1/jobs/${String(job.body.request_id)}`
    await until('the job to end', async () => {
      const { body } = await call('GET', jobPath)
      return ['succeeded', 'failed', 'canceled'].includes(String(body.status)) ? body : undefined
    })
    const things = async () => ({
      runs: (await call('GET', '/v1/agent/runs')).text,
      job: (await call('GET', `${jobPath}/result`)).text,
      contacts: (await call('GET', '/v1/contacts')).text,
      file: (await call('GET', `/v1/files/${file.id}/content`)).text,
      messages: (await call('GET', '/v1/conversations?limit=10')).text,
    })
    // Most streams of a run that waits for a person stay open, so its timeline stands for them.
    const timeline = async () => (await call('GET', `/v1/agent/runs/${parked.id}/timeline`)).text
    const wires = [await streams([answered.id]), await timeline()]
    const before = await things()

    await move(join(folder, 'first'), database.url)
    await start({ POLYLOG_DATABASE_URL: database.url }, 'second')

    assert.deepEqual([await streams([answered.id]), await timeline()], wires)
    assert.deepEqual(await things(), before)
    const pending = await call('GET', '/v1/tool-confirmations?status=pending')
    const [question] = pending.body as unknown as { id: string }[]
    await client().confirm(question?.id ?? '')
    await until('the run to end', async () => {
      const { body } = await call('GET', `/v1/agent/runs/${parked.id}`)
      return body.status === 'succeeded' ? body : undefined
    })
    const next = await client().chat({ input: 'And now?', conversationId: 'trip' })
    await next.result()
    const decided = await streams([answered.id, parked.id, next.id])
    const after = await things()

    await move(database.url, join(folder, 'third', 'polylog.db'))
    await start({}, 'third')

    assert.deepEqual(await streams([answered.id, parked.id, next.id]), decided)
    assert.deepEqual(await things(), after)
  })

  test('may name a data folder that does not exist yet', async () => {
    await server?.stop()
    await start({}, 'old')
    await call('POST', '/v1/contacts', { id: 'c2', name: 'Ann' })

    await move(join(folder, 'old'), join(folder, 'new'))
    await start({}, 'new')

    assert.equal((await call('GET', '/v1/contacts/c2')).body.name, 'Ann')
  })

  test('is told with exit codes what went wrong', async () => {
    const none = await polylog(['copy', '--from', join(folder, 'none.db'), '--to', join(folder, 'other.db')])
    assert.deepEqual([none.code, /There is no database file/.test(none.stderr)], [1, true])
    const missing = await polylog(['copy', '--from', 'a'])
    assert.deepEqual([missing.code, /--to/.test(missing.stderr)], [2, true])
  })
})
