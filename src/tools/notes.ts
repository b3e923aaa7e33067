// `remember_note` and `search_notes`: a user's own notes, over all conversations.
//
// A note's id is derived from the idempotency key of the call, and the store keeps the first
// note with an id, so a call that is retried after a crash adds no second note. The owner
// always comes from the context, never from the model.

import { createHash } from 'node:crypto'
import { isoTime } from '../kit/clock.ts'
import type { NoteStore } from '../stores/note-store.ts'
import { quoted, textField } from './excerpt.ts'
import type { Tool } from './tool.ts'

const limitDefault = 10
const limitMax = 50
const noteCharsMax = 10_000

export function createNoteTools(notes: NoteStore): Tool[] {
  return [rememberNote(notes), searchNotes(notes)]
}

function rememberNote(notes: NoteStore): Tool {
  return {
    name: 'remember_note',
    description: 'Saves a short note for the user, to be found again in later conversations.',
    effect: 'idempotent',
    confirm: 'always',
    inputSchema: {
      type: 'object',
      properties: { text: { type: 'string', minLength: 1, maxLength: noteCharsMax, description: 'What to remember.' } },
      required: ['text'],
      additionalProperties: false,
    },
    timeoutMs: 10_000,
    outputCharsMax: 1_000,
    describe: (input) => `Save a note: ${quoted(textField(input, 'text'))}`,
    async run(input, context) {
      const id = noteId(context.owner, context.idempotencyKey)
      await notes.addNote({ id, owner: context.owner, text: textField(input, 'text'), createdAt: context.now() })
      return { ok: true, output: { id }, summary: 'The note was saved.' }
    },
  }
}

function searchNotes(notes: NoteStore): Tool {
  return {
    name: 'search_notes',
    description: 'Searches the notes that the user has saved, newest first.',
    effect: 'read',
    confirm: 'never',
    inputSchema: {
      type: 'object',
      properties: {
        query: { type: 'string', minLength: 1, maxLength: 500, description: 'Words that the note contains.' },
        limit: {
          type: 'integer',
          minimum: 1,
          maximum: limitMax,
          description: `How many notes at most; ${limitDefault} when absent.`,
        },
      },
      required: ['query'],
      additionalProperties: false,
    },
    timeoutMs: 10_000,
    // About fifty notes of normal length; a longer output is cut and stored whole beside the journal.
    outputCharsMax: 60_000,
    describe: (input) => `Search the notes for ${quoted(textField(input, 'query'))}`,
    async run(input, context) {
      const query = textField(input, 'query')
      const found = await notes.searchNotes(context.owner, query, limitOf(input))
      return {
        ok: true,
        output: { notes: found.map(({ id, text, createdAt }) => ({ id, text, createdAt: isoTime(createdAt) })) },
        summary: `${found.length === 1 ? '1 note' : `${found.length} notes`} found for ${quoted(query, 60)}.`,
      }
    },
  }
}

function limitOf(input: unknown): number {
  const limit = (input as { limit?: unknown } | null)?.limit
  return typeof limit === 'number' ? limit : limitDefault
}

/** The owner is part of the id, so that two users with the same key never share a note. */
function noteId(owner: string, idempotencyKey: string): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([owner, idempotencyKey]))
    .digest('hex')
  return `note_${digest.slice(0, 32)}`
}
