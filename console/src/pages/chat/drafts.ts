// What is being written, for each conversation: text, files, and uploads that are under way. A draft is kept while the
// person looks at something else.

import type { FileInfo } from '@polylog/client'
import { session } from '../../api/session.ts'
import { createStore } from '../../app/store.ts'

export type Draft = {
  text: string
  files: readonly FileInfo[]
  uploads: readonly { id: number; name: string }[]
}

const emptyDraft: Draft = { text: '', files: [], uploads: [] }
/** By conversation; null is the one that has not begun. */
const drafts = createStore<ReadonlyMap<string | null, Draft>>(new Map())
let count = 0

// Another user must not see them. A login that has expired is replaced by another one of the same person.
let lastUser = session.get().user
session.subscribe(() => {
  const { token, user } = session.get()
  if (user !== lastUser || token === null) drafts.set(new Map())
  lastUser = user
})

export function useDraft(conversationId: string | null): Draft {
  return drafts.use().get(conversationId) ?? emptyDraft
}

export function changeDraft(conversationId: string | null, change: (draft: Draft) => Draft): void {
  drafts.set((old) => new Map(old).set(conversationId, change(old.get(conversationId) ?? emptyDraft)))
}

export function clearDraft(conversationId: string | null): void {
  drafts.set((old) => new Map([...old].filter(([id]) => id !== conversationId)))
}

/** The new conversation has got its id: what was written meanwhile belongs to it. */
export function nameDraft(conversationId: string): void {
  drafts.set((old) => new Map([...old].map(([id, draft]) => [id ?? conversationId, draft])))
}

export function beginUpload(conversationId: string | null, name: string): number {
  count += 1
  const id = count
  changeDraft(conversationId, (old) => ({ ...old, uploads: [...old.uploads, { id, name }] }))
  return id
}

/** Adds the file to the draft that the upload was begun for; without a file, it only ends the upload. */
export function endUpload(uploadId: number, file?: FileInfo): void {
  drafts.set(
    (old) =>
      new Map(
        [...old].map(([id, draft]) => {
          const uploads = draft.uploads.filter((upload) => upload.id !== uploadId)
          if (uploads.length === draft.uploads.length) return [id, draft]
          const files =
            file === undefined ? draft.files : [...draft.files.filter((known) => known.id !== file.id), file]
          return [id, { ...draft, files, uploads }]
        }),
      ),
  )
}
