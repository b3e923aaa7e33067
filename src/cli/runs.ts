// `polylog runs`: the runs of the user, newest first.

import { type Command, InvalidArgumentError } from 'commander'
import type { RunInfo } from '../../client/src/api.ts'
import { addConnectionOptions, type ConnectionFlags, connectTo } from './connection.ts'
import { durationText, localTime } from './times.ts'
import type { CliContext } from './context.ts'

type RunsFlags = ConnectionFlags & { status?: string; conversation?: string; limit: number }

/** The largest page of the server. */
const pageMax = 200

export function registerRuns(program: Command, context: CliContext): void {
  addConnectionOptions(program.command('runs'))
    .description('list your runs, newest first')
    .option('--status <list>', 'only these: queued, running, awaiting_input, succeeded, failed, cancelled')
    .option('--conversation <id>', 'only those of a conversation')
    .option('--limit <number>', 'at most this many', wholeNumber, 20)
    .addHelpText(
      'after',
      `
Examples:
  $ polylog runs
  $ polylog runs --status running,awaiting_input
  $ polylog runs --status failed --limit 500 --json`,
    )
    .action(async (flags: RunsFlags) => await listRuns(flags, context))
}

async function listRuns(flags: RunsFlags, context: CliContext): Promise<void> {
  const { client } = connectTo(flags, context)
  const { output, clock } = context
  const found: RunInfo[] = []
  while (found.length < flags.limit) {
    const limit = Math.min(pageMax, flags.limit - found.length)
    const before = found.at(-1)?.runId
    const page = await client.runs.list({
      limit,
      ...(before === undefined ? {} : { before }),
      ...(flags.status === undefined ? {} : { status: flags.status }),
      ...(flags.conversation === undefined ? {} : { conversationId: flags.conversation }),
    })
    found.push(...page)
    if (page.length < limit) break
  }
  if (flags.json === true) {
    for (const run of found) output.json(run)
    return
  }
  if (found.length === 0) {
    output.note('There are no such runs.')
    return
  }
  output.table(
    ['RUN', 'STATUS', 'STARTED', 'TOOK', 'AGENT', 'CONVERSATION'],
    found.map((run) => [
      run.runId,
      run.status,
      localTime(run.createdAtMs),
      durationText((run.endedAtMs ?? clock.now()) - run.createdAtMs),
      run.agentId,
      run.conversationId ?? '',
    ]),
  )
}

export function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It has to be a whole number above 0.')
  return Number(text)
}
