// For text that a model or a tool wrote and that goes out as it is: a browser that opens
// it in spite of its type runs nothing in it and loads nothing for it.

/** The value of Content-Security-Policy. */
export const neverAPage = "default-src 'none'; sandbox"
