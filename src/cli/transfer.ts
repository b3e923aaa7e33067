// `polylog export` and `polylog import`: a run or a conversation as one file, from any server to any other. Ids are kept, so
// every stream of an imported run has the same bytes as before.

import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Command } from 'commander'
import { PolylogError } from '../../client/src/error.ts'
import { addConnectionOptions, type ConnectionFlags, connectTo, type ServerConnection } from './connection.ts'
import type { CliContext } from './context.ts'
import { CliError } from './exit-codes.ts'
import { exportLines, ExportWriter, sizeOf, verifyExport } from './export-file.ts'
import { bytesText } from './times.ts'

type ExportFlags = ConnectionFlags & { force?: true }

/** A run as the server exports it; only what is needed here. */
type RunDocument = {
  run: { id: string }
  messages: unknown[]
  events: { data: Record<string, unknown> }[]
}

type ImportAnswer = { outcome: 'imported' | 'unchanged' }

const pageMax = 200

export function registerExport(program: Command, context: CliContext): void {
  addConnectionOptions(program.command('export'))
    .description('save a conversation or a run as one file')
    .argument('<id>', 'the id of a conversation or of a run')
    .argument('[file]', 'where to write it (default: polylog-<id>.jsonl)')
    .option('--force', 'replace the file if it exists')
    .addHelpText(
      'after',
      `
The file has the journals, messages, questions and files, with all ids, and a checksum. Runs that have not ended are left out.
System prompts of the server, working directories and the state of providers are not part of it.

Examples:
  $ polylog export 01KXYZ
  $ polylog export 01KXYZ talk.jsonl --url https://agents.example.com`,
    )
    .action(
      async (id: string, file: string | undefined, flags: ExportFlags) => await exportTo(id, file, flags, context),
    )

  addConnectionOptions(program.command('import'))
    .description('bring a file of polylog export to a server; it becomes yours')
    .argument('<file>', 'the file')
    .option('--check', 'only verify the file; no server is asked')
    .addHelpText(
      'after',
      `
The whole file is verified before anything is sent, and every run is compared with the file after it was stored. Importing twice
changes nothing. Exit code 5: the file is damaged, or the server has something else.

Examples:
  $ polylog import talk.jsonl --url http://127.0.0.1:3000
  $ polylog import talk.jsonl --check`,
    )
    .action(async (file: string, flags: ConnectionFlags & { check?: true }) => await importFrom(file, flags, context))
}

async function exportTo(id: string, file: string | undefined, flags: ExportFlags, context: CliContext): Promise<void> {
  const { output, clock } = context
  const path = resolve(file ?? `polylog-${id.replace(/[^\w.-]/g, '_').slice(0, 100)}.jsonl`)
  if (existsSync(path) && flags.force !== true) {
    throw new CliError('failed', `${path} exists; name another file, or use --force to replace it.`, 'file_exists')
  }
  const connection = connectTo(flags, context)
  const found = await findRuns(id, connection)
  const writer = await ExportWriter.create(path, {
    kind: found.kind,
    id,
    exportedAt: new Date(clock.now()).toISOString(),
    server: connection.url,
  })
  const progress = output.progress('exporting', () => clock.monotonic())
  let files = 0
  try {
    const written = new Set<string>()
    for (const [index, runId] of found.runIds.entries()) {
      const document = await connection.transport.json<RunDocument>({ method: 'GET', path: `${runPath(runId)}/export` })
      for (const fileId of filesIn(document)) {
        if (written.has(fileId)) continue
        written.add(fileId)
        const line = await fileLine(fileId, connection)
        if (line === undefined) {
          output.note(`The file ${fileId} is no longer there, and is left out.`)
          continue
        }
        files += 1
        await writer.add(line)
      }
      await writer.add(JSON.stringify(document))
      progress.update(index + 1, found.runIds.length, ' runs')
    }
    progress.end()
    const { bytes, sha256 } = await writer.finish()
    const result = {
      file: path,
      kind: found.kind,
      runs: found.runIds.length,
      files,
      leftOut: found.leftOut,
      bytes,
      sha256,
    }
    if (flags.json === true) output.json(result)
    else output.line(`${path}: ${result.runs} runs, ${files} files, ${bytesText(bytes)}`)
    if (found.leftOut > 0) output.note(`${found.leftOut} runs have not ended and are left out.`)
  } catch (error) {
    progress.end()
    await writer.discard()
    throw error
  }
}

