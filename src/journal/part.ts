// The parts of a message: text and files. The bytes of a file are never here; they are in the
// file store, under `fileId`. Wires that know only text show the projection `textOfParts`.

import { z } from 'zod'

const fileFields = {
  fileId: z.string().min(1),
  mediaType: z.string().min(1),
  name: z.string().min(1).optional(),
  /** In bytes. */
  size: z.number().int().nonnegative(),
}

/** A reference to a stored file. */
export const fileReference = z.object(fileFields)
const filePart = z.object({ type: z.literal('file'), ...fileFields })

export const part = z.discriminatedUnion('type', [z.object({ type: z.literal('text'), text: z.string() }), filePart])

export type Part = z.infer<typeof part>
export type FileReference = z.infer<typeof fileReference>
export type FilePart = z.infer<typeof filePart>
