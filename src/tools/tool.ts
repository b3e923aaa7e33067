// The interface of a tool: its effect class, its argument schema, whether a person must
// confirm a call, and its limits. Each built-in tool has its own file; MCP servers provide
// theirs at run time.

import type { JsonValue, ToolEffect } from '../journal/event.ts'

export type ToolContext = {
  /** The user on whose behalf the tool runs. */
  owner: string
  runId: string
  callId: string
  conversationId: string | null
  /** The same for all retries of one call. Pass it on if the external service supports idempotency keys. */
  idempotencyKey: string
  /** The trace context of this call. Pass it on as the header `traceparent` of requests. */
  traceparent?: string
  signal: AbortSignal
  now(): number
  /** Reports progress to people, one line at a time. */
  progress(message: string): void
  /** Set if the run may work on files; `dir` is relative to the configured workspace. */
  workspace?: { dir: string }
}

/** A file of a result. The server finds the type in the bytes; `mediaType` is what the tool says. */
export type ToolFile = { bytes: Uint8Array; mediaType?: string | undefined; name?: string | undefined }

/** `ok: false` is an expected failure that the model should read. Throw for anything unexpected. */
export type ToolResult = {
  ok: boolean
  output: JsonValue
  /** One line for people. */
  summary: string
  modified?: boolean
  paths?: string[]
  /** Images and other files for the model and for people. */
  files?: ToolFile[]
}

export const questionStyles = ['choose_one', 'confirm', 'fill_fields', 'open_text', 'risk_ack'] as const

/** The question that a call puts to a person; the person's answer is the result of the call. */
export type ToolQuestion = {
  prompt: string
  style: (typeof questionStyles)[number]
  options: { label: string; value: JsonValue }[]
  fields: string[]
}

/**
 * The runs that a tool is offered to. `interactive_jobs` are jobs that may ask a person. `chats` leaves out jobs and one-shot
 * agents; such a tool, like one for `all`, is offered only if the agent and the request allow it, too. `large_outputs` are runs
 * whose prompt has a tool output that was cut.
 */
export type Audience =
  | 'all'
  | 'chats'
  | 'jobs'
  | 'interactive_jobs'
  | 'jobs_with_files'
  | 'jobs_with_skill_files'
  | 'large_outputs'

export type Confirm = 'never' | 'always' | ((input: JsonValue) => 'never' | 'always')

export interface Tool {
  readonly name: string
  readonly description: string
  readonly effect: ToolEffect
  /** `built-in`, `config` (a tool in code), or `mcp:` and the name of the server; set by the registry. */
  readonly source?: string
  readonly confirm: Confirm
  /** A sentence that tells an operator how to auto-approve calls of this tool. Absent if that is not possible. */
  readonly howToAllow?: string
  /** Absent means all. */
  readonly audience?: Audience
  /** If present, the call asks a person this question and the answer is its result; `run` is not called. */
  ask?(input: JsonValue): ToolQuestion
  /** JSON Schema of the arguments (an object). */
  readonly inputSchema: Record<string, unknown>
  /** The provider is told to follow the schema exactly, if it has such a mode. */
  readonly strict?: boolean
  /** Checks arguments that match the schema further: null, or a sentence that says what is wrong. */
  check?(input: JsonValue): string | null
  readonly timeoutMs: number
  /** Longer outputs are cut, and stored whole beside the journal. */
  readonly outputCharsMax: number
  /** Offered only to runs that have a working directory. */
  readonly needsWorkspace?: true
  /** Tells people in one sentence what a call with these arguments will do. */
  describe(input: JsonValue): string
  run(input: JsonValue, context: ToolContext): Promise<ToolResult>
}

/**
 * Directories below the workspace: for sessions whose client named no directory, and for single users. Clients cannot
 * name them.
 */
export const sessionDirectories = 'sessions'
export const ownerDirectories = 'owners'

/** The directories that runs may work in, all below the configured workspace. */
export interface Workspaces {
  /**
   * Returns the value for a run's `workspace.dir`. `asked` may be absolute or relative to the workspace. Creates the
   * directory if it is missing. Throws `workspace_outside` if it is not inside, or if its path contains a link.
   */
  open(asked: string): Promise<string>
  /** The value that `open` would return, equal for all spellings of one directory. Creates nothing and throws the same. */
  nameOf(asked: string): Promise<string>
  /** Removes the directory of one session with everything in it. Does nothing if it does not exist. */
  remove(dir: string): Promise<void>
  /** The names of the directories directly below this one; empty if it does not exist. */
  list(dir: string): Promise<string[]>
}

export type ToolListing = {
  name: string
  description: string
  effect: ToolEffect
  available: boolean
  /** Why the tool is not offered to models; null if it is. */
  reason: string | null
  source: string
  /** Present if the tool is not offered to all runs. */
  audience?: Audience
}

export interface ToolRegistry {
  /** The tools that are offered to models, in a stable order. */
  available(): Tool[]
  get(name: string): Tool | undefined
  /**
   * Finds the tool of a stored call: a tool of the same source that has, or could have had, this name. A tool of another
   * server with the same name does not match. Without a source this is the same as `get`.
   */
  find(name: string, source: string | undefined): Tool | undefined
  /**
   * Resolves when the tools of a source are known (if absent, when no source is being connected for the first time), or
   * after a time limit. Recovery waits for this, so that it does not treat the tools of a slow server as missing.
   */
  awaitSource(source: string | undefined, signal: AbortSignal): Promise<void>
  /** All configured tools, also those that are not available. */
  list(): ToolListing[]
  /** Null if the arguments match the tool's schema, else a sentence that says what is wrong. */
  check(tool: Tool, input: JsonValue): string | null
  close(): Promise<void>
}

/** Finds outputs by the id in the note at their end. Undefined if there is none that this run may read. */
export interface ToolOutputs {
  read(outputId: string, context: Pick<ToolContext, 'owner' | 'runId' | 'conversationId'>): Promise<string | undefined>
}
