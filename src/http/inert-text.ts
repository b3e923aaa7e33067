// The Content-Security-Policy for text that a model or a tool wrote and that is sent
// unchanged. If a browser renders such a reply in spite of its content type, this policy
// keeps it from running scripts or loading resources.

export const inertTextPolicy = "default-src 'none'; sandbox"
