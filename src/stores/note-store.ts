// Notes that a user keeps, and the search in them.

export type NoteRow = { id: string; owner: string; text: string; createdAt: number }

export interface NoteStore {
  /** Adding the same id again changes nothing. */
  addNote(note: NoteRow): Promise<void>
  /** Notes with most of the query's words first, then the newest ones. An empty query returns the newest notes. */
  searchNotes(owner: string, query: string, limit: number): Promise<NoteRow[]>
}
