// `polylog show <run>`: the timeline of a run as a tree with durations.

import type { Command } from 'commander'
import { addConnectionOptions, type ConnectionFlags, connectTo } from './connection.ts'
import type { CliContext } from './context.ts'
import { printableLine } from './output.ts'
import { RunTreeBuilder, type TreeNode } from './run-tree.ts'
import { type Styles, stylesOf } from './styles.ts'
import { timelinePages } from './timeline-pages.ts'
import { durationText, localTime } from './times.ts'

export function registerShow(program: Command, context: CliContext): void {
  addConnectionOptions(program.command('show'))
    .description('show what a run did, as a tree with durations')
    .argument('<run>', 'the id of the run')
    .addHelpText(
      'after',
      `
Examples:
  $ polylog show 01KXYZ
  $ polylog show 01KXYZ --json | jq '.phases[].children[] | select(.kind == "step")'`,
    )
    .action(async (runId: string, flags: ConnectionFlags) => await show(runId, flags, context))
}

async function show(runId: string, flags: ConnectionFlags, context: CliContext): Promise<void> {
  const { output, clock } = context
  const { client } = connectTo(flags, context)
  const builder = new RunTreeBuilder()
  const progress = output.progress('reading the timeline', () => clock.monotonic())
  let read = 0
  let facts = { agentId: '', conversationId: null as string | null, skipped: 0 }
  for await (const page of timelinePages(client, runId)) {
    for (const entry of page.events) builder.add(entry)
    read += page.events.length
    progress.update(read, null, ' entries')
    facts = { agentId: page.agentId, conversationId: page.conversationId, skipped: page.skipped }
  }
  progress.end()
  const { left, ...tree } = builder.result()
  if (flags.json === true) {
    output.json({ runId, ...facts, ...tree, left })
    return
  }
  const styles = stylesOf(context)
  const now = clock.now()
  const took = durationText((tree.endMs ?? now) - tree.startMs)
  output.line(
    `${styles.bold(runId)}  ${tree.status}  ${took}  ${localTime(tree.startMs)}  ${printableLine(facts.agentId)}`,
  )
  printNodes(tree.phases, '', now, styles, (line) => output.line(line))
  if (left > 0) output.note(`${left} more parts are not shown; use tail or replay to see all of them.`)
  if (facts.skipped > 0) output.note(`${facts.skipped} stored rows could not be read.`)
}

const marks: Record<TreeNode['kind'], string> = {
  queued: '○',
  attempt: '●',
  waiting: '?',
  step: '◆',
  message: '“',
  tool: '⚙',
  question: '?',
  context: '✂',
  diagnostic: '!',
  error: '✖',
}

function printNodes(
  nodes: readonly TreeNode[],
  indent: string,
  now: number,
  styles: Styles,
  print: (line: string) => void,
): void {
  for (const [index, node] of nodes.entries()) {
    const isLast = index === nodes.length - 1
    const took =
      node.endMs === node.startMs && node.children.length === 0 ? '' : durationText((node.endMs ?? now) - node.startMs)
    const open = node.endMs === null ? ' …' : ''
    const notes = node.notes.map(printableLine).join(', ')
    const name = printableLine(node.name)
    const parts = [
      `${marks[node.kind]} ${node.kind === 'error' ? styles.red(name) : name}`,
      `${took}${open}`.trim(),
      styles.dim(notes),
    ]
    print(`${indent}${isLast ? '└─' : '├─'} ${parts.filter((part) => part !== '').join('  ')}`)
    printNodes(node.children, `${indent}${isLast ? '   ' : '│  '}`, now, styles, print)
  }
}
