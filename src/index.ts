// What the package `polylog` exports: for polylog.config.ts, and for programs that embed the
// server. Others rely on these names; everything else may change.

export { createPolylog, type PolylogOptions } from './app/create-polylog.ts'
export { defineConfig, type FinishedRun, type PolylogConfig, type RunHooks } from './app/define-config.ts'
export type { PolylogServer } from './app/polylog-server.ts'
export {
  type AttachedFile,
  defineTool,
  type ToolCall,
  type ToolDefinition,
  ToolError,
  type ToolInput,
  type ToolOptions,
} from './tools/define-tool.ts'
// The same zod that reads the schemas of tools, so that a configuration needs no other package.
export { z } from 'zod'
