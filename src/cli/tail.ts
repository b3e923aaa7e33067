// `polylog tail <run>`: follows a run, readable, as JSON, or as the bytes of any dialect.

import type { Command } from 'commander'
import { PolylogError } from '../../client/src/error.ts'
import type { ConnectionState } from '../../client/src/run.ts'
import type { Connection } from '../../client/src/transport.ts'
import { addConnectionOptions, type ConnectionFlags, connectTo, type ServerConnection } from './connection.ts'
import type { CliContext } from './context.ts'
import { CliError } from './exit-codes.ts'
import { printableLine } from './output.ts'
import { RunPrinter } from './run-printer.ts'
import { stylesOf } from './styles.ts'

type TailFlags = ConnectionFlags & { format?: string; from?: string }

export function registerTail(program: Command, context: CliContext): void {
  addConnectionOptions(program.command('tail'))
    .description('follow a run until it ends')
    .argument('<run>', 'the id of the run')
    .option('--from <cursor>', 'only what comes after this cursor, the id of a frame')
    .option('--format <name>', 'the raw bytes of a dialect: sse, vercel-ai, openai-chat, ag-ui, fcmp …')
    .addHelpText(
      'after',
      `
Ends with 0 if the run succeeded, and with 1 if it failed or was cancelled. Leaving with Ctrl-C does not stop the run.

Examples:
  $ polylog tail 01KXYZ
  $ polylog tail 01KXYZ --format openai-chat
  $ polylog tail 01KXYZ --from 120 --json | jq .event`,
    )
    .action(async (runId: string, flags: TailFlags) => {
      const connection = connectTo(flags, context)
      // Also says early that there is no such run, or no server.
      await connection.client.getRun(runId)
      if (flags.format === undefined) await tailFrames(runId, flags, connection, context)
      else await tailRaw(runId, flags.format, flags.from ?? '0', connection, context)
    })
}

async function tailFrames(
  runId: string,
  flags: TailFlags,
  { client }: ServerConnection,
  context: CliContext,
): Promise<void> {
  const { output } = context
  const printer = new RunPrinter(output, stylesOf(context))
  const after = flags.from === undefined ? {} : { after: flags.from }
  let status: string | undefined
  for await (const frame of client.attach(runId, { ...after, onConnection: connectionNotes(context) })) {
    if (flags.json === true) output.json(frame)
    else printer.frame(frame)
    await output.drained()
    if (frame.event === 'agent.end') status = frame.data.status
  }
  // Nothing follows the cursor.
  status ??= (await client.getRun(runId)).status
  if (status !== 'succeeded') throw new CliError('failed', `The run ended as ${status}.`, status)
}

/** Says on stderr when the connection is lost, and when it is back. */
export function connectionNotes({ output }: CliContext): (state: ConnectionState) => void {
  let isLost = false
  return (connection) => {
    if (connection.state === 'open') {
      if (isLost) output.note('(connected again)')
      isLost = false
    } else if (!isLost) {
      isLost = true
      output.note(`(the connection is lost: ${printableLine(connection.error.message)} Trying again.)`)
    }
  }
}

/** The raw bytes of a dialect. A stream that was cut continues without a seam if its messages have ids. */
async function tailRaw(
  runId: string,
  format: string,
  from: string,
  { transport, client }: ServerConnection,
  context: CliContext,
): Promise<void> {
  const note = connectionNotes(context)
  let cursor = from
  let hasCursors = true
  for (let failed = 1; ; failed += 1) {
    let problem = new PolylogError({ code: 'stream_cut', message: 'The stream ended before the run.', retryable: true })
    try {
      const path = `/v1/agent/runs/${encodeURIComponent(runId)}/stream`
      const connection = await transport.open({ method: 'GET', path, query: { format, after: cursor } })
      note({ state: 'open' })
      const { lastId, printed, hasEnded } = await printMessages(connection, context)
      cursor = lastId ?? cursor
      if (printed) failed = 1
      hasCursors &&= !printed || lastId !== undefined
      const { status } = await client.getRun(runId)
      if (status !== 'running' && status !== 'queued' && hasEnded) return
      if (!hasCursors) break
    } catch (error) {
      if (!(error instanceof PolylogError) || !error.retryable) throw error
      problem = error
    }
    const delayMs = transport.waitMs(failed, problem)
    note({ state: 'waiting', attempt: failed, delayMs, error: problem })
    await transport.pause(delayMs, undefined)
  }
  throw new CliError(
    'failed',
    `The stream was cut, and the format ${format} has no cursors to go on from.`,
    'stream_cut',
  )
}

/** Prints the whole messages of an event stream, or all bytes of another format, until the connection ends or breaks. */
async function printMessages(
  { response, close }: Connection,
  { output }: CliContext,
): Promise<{ lastId?: string; printed: boolean; hasEnded: boolean }> {
  const isEvents = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  const decoder = new TextDecoder()
  let lastId: string | undefined
  let printed = false
  let hasEnded = true
  let rest = ''
  try {
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      rest += decoder.decode(chunk, { stream: true })
      const end = isEvents ? rest.lastIndexOf('\n\n') + 2 : rest.length
      if (isEvents && end < 2) continue
      const whole = rest.slice(0, end)
      rest = rest.slice(end)
      lastId = [...whole.matchAll(/^id: ?(\S+)$/gm)].at(-1)?.[1] ?? lastId
      printed = true
      output.write(whole)
      await output.drained()
    }
  } catch {
    // The connection broke; an incomplete message is read again.
    hasEnded = false
  } finally {
    close()
  }
  return { printed, hasEnded, ...(lastId === undefined ? {} : { lastId }) }
}
