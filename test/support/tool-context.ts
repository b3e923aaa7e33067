// The context of a tool as the run loop passes it, with the parts that a test wants to inspect or
// change.

import type { ToolContext } from '../../src/tools/tool.ts'

export function toolContext(parts: Partial<ToolContext> = {}): ToolContext {
  return {
    owner: 'ana',
    runId: 'run_1',
    callId: 'call_1',
    conversationId: null,
    idempotencyKey: 'key_1',
    signal: new AbortController().signal,
    now: () => Date.UTC(2026, 10, 3, 4, 5, 6),
    progress: () => {},
    ...parts,
  }
}
