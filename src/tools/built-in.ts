// The tools that come with the server, in the order in which models see them.

import type { Clock } from '../kit/clock.ts'
import type { ContactStore } from '../stores/contact-store.ts'
import type { NoteStore } from '../stores/note-store.ts'
import { createContactTools } from './contacts.ts'
import { createCurrentTimeTool } from './current-time.ts'
import { createJobTools, type JobFiles } from './job-tools.ts'
import { createNoteTools } from './notes.ts'
import { createReadToolOutput } from './read-tool-output.ts'
import { createFeishuTool, type FeishuOptions } from './send-feishu-message.ts'
import type { ToolEntry } from './tool-registry.ts'
import type { ToolOutputs } from './tool.ts'

export type BuiltInOptions = {
  clock: Clock
  notes: NoteStore
  contacts: ContactStore
  jobFiles: JobFiles
  outputs: ToolOutputs
  feishu: Omit<FeishuOptions, 'clock'>
}

export function createBuiltInTools(options: BuiltInOptions): ToolEntry[] {
  const { clock, notes, contacts, jobFiles, outputs, feishu } = options
  const tools = [
    createCurrentTimeTool(),
    ...createNoteTools(notes),
    ...createContactTools(contacts),
    ...createJobTools(jobFiles),
    createReadToolOutput(outputs),
  ]
  return [...tools.map((tool): ToolEntry => ({ source: 'built-in', tool })), createFeishuTool({ ...feishu, clock })]
}
