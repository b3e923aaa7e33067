// `polylog replay <run>`: shows a stored run again as it happened, at its own speed or faster.

import { setTimeout as wait } from 'node:timers/promises'
import { type Command, InvalidArgumentError } from 'commander'
import type { TimelineEntry } from '../../client/src/native.ts'
import type { RunFrame } from '../../client/src/run.ts'
import { addConnectionOptions, type ConnectionFlags, connectTo } from './connection.ts'
import type { CliContext } from './context.ts'
import { RunPrinter } from './run-printer.ts'
import { wholeNumber } from './runs.ts'
import { stylesOf } from './styles.ts'
import { timelinePages } from './timeline-pages.ts'
import { durationText } from './times.ts'

type ReplayFlags = ConnectionFlags & { speed: number; maxGap: number }

export function registerReplay(program: Command, context: CliContext): void {
  addConnectionOptions(program.command('replay'))
    .description('show a run again as it happened')
    .argument('<run>', 'the id of the run')
    .option('--speed <factor>', '1 is the original speed, 4 four times as fast, max without waiting', speedOf, 1)
    .option('--max-gap <seconds>', 'shorten pauses that were longer, for example for a person', wholeNumber, 5)
    .addHelpText(
      'after',
      `
Examples:
  $ polylog replay 01KXYZ
  $ polylog replay 01KXYZ --speed 4
  $ polylog replay 01KXYZ --speed max --json`,
    )
    .action(async (runId: string, flags: ReplayFlags) => await replay(runId, flags, context))
}

async function replay(runId: string, flags: ReplayFlags, context: CliContext): Promise<void> {
  const { output, clock } = context
  const { client } = connectTo(flags, context)
  const printer = new RunPrinter(output, stylesOf(context))
  /** When the next entry is due, by the monotonic clock. */
  let dueMs = clock.monotonic()
  let lastAt: number | undefined
  for await (const { events } of timelinePages(client, runId)) {
    for (const entry of events) {
      const gapMs = Math.max(0, entry.atMs - (lastAt ?? entry.atMs))
      lastAt = entry.atMs
      const shortMs = Math.min(gapMs, flags.maxGap * 1000)
      if (shortMs < gapMs && flags.json !== true && flags.speed !== Infinity)
        output.note(`(a pause of ${durationText(gapMs)})`)
      dueMs += shortMs / flags.speed
      const aheadMs = dueMs - clock.monotonic()
      if (aheadMs > 1) await wait(aheadMs)
      if (flags.json === true) output.json(entry)
      else if (isFrame(entry)) printer.frame({ id: entry.id, event: entry.event, data: entry.payload } as RunFrame)
      await output.drained()
    }
  }
  printer.closeText()
}

const withoutFrame = new Set<TimelineEntry['event']>([
  'run.prepared',
  'run.state',
  'step.started',
  'step.done',
  'answer.discarded',
  'message.done',
  'output.rejected',
  'context.cut',
  'context.summarised',
  'diagnostic',
])

function isFrame(entry: TimelineEntry): boolean {
  return !withoutFrame.has(entry.event)
}

function speedOf(text: string): number {
  if (text === 'max') return Infinity
  const speed = Number(text)
  if (!(speed > 0) || speed > 1000) throw new InvalidArgumentError('It has to be a number above 0, up to 1000, or max.')
  return speed
}
