// Stored results of agents, and what changed between two of them.

import type { JsonValue } from '@polylog/client'

export type SnapshotInfo = {
  snapshotId: string
  runId: string
  agentId: string
  operation: string | null
  scopeType: 'conversation' | 'contact' | 'user' | 'global'
  scopeId: string | null
  model: string
  generatedAtMs: number
  expiresAtMs: number | null
}

export type Snapshot = SnapshotInfo & { data: Record<string, JsonValue> }

export type SnapshotChange = {
  path: string
  change: 'added' | 'removed' | 'changed'
  before?: JsonValue
  after?: JsonValue
}

export type SnapshotDiff = {
  before: SnapshotInfo
  after: SnapshotInfo
  changes: SnapshotChange[]
  truncated: boolean
}

export type AgentResult = {
  runId: string
  agentId: string
  operation: string | null
  cached: boolean
  snapshotId: string | null
  generatedAtMs: number
  data: Record<string, JsonValue>
}
