// Records docs/images/kill-and-resume.svg: a real client reads an answer of a real server, which is
// killed in the middle and started again. Every word and every time in the picture is what happened.

import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createClient } from '../client/src/client.ts'
import { startPolylogProcess } from '../test/support/polylog-process.ts'
import { animatedSvg, type Piece } from './recording.ts'

const wordsBeforeKill = 22
const columns = 50
const conversationId = 'recorded'
const file = join(import.meta.dirname, '..', 'docs/images/kill-and-resume.svg')

const settings = { PORT: String(await freePort()), POLYLOG_DEMO_PACE_MS: '110' }
const server = await startPolylogProcess(settings)
const client = createClient({ baseUrl: server.baseUrl, userId: 'ada' })
// The demo model introduces itself in its first answer.
await (await client.chat({ input: 'say hello', conversationId })).result()
const beginning = performance.now()
const now = () => Math.round(performance.now() - beginning) + 800

const serverLines: Piece[][] = [
  [{ atMs: 200, text: '$ npm start', style: 'command' }],
  [{ atMs: 500, text: `Polylog serves at ${server.baseUrl}`, style: 'note' }],
]
const clientLines: Piece[][] = [[{ atMs: 700, text: '> count to 60', style: 'command' }], []]
let column = 0

let restarted: ReturnType<typeof server.restartProcess> | undefined
let words = 0
const run = await client.chat(
  { input: 'count to 60', conversationId },
  {
    onConnection(connection) {
      if (connection.state === 'waiting' && connection.attempt === 1)
        startLine([{ atMs: now(), text: 'connection lost, reconnecting…', style: 'bad' }])
      else if (connection.state === 'open' && restarted !== undefined)
        startLine([{ atMs: now(), text: `attached after frame ${cursor}`, style: 'good' }])
    },
  },
)
let cursor = ''
let output: string | undefined
for await (const frame of run) {
  cursor = frame.id
  if (frame.event === 'agent.end') output = frame.data.status
  if (frame.event !== 'agent.delta') continue
  show(frame.data.delta)
  words += 1
  if (words === wordsBeforeKill) restarted = killAndStart()
}
startLine([{ atMs: now(), text: `${output}: ${words} words, none lost, none twice`, style: 'good' }])
await (await restarted)?.dispose()

writeFileSync(
  file,
  animatedSvg(
    [
      { title: 'server', lines: serverLines },
      { title: 'client', lines: clientLines },
    ],
    columns,
  ),
)
console.log(`${words} words, ${output}: ${file}`)

async function killAndStart() {
  await server.kill()
  serverLines.push([], [{ atMs: now(), text: `$ kill -9 ${server.pid}`, style: 'command' }])
  serverLines.push([{ atMs: now() + 150, text: 'Killed', style: 'bad' }])
  const again = await server.restartProcess()
  serverLines.push([], [{ atMs: now() - 300, text: '$ npm start', style: 'command' }])
  serverLines.push([{ atMs: now(), text: `Polylog serves at ${again.baseUrl}`, style: 'note' }])
  return again
}

/** A word behind the last one, or on a new line if it does not fit. */
function show(text: string): void {
  if (column + text.length > columns) startLine([])
  const shown = column === 0 ? text.trimStart() : text
  clientLines.at(-1)?.push({ atMs: now(), text: shown })
  column += shown.length
}

function startLine(pieces: Piece[]): void {
  clientLines.push(pieces)
  if (pieces.length > 0) clientLines.push([])
  column = 0
}

/** The same address before and after the restart, so that the client finds the server again. */
async function freePort(): Promise<number> {
  const listener = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => listener.once('listening', resolve))
  const address = listener.address()
  await new Promise((resolve) => listener.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}
