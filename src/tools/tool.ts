// What a tool promises: its effect class, its schema, whether a person must agree,
// and its bounds. One file a tool; MCP servers bring theirs at start-up.

import type { JsonValue, ToolEffect } from '../journal/event.ts'

export type ToolContext = {
  /** The user on whose behalf the tool runs. */
  owner: string
  runId: string
  callId: string
  conversationId: string | null
  /** The same over retries of one call: send it along where the other side knows such keys. */
  idempotencyKey: string
  signal: AbortSignal
  now(): number
  /** A line for people while the tool works. */
  progress(message: string): void
  /** Set where the run may work on files: its directory, named from the configured workspace. */
  workspace?: { dir: string }
}

/** `ok: false` is an answer that says no (a business failure). An exception is something else: throw it. */
export type ToolResult = {
  ok: boolean
  output: JsonValue
  /** One line for people. */
  summary: string
  modified?: boolean
  paths?: string[]
}

export const questionStyles = ['choose_one', 'confirm', 'fill_fields', 'open_text', 'risk_ack'] as const

/** What a person is asked by a call whose result is their answer. */
export type Question = {
  prompt: string
  style: (typeof questionStyles)[number]
  options: { label: string; value: JsonValue }[]
  fields: string[]
}

/** Which runs a tool is offered to: all; jobs; jobs that may ask a person; jobs with uploaded files; jobs whose skill has files. */
export type Audience = 'all' | 'jobs' | 'interactive_jobs' | 'jobs_with_files' | 'jobs_with_skill_files'

export type Confirm = 'never' | 'always' | ((input: JsonValue) => 'never' | 'always')

export interface Tool {
  readonly name: string
  readonly description: string
  readonly effect: ToolEffect
  /** `built-in`, or `mcp:` and the name of the server; set by the registry. */
  readonly source?: string
  readonly confirm: Confirm
  /** What an operator has to set so that calls need no consent; a sentence. Absent: it cannot be had without. */
  readonly howToAllow?: string
  /** Absent means all. */
  readonly audience?: Audience
  /** Where it is there, the call asks a person this, and the answer is its result; `run` is not called. */
  ask?(input: JsonValue): Question
  /** JSON Schema of the arguments (an object). */
  readonly inputSchema: Record<string, unknown>
  readonly timeoutMs: number
  /** Longer outputs are cut and kept whole beside the journal. */
  readonly outputCharsMax: number
  /** Offered only to runs that have a working directory. */
  readonly needsWorkspace?: true
  /** A sentence for people: what a call with these arguments is about to do. */
  describe(input: JsonValue): string
  run(input: JsonValue, context: ToolContext): Promise<ToolResult>
}

/** Below the workspace: directories of sessions that named none, and those of single users. Clients cannot name them. */
export const sessionDirectories = 'sessions'
export const ownerDirectories = 'owners'

/** The directories that runs may work in, all below the configured workspace. */
export interface Workspaces {
  /**
   * The name to put into a run's `workspace.dir`. `asked` may be absolute or relative to the workspace. Makes the
   * directory where it is missing. Throws `workspace_outside` where it is not inside, or a link leads to it.
   */
  open(asked: string): Promise<string>
  /** Removes a directory that belongs to one session, with everything in it. One that is not there is fine. */
  remove(dir: string): Promise<void>
  /** The names of the directories below this one; none if it is not there. */
  list(dir: string): Promise<string[]>
}

export type ToolListing = {
  name: string
  description: string
  effect: ToolEffect
  available: boolean
  /** Why it is not offered to the model. */
  reason: string | null
  source: string
  /** Where it is not offered to all runs. */
  audience?: Audience
}

export interface ToolRegistry {
  /** Offered to models, in a stable order. */
  available(): Tool[]
  get(name: string): Tool | undefined
  /**
   * The tool that a stored call means: of the source that it was called at, under any name that it has or had there.
   * Another server's tool of the same name is another tool. Without a source, as `get`.
   */
  find(name: string, source: string | undefined): Tool | undefined
  /**
   * Resolves when the tools of a source (or, without one, of all sources) are known, at the latest after a bounded time: a
   * server that is slow to come up must not make a restart believe that its tools are gone.
   */
  awaitSource(source: string | undefined, signal: AbortSignal): Promise<void>
  /** All that were configured, also those whose needs are missing. */
  list(): ToolListing[]
  /** Null when the arguments fit the tool's schema, else a sentence that names what is wrong. */
  check(tool: Tool, input: JsonValue): string | null
  close(): Promise<void>
}
