// Types of what a Polylog server sends: the events of its journal and the frames of its wire formats. This module has
// no code and no dependency.

export type { Arm, ArmFrame, ChunksFrame } from './chunks.ts'
export type { FcmpData, FcmpEnvelope, FcmpFrame, FcmpType } from './fcmp.ts'
export type {
  ErrorValue,
  EventBodies,
  EventOf,
  EventType,
  JobSpec,
  OneShotSpec,
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
export type { SessionFrame, SessionToolResult } from './session.ts'
