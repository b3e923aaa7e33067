// The main thread of a server serves every reader, so its other threads must not take its time on a core that they share.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { test } from 'node:test'
import { newDataFolder } from '../support/polylog.ts'
import { startPolylogProcess } from '../support/polylog-process.ts'

const notLinux = process.platform === 'linux' ? false : 'only Linux has priorities of single threads'

test(
  'the main thread of a server goes before that of SQLite, and those of V8 have their full share at first',
  { skip: notLinux },
  async () => {
    const server = await startPolylogProcess({ POLYLOG_DATABASE_URL: '' }, newDataFolder())
    try {
      const tasks = `/proc/${server.pid}/task`
      const found = { main: new Set<number>(), sqlite: new Set<number>(), v8: new Set<number>() }
      for (const id of readdirSync(tasks)) {
        const name = readFileSync(`${tasks}/${id}/comm`, 'utf8')
        const kind = Number(id) === server.pid ? 'main' : name.startsWith('polylog-sqlite') ? 'sqlite' : 'v8'
        if (kind === 'v8' && !name.includes('V8Worker')) continue
        found[kind].add(getPriority(Number(id)))
      }
      const own = getPriority()
      const background = Math.min(19, own + 5)
      assert.deepEqual(found, { main: new Set([own]), sqlite: new Set([background]), v8: new Set([own]) })
    } finally {
      await server.dispose()
    }
  },
)
