// The log of a request: made only if it is used, and then like any child of the log.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import Fastify, { LogController } from 'fastify'
import { pino } from 'pino'
import { RequestLog } from './request-log.ts'

it('a request that logs nothing makes no child; the lines of others have its id', () => {
  const lines: string[] = []
  let children = 0
  const parent = pino({ level: 'trace', onChild: () => (children += 1) }, { write: (line) => void lines.push(line) })
  const log = new RequestLog(parent, { reqId: 'req-7' })
  assert.equal(children, 0)

  for (const level of ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const) log[level]({ level }, 'said')
  log.child({ part: 'one' }).info('said')
  log.silent('nothing')

  const said = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  assert.deepEqual(
    said.map(({ reqId, msg }) => [reqId, msg]),
    Array.from({ length: 7 }, () => ['req-7', 'said']),
  )
  assert.equal(said.at(-1)?.['part'], 'one')
  assert.equal(log.level, 'trace')
  assert.equal(children, 2)
})

it('Fastify makes no child either: it looks at the methods of every log, and calls none', async () => {
  let children = 0
  const parent = pino({ level: 'trace', onChild: () => (children += 1) }, { write: () => {} })
  const server = Fastify({
    loggerInstance: parent,
    childLoggerFactory: (log, bindings, options) => new RequestLog(log, bindings, options),
    logController: new LogController({ disableRequestLogging: true }),
  })
  server.get('/', async () => 'done')
  const atStart = children

  assert.equal((await server.inject('/')).body, 'done')
  assert.equal(children, atStart)
  await server.close()
})
