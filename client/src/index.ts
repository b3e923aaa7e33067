// The client of a Polylog server: requests, streams that survive their connection, and the fold that a user interface
// draws; and the types of what the server sends. It has no dependency and uses only what browsers, Node, Deno, Bun and
// edge runtimes have in common.

export type {
  AgentRequest,
  CancelledRun,
  ChatRequest,
  Confirmation,
  Conversation,
  FileInfo,
  RunInfo,
  StoredMessage,
  StoredToolResults,
  Timeline,
  ToolResult,
} from './api.ts'
export type { Arm, ArmFrame, ChunksFrame } from './chunks.ts'
export {
  createClient,
  type PageOptions,
  type PolylogClient,
  type RunListOptions,
  type StartOptions,
  type TimelineOptions,
  type UploadOptions,
} from './client.ts'
export { PolylogError } from './error.ts'
export type { Comparison, FeedFrame, FeedRun, Interaction } from './feed.ts'
export type { FcmpData, FcmpEnvelope, FcmpFrame, FcmpType } from './fcmp.ts'
export {
  type Block,
  emptyRun,
  foldRun,
  openRequests,
  type QuestionBlock,
  type ReasoningBlock,
  reduceRun,
  type RunState,
  type TextBlock,
  type ToolBlock,
} from './fold.ts'
export type {
  ErrorValue,
  EventBodies,
  EventOf,
  EventType,
  FileReference,
  JobSpec,
  OneShotSpec,
  Part,
  RunEvent,
  RunSpec,
  RunStatus,
  SkillSpec,
  StoredFile,
  ToolEffect,
  ToolOutcome,
  Usage,
  UsageTotals,
} from './journal.ts'
export type { JsonValue } from './json.ts'
export type {
  NativeFrame,
  NativeFrameData,
  NativeFrameName,
  NativeToolStatus,
  TimelineEntry,
  TruncatedOutput,
} from './native.ts'
export type { ConnectionState, Run, RunFrame, StreamOptions } from './run.ts'
export type { SessionFrame, SessionToolResult } from './session.ts'
export type { ClientOptions, RequestOptions } from './transport.ts'
