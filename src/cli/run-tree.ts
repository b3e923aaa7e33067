// The timeline of a run as a tree: what it did and how long each part took. Pure. Phases (queued, running, waiting for a
// person) hold steps; a step holds its message and its tool calls. Each running phase is one attempt.

import type { TimelineEntry } from '../../client/src/native.ts'

export type TreeNode = {
  kind: 'queued' | 'attempt' | 'waiting' | 'step' | 'message' | 'tool' | 'question' | 'context' | 'diagnostic' | 'error'
  name: string
  /** Facts for people: the model, the finish reason, how a call ended. */
  notes: string[]
  startMs: number
  /** Null while it has not ended. */
  endMs: number | null
  children: TreeNode[]
}

export type RunTree = { status: string; startMs: number; endMs: number | null; phases: TreeNode[] }

/** More nodes than this are only counted: a person cannot read them, and a run decides how many there are. */
const nodesMax = 5_000
const previewChars = 60

const phaseKinds: Record<string, 'queued' | 'attempt' | 'waiting'> = {
  queued: 'queued',
  running: 'attempt',
  waiting_user: 'waiting',
}

export class RunTreeBuilder {
  private readonly tree: RunTree = { status: 'queued', startMs: 0, endMs: null, phases: [] }
  private readonly tools = new Map<string, TreeNode>()
  private readonly messages = new Map<string, { node: TreeNode; chars: number }>()
  private readonly questions = new Map<string, TreeNode>()
  private step: TreeNode | undefined
  private hasFirstToken = true
  private attempts = 0
  private nodes = 0
  private left = 0

  add(entry: TimelineEntry): void {
    const { atMs: at } = entry
    switch (entry.event) {
      case 'agent.start':
        this.tree.startMs = at
        this.startPhase('queued', at)
        return
      case 'run.state':
        return this.startPhase(entry.payload.to, at)
      case 'step.started': {
        const { step, model } = entry.payload
        this.step = this.node(this.phase(), { kind: 'step', name: `step ${step}`, notes: [model], startMs: at })
        this.hasFirstToken = false
        return
      }
      case 'step.done': {
        const { usage, finishReason, costMicroUsd } = entry.payload
        if (this.step === undefined) return
        this.step.endMs = at
        this.step.notes.push(finishReason)
        if (usage !== undefined)
          this.step.notes.push(`${usage.inputTokens ?? '?'} + ${usage.outputTokens ?? '?'} tokens`)
        if (costMicroUsd !== undefined && costMicroUsd > 0)
          this.step.notes.push(`$${(costMicroUsd / 1_000_000).toFixed(6)}`)
        return
      }
      case 'answer.discarded': {
        const { usage } = entry.payload
        this.step?.notes.push(`discarded: ${usage.inputTokens ?? '?'} + ${usage.outputTokens ?? '?'} tokens`)
        return
      }
      case 'agent.delta':
        this.firstToken(at)
        return this.message(entry.payload.id, entry.payload.delta, at)
      case 'agent.reasoning':
        return this.firstToken(at)
      case 'agent.message':
        return this.messageDone(entry.payload.id, entry.payload.content, entry.payload.metadata.state, at)
      case 'tool.state':
        return this.tool(entry.payload, at)
      case 'input.required': {
        const { interactionId, prompt } = entry.payload
        const node = this.node(this.phase(), { kind: 'question', name: preview(prompt), notes: [], startMs: at })
        if (node !== undefined) this.questions.set(interactionId, node)
        return
      }
      case 'input.resolved': {
        const node = this.questions.get(entry.payload.interactionId)
        if (node === undefined) return
        node.endMs = at
        node.notes.push(`${entry.payload.resolution} by ${entry.payload.by}`)
        return
      }
      case 'context.cut':
      case 'context.summarised': {
        const notes = [`${entry.payload.messages} messages`]
        this.node(this.phase(), { kind: 'context', name: entry.event, notes, startMs: at, endMs: at })
        return
      }
      case 'diagnostic': {
        const { code, message } = entry.payload
        this.node(this.phase(), { kind: 'diagnostic', name: code, notes: [message], startMs: at, endMs: at })
        return
      }
      case 'error': {
        const { code, message } = entry.payload
        this.node(this.phase(), { kind: 'error', name: code, notes: [message], startMs: at, endMs: at })
        return
      }
      case 'agent.end':
        this.endPhase(at)
        this.tree.status = entry.payload.status
        this.tree.endMs = at
        return
      default:
        return
    }
  }

