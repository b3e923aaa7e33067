// The JSON of the contact routes, as far as the page needs it.

export type Contact = {
  id: string
  name: string
  alias: string | null
  email: string | null
  phone: string | null
  company: string | null
  position: string | null
  note: string | null
  profile: Record<string, unknown>
  tags: string[]
  createdAtMs: number
  updatedAtMs: number
}

export type ContactPage = { items: Contact[]; total: number }

export type Fact = { id: string; content: string; createdAtMs: number; sourceConversationId: string | null }

export type Todo = {
  id: string
  content: string
  status: 'pending' | 'completed' | 'canceled'
  dueAtMs: number | null
  createdAtMs: number
}

export type ContactEvent = { id: string; title: string; description: string | null; eventDateMs: number | null }

export type Brief = {
  content: string
  citations: unknown[]
  generatedAtMs: number
  runId: string
  cached: boolean
  computed: boolean
}

export type ImportReport = {
  created: number
  updated: number
  unchanged: number
  skipped: { index: number; line: number; name?: string; reason: string }[]
  skippedTotal: number
}

export function contactPath(id: string, rest = ''): string {
  return `/v1/contacts/${encodeURIComponent(id)}${rest}`
}

export function contactAddress({ id }: Pick<Contact, 'id'>): string {
  return `/contacts/${encodeURIComponent(id)}`
}
