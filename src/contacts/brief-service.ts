// Briefs of contacts. A brief is the newest stored result of the agent that writes it.

import type { JsonValue } from '../journal/event.ts'
import type { Caller } from '../kit/caller.ts'
import type { SnapshotStore } from '../stores/snapshot-store.ts'
import { type AgentOptions, agentRequest, type AgentRunner, archiveAgentId } from './agent-runner.ts'
import type { ContactService } from './contact-service.ts'
import { isRecord } from '../kit/is-record.ts'

export type ContactBrief = {
  contactId: string
  /** Markdown. */
  content: string
  citations: JsonValue[]
  generatedAt: number
  /** Null if the client asked for a brief that is not stored. */
  snapshotId: string | null
  runId: string
  /** True if an earlier request produced the brief. */
  cached: boolean
  /** True if code computed the brief and no language model wrote it. */
  computed: boolean
}

export type BriefDependencies = {
  store: Pick<SnapshotStore, 'listSnapshots'>
  contacts: Pick<ContactService, 'get'>
  agents: AgentRunner
}

const operation = 'brief_generate'

export class BriefService {
  private readonly dependencies: BriefDependencies

  constructor(dependencies: BriefDependencies) {
    this.dependencies = dependencies
  }

  /** The brief that was generated last; null if there is none. Throws `contact_not_found`. */
  async newest(owner: string, contactId: string): Promise<ContactBrief | null> {
    const { store, contacts } = this.dependencies
    await contacts.get(owner, contactId)
    const {
      rows: [row],
    } = await store.listSnapshots({
      owner,
      agentId: archiveAgentId,
      operation,
      scopeType: 'contact',
      scopeIds: [contactId],
      limit: 1,
    })
    if (row === undefined) return null
    const facts = { runId: row.runId, snapshotId: row.id, generatedAt: row.createdAt, cached: true }
    return briefOf(contactId, row.output, facts)
  }

  /** Runs the agent, or takes its stored result. Throws `contact_not_found`. `signal` as in `AgentRunner`. */
  async generate(
    caller: Caller,
    contactId: string,
    options: AgentOptions,
    signal?: AbortSignal,
  ): Promise<ContactBrief> {
    const { agents } = this.dependencies
    const result = await agents.run(caller, agentRequest(operation, caller, { contactId }, options), null, signal)
    return briefOf(contactId, result.data, result)
  }
}

function briefOf(
  contactId: string,
  output: JsonValue,
  { runId, snapshotId, generatedAt, cached }: Pick<ContactBrief, 'runId' | 'snapshotId' | 'generatedAt' | 'cached'>,
): ContactBrief {
  const isObject = isRecord(output)
  const { content, citations, computed } = isObject ? output : {}
  return {
    contactId,
    content: typeof content === 'string' ? content : '',
    citations: Array.isArray(citations) ? citations : [],
    generatedAt,
    snapshotId,
    runId,
    cached,
    computed: computed === true,
  }
}
