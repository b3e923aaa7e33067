import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import { createLog } from './log.ts'

function collector(isTTY: boolean) {
  let text = ''
  const stream = Object.assign(
    new Writable({
      write(chunk, _encoding, done) {
        text += String(chunk)
        done()
      },
    }),
    { isTTY },
  )
  return { stream, text: () => text }
}

test('a log that is not a terminal gets one JSON object a line', () => {
  const out = collector(false)
  const log = createLog({ level: 'info', destination: out.stream })

  log.info({ port: 3000 }, 'listening')
  log.debug('not at this level')

  const lines = out.text().trimEnd().split('\n')
  assert.equal(lines.length, 1)
  const line = JSON.parse(lines[0] ?? '') as Record<string, unknown>
  assert.equal(line['level'], 'info')
  assert.equal(line['msg'], 'listening')
  assert.equal(line['port'], 3000)
})

test('a terminal gets readable lines', () => {
  const out = collector(true)
  const log = createLog({ level: 'info', destination: out.stream })

  log.info({ port: 3000 }, 'listening')

  assert.match(out.text(), /listening/)
  assert.doesNotMatch(out.text(), /^\{/)
})

test('credentials are hidden at every depth that libraries use', () => {
  const out = collector(false)
  const log = createLog({ level: 'info', destination: out.stream })
  const error = Object.assign(new Error('upstream said no'), {
    request: { headers: { authorization: 'Bearer s3cret-a', 'x-api-key': 's3cret-b' } },
  })

  log.info({ authorization: 's3cret-c', 'x-api-key': 's3cret-d' })
  log.info({
    req: { headers: { authorization: 's3cret-e', cookie: 's3cret-f' } },
    res: { headers: { 'set-cookie': 's3cret-g' } },
  })
  log.error({ err: error, providers: { openaiApiKey: 's3cret-h' } })

  assert.doesNotMatch(out.text(), /s3cret/)
  assert.match(out.text(), /upstream said no/)
})
