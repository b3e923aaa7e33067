// A file that is about to be stored.

/** `mediaType` is what the sender says; the bytes decide. */
export type NewFile = { bytes: Uint8Array; name?: string | undefined; mediaType?: string | undefined }