/** The runs to export, oldest first. */
async function findRuns(
  id: string,
  { client }: ServerConnection,
): Promise<{ kind: 'run' | 'conversation'; runIds: string[]; leftOut: number }> {
  try {
    const run = await client.getRun(id)
    return { kind: 'run', runIds: [run.runId], leftOut: 0 }
  } catch (error) {
    if (!(error instanceof PolylogError) || error.status !== 404) throw error
  }
  const runIds: string[] = []
  let leftOut = 0
  let before: string | undefined
  for (;;) {
    const page = await client.runs.list({
      conversationId: id,
      limit: pageMax,
      ...(before === undefined ? {} : { before }),
    })
    for (const { runId, endedAtMs } of page) {
      if (endedAtMs === null) leftOut += 1
      else runIds.push(runId)
    }
    before = page.at(-1)?.runId
    if (page.length < pageMax) break
  }
  if (runIds.length + leftOut === 0) {
    throw new CliError('notFound', `There is no run or conversation ${id} with runs.`, 'run_not_found')
  }
  return { kind: 'conversation', runIds: runIds.reverse(), leftOut }
}

async function importFrom(file: string, flags: ConnectionFlags & { check?: true }, context: CliContext): Promise<void> {
  const { output, clock } = context
  const path = resolve(file)
  const size = sizeOf(path)
  const facts = await verifyExport(path)
  const counts = { imported: 0, unchanged: 0, files: 0 }
  if (flags.check !== true) {
    const connection = connectTo(flags, context)
    const progress = output.progress('importing', () => clock.monotonic())
    try {
      for await (const { line, value, bytesRead } of exportLines(path)) {
        if ('file' in value || 'run' in value) {
          const { outcome } = await send(line, connection)
          if ('file' in value) counts.files += 1
          else {
            counts[outcome] += 1
            if (outcome === 'imported') await compare(value as unknown as RunDocument, connection)
          }
        }
        progress.update(bytesRead, size, ' bytes')
      }
    } finally {
      progress.end()
    }
  }
  const { kind, id, runs, files } = facts
  if (flags.json === true) output.json({ file: path, kind, id, runs, ...counts, files, checked: true })
  else if (flags.check === true) output.line(`${path} is whole: ${kind} ${id}, ${runs} runs, ${files} files.`)
  else {
    const before = counts.unchanged === 0 ? '' : `, ${counts.unchanged} were there already`
    output.line(`${kind} ${id}: ${counts.imported} runs imported and compared${before}.`)
  }
}

async function send(line: Buffer, { transport }: ServerConnection): Promise<ImportAnswer> {
  return await transport.json<ImportAnswer>({
    method: 'POST',
    path: '/v1/import',
    body: new Uint8Array(line),
    headers: { 'content-type': 'application/json' },
  })
}

/** What the server stored is what the file has, except for the owner. */
async function compare(document: RunDocument, { transport }: ServerConnection): Promise<void> {
  const path = `${runPath(document.run.id)}/export`
  const stored = await transport.json<RunDocument>({ method: 'GET', path })
  if (isDeepStrictEqual(withoutOwner(stored), withoutOwner(document))) return
  throw new CliError(
    'checkFailed',
    `The run ${document.run.id} was stored differently. Import again.`,
    'import_differs',
  )
}

function withoutOwner({ events, ...document }: RunDocument): unknown {
  const [first, ...rest] = events
  const { conversation: _title, ...compared } = document as RunDocument & { conversation?: unknown }
  return { ...compared, events: [{ ...first, data: { ...first?.data, owner: '' } }, ...rest] }
}

/** The ids of the files that a document refers to. */
function filesIn({ messages, events }: RunDocument): Set<string> {
  const ids = new Set<string>()
  JSON.stringify([messages, events], (name, value: unknown) => {
    if (name === 'fileId' && typeof value === 'string') ids.add(value)
    return value
  })
  return ids
}

async function fileLine(fileId: string, { transport }: ServerConnection): Promise<string | undefined> {
  const path = `/v1/files/${encodeURIComponent(fileId)}`
  try {
    const about = await transport.json<{ id: string; name: string | null; mediaType: string }>({
      method: 'GET',
      path,
      headers: { accept: 'application/json' },
    })
    const { id, name, mediaType } = about
    const { response, close } = await transport.request({ method: 'GET', path: `${path}/content` })
    const bytes = Buffer.from(await response.arrayBuffer())
    close()
    return JSON.stringify({ file: { id, name, mediaType }, base64: bytes.toString('base64') })
  } catch (error) {
    if (error instanceof PolylogError && error.status === 404) return undefined
    throw error
  }
}

function runPath(runId: string): string {
  return `/v1/agent/runs/${encodeURIComponent(runId)}`
}
