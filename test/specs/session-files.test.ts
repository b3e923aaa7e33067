// Files in the session API: what the results of file tools and commands say, and which working
// directories a request may name.

import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { apiKeysSetting } from '../support/api-keys.ts'
import { agentIdOf, resultOf, sayToEnd, sharedSessionServer, typesOf } from '../support/session-api.ts'
import { calls, messagesOf, says, someone, startTestServer } from '../support/test-server.ts'

const { server, folder, workspace, script, post } = sharedSessionServer()

describe('results of file tools', () => {
  test('a file that was written is modified, with its path; and it is really there', async () => {
    const user = someone()
    await script(user, calls(['fs_write', { path: 'out/a.txt', content: 'hello\n' }]), says('Written.'))

    const messages = await sayToEnd(server, user, { message: user, context: { workingDir: 'project-write' } })

    const { result, is_error } = resultOf(messages)
    assert.deepEqual(Object.keys(result), ['status', 'message', 'modified', 'paths'])
    assert.deepEqual([result.status, result.modified, is_error], ['success', true, false])
    assert.equal(result.paths.length, 1)
    assert.match(result.paths[0], /out\/a\.txt$/)
    assert.equal(readFileSync(join(workspace, 'project-write', 'out/a.txt'), 'utf8'), 'hello\n')
  })

  test('a file that was only read is not modified, though the call succeeded', async () => {
    const user = someone()
    mkdirSync(join(workspace, 'project-read'), { recursive: true })
    writeFileSync(join(workspace, 'project-read', 'a.txt'), 'from outside')
    await script(user, calls(['fs_read', { path: 'a.txt' }]), says('Read.'))

    const messages = await sayToEnd(server, user, { message: user, context: { workingDir: 'project-read' } })

    const { result } = resultOf(messages)
    assert.deepEqual([result.status, result.modified, result.paths], ['success', false, []])
    assert.match(JSON.stringify(messagesOf((await server.asked(user))[1])), /from outside/)
  })

  test('a long text is shown as a preview beside the call, and written whole', async () => {
    const user = someone()
    const content = 'long '.repeat(5000)
    await script(user, calls(['fs_write', { path: 'long.txt', content }]), says('Written.'))

    const messages = await sayToEnd(server, user, { message: user, context: { workingDir: 'project-long' } })

    const use = messages.find(({ type }) => type === 'tool_use')
    assert.ok(use?.input.content.length < 1000)
    assert.equal(readFileSync(join(workspace, 'project-long', 'long.txt'), 'utf8'), content)
  })

  test('a command that ends badly is failed and no error', async () => {
    const user = someone()
    await script(user, calls(['bash_run', { cmd: 'echo oops; exit 3' }]), says('It failed.'))

    const messages = await sayToEnd(server, user, user)

    assert.deepEqual(typesOf(messages), ['start', 'tool_use', 'tool_result', 'text', 'done'])
    assert.deepEqual([resultOf(messages).result.status, resultOf(messages).is_error], ['failed', false])
    assert.match(resultOf(messages).result.message, /oops/)
  })
})

describe('the working directory', () => {
  test('a working directory outside the workspace is 400, whatever its spelling', async () => {
    mkdirSync(join(folder, 'elsewhere'), { recursive: true })
    mkdirSync(workspace, { recursive: true })
    symlinkSync(join(folder, 'elsewhere'), join(workspace, 'way-out'))
    for (const workingDir of ['/etc', '..', '../elsewhere', 'a/../../elsewhere', 'way-out', 'way-out/inner', 'a\0b']) {
      const answer = await post({ message: 'hi', context: { userId: someone(), workingDir } })
      assert.deepEqual([answer.status, answer.body.error], [400, 'BAD_REQUEST'], workingDir)
      assert.ok(!String(answer.body.message).includes(folder), `tells where the workspace is: ${answer.body.message}`)
    }
    assert.equal(existsSync(join(folder, 'elsewhere', 'inner')), false)
  })

  test('a request cannot name the directory of another session', async () => {
    const agentId = agentIdOf(await sayToEnd(server, someone(), 'hello'))
    for (const workingDir of [
      `sessions/${agentId}`,
      join(workspace, 'sessions', agentId),
      'sessions',
      './a/../sessions',
    ]) {
      assert.equal((await post({ message: 'hi', context: { workingDir } })).status, 400, workingDir)
    }
  })

  test('a request cannot name the workspace itself, which holds the directories of all sessions', async () => {
    for (const workingDir of ['.', './', 'a/..', workspace, `${workspace}/`]) {
      const answer = await post({ message: 'hi', context: { userId: someone(), workingDir } })
      assert.deepEqual([answer.status, answer.body.error], [400, 'BAD_REQUEST'], workingDir)
    }
  })

  test('with logins a named directory is each user’s own, unless the operator shares it', async () => {
    const realRoot = join(folder, 'owners-volume')
    mkdirSync(realRoot)
    const root = join(folder, 'owners')
    symlinkSync(realRoot, root)
    const strict = await startTestServer(
      {
        POLYLOG_AUTH: 'required',
        POLYLOG_API_KEYS: apiKeysSetting({ ann: 'key-a', bob: 'key-b' }),
        POLYLOG_WORKSPACE: root,
        POLYLOG_SHARED_DIRS: 'common',
      },
      server.provider,
    )
    try {
      const write = async (key: string, workingDir: string, path: string) => {
        const marker = someone()
        await script(marker, calls(['fs_write', { path, content: key }], ['fs_glob', { pattern: '**' }]), says('Done.'))
        const raw = await strict.call('POST', '/api/chat/stream', {
          headers: { 'x-api-key': key },
          body: { message: marker, context: { workingDir } },
        })
        assert.equal(raw.status, 200, raw.text)
        return raw.text
      }
      await write('key-a', 'project', 'a.txt')
      await write('key-b', 'project', 'b.txt')
      // Neither a name that only begins like the way out nor another path to the workspace makes a directory common.
      for (const workingDir of ['..notes', '...', join(realRoot, 'letters')]) {
        await write('key-a', workingDir, 'a.txt')
        assert.doesNotMatch(await write('key-b', workingDir, 'b.txt'), /a\.txt/, workingDir)
      }
      await write('key-a', '.', 'root.txt')
      await write('key-a', 'common/tea', 'a.txt')
      await write('key-b', 'common/tea', 'b.txt')

      assert.deepEqual(readdirSync(join(root, 'common/tea')).toSorted(), ['a.txt', 'b.txt'])
      assert.deepEqual(readdirSync(root).toSorted(), ['common', 'owners'])
      const [ann, bob] = readdirSync(join(root, 'owners')).toSorted()
      assert.match(`${ann} ${bob}`, /^ann-[0-9a-f]{16} bob-[0-9a-f]{16}$/)
      assert.deepEqual(readdirSync(join(root, 'owners', ann ?? '', 'project')), ['a.txt'])
      assert.deepEqual(readdirSync(join(root, 'owners', bob ?? '', 'project')), ['b.txt'])
      assert.equal(readFileSync(join(root, 'owners', ann ?? '', 'root.txt'), 'utf8'), 'key-a')
      const foreign = await strict.call('POST', '/api/chat/stream', {
        headers: { 'x-api-key': 'key-b' },
        body: { message: 'hi', context: { workingDir: `owners/${ann}/project` } },
      })
      assert.equal(foreign.status, 400)
    } finally {
      await strict.close()
    }
  })
})
