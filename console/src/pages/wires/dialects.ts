// The dialects that a run can be read in: what each is for, and the document that describes it.

export type DialectName = (typeof dialects)[number]['name']

/** `name` is the value of `format`; `doc` is a file of the repository. */
export const dialects = [
  { name: 'sse', title: 'Native', doc: 'src/dialects/agent/README.md' },
  { name: 'ui-message', title: 'AI SDK 6+', doc: 'docs/clients/ai-sdk.md' },
  { name: 'openai-responses', title: 'OpenAI Responses', doc: 'docs/clients/openai.md' },
  { name: 'ag-ui', title: 'AG-UI', doc: 'docs/clients/ag-ui.md' },
  { name: 'openai-chat', title: 'OpenAI Chat', doc: 'docs/clients/openai.md' },
  { name: 'langgraph', title: 'LangGraph', doc: 'docs/clients/langgraph.md' },
  { name: 'a2a', title: 'A2A 1.0', doc: 'docs/clients/a2a.md' },
  { name: 'fcmp', title: 'FCMP', doc: 'src/dialects/fcmp/README.md' },
  { name: 'chunks', title: 'Chunks', doc: 'src/dialects/chunks/README.md' },
  { name: 'chunks-ndjson', title: 'Chunks, NDJSON', doc: 'src/dialects/chunks/README.md' },
  { name: 'session', title: 'Session', doc: 'src/dialects/session/README.md' },
  { name: 'ui-message-v5', title: 'AI SDK 5', doc: 'docs/clients/ai-sdk.md' },
  { name: 'vercel-ai', title: 'AI SDK 4', doc: 'src/dialects/vercel-data/README.md' },
  { name: 'a2a-v0.3', title: 'A2A 0.3', doc: 'docs/clients/a2a.md' },
] as const

/** More do not fit into one stream of the server. */
export const columnsMax = 8

export const firstColumns: readonly DialectName[] = ['sse', 'ui-message', 'openai-chat']

export function dialectsFrom(text: string): DialectName[] {
  const names = text.split(',')
  return dialects
    .map(({ name }) => name)
    .filter((name) => names.includes(name))
    .slice(0, columnsMax)
}