  /** The tree so far, and how many nodes were left out. */
  result(): RunTree & { left: number } {
    return { ...this.tree, left: this.left }
  }

  private startPhase(status: string, at: number): void {
    this.endPhase(at)
    const kind = phaseKinds[status]
    if (kind === undefined) return
    if (kind === 'attempt') this.attempts += 1
    const name =
      kind === 'attempt' ? `attempt ${this.attempts}` : kind === 'waiting' ? 'waiting for a person' : 'queued'
    this.tree.status = kind === 'waiting' ? 'awaiting_input' : status
    this.tree.phases.push({ kind, name, notes: [], startMs: at, endMs: null, children: [] })
    this.step = undefined
  }

  private endPhase(at: number): void {
    const phase = this.tree.phases.at(-1)
    if (phase === undefined || phase.endMs !== null) return
    phase.endMs = at
    for (const child of phase.children) if (child.kind === 'step') child.endMs ??= at
  }

  private phase(): TreeNode {
    return this.tree.phases.at(-1) ?? this.firstPhase()
  }

  private firstPhase(): TreeNode {
    this.startPhase('queued', this.tree.startMs)
    return this.tree.phases[0] as TreeNode
  }

  private node(
    parent: TreeNode,
    node: Pick<TreeNode, 'kind' | 'name' | 'notes' | 'startMs'> & { endMs?: number },
  ): TreeNode | undefined {
    if (this.nodes >= nodesMax) {
      this.left += 1
      return undefined
    }
    this.nodes += 1
    const added = { endMs: null, children: [], ...node }
    parent.children.push(added)
    return added
  }

  private firstToken(at: number): void {
    if (this.hasFirstToken || this.step === undefined) return
    this.hasFirstToken = true
    this.step.notes.push(`first token after ${at - this.step.startMs} ms`)
  }

  private message(id: string, piece: string, at: number): void {
    const found = this.messages.get(id)
    if (found === undefined) {
      const parent = this.step ?? this.phase()
      const node = this.node(parent, { kind: 'message', name: preview(piece), notes: [], startMs: at })
      if (node !== undefined) this.messages.set(id, { node, chars: piece.length })
      return
    }
    if (found.node.name.length <= previewChars) found.node.name = preview(found.node.name + piece)
    found.chars += piece.length
    found.node.endMs = at
  }

  private messageDone(id: string, content: string, state: string | undefined, at: number): void {
    if (content === '') return
    if (!this.messages.has(id)) this.message(id, content, at)
    const found = this.messages.get(id)
    if (found === undefined) return
    found.node.endMs = at
    found.node.notes = [`${content.length} characters`, ...(state === undefined ? [] : [state])]
  }

  private tool(data: Extract<TimelineEntry, { event: 'tool.state' }>['payload'], at: number): void {
    const { toolId, name, status } = data
    const known = this.tools.get(toolId)
    const node = known ?? this.node(this.step ?? this.phase(), { kind: 'tool', name, notes: [], startMs: at })
    if (node === undefined) return
    this.tools.set(toolId, node)
    if (status === 'awaiting_input') {
      this.node(node, {
        kind: 'question',
        name: preview(data.message ?? 'waits for a decision'),
        notes: [],
        startMs: at,
      })
      return
    }
    for (const child of node.children) child.endMs ??= at
    if (status === 'queued' || status === 'running') return
    node.endMs = at
    node.notes.push(status, ...(data.error === undefined ? [] : [data.error.message]))
  }
}

function preview(text: string): string {
  const line = text.replace(/\s+/g, ' ').trimStart()
  return line.length <= previewChars ? line : `${line.slice(0, previewChars)}…`
}
