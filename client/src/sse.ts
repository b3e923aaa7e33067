// Reads server-sent events from chunks of text that may be cut anywhere. A message is given out only when its blank line
// has come, so a connection that breaks in the middle of a message never shows half of it.

export type SseMessage = { id: string | undefined; event: string; data: string; retryMs: number | undefined }

/** The server limits the size of an event; a longer message is not from it. */
const messageCharsMax = 64 * 1024 * 1024

/** Returns a function that takes the next chunk and returns the messages that it completes. */
export function sseReader(): (chunk: string) => SseMessage[] {
  let rest = ''
  let chars = 0
  let fields: Record<string, string> = {}
  return (chunk) => {
    const messages: SseMessage[] = []
    // A chunk that ends in CR may be continued by LF, which belongs to the same line end.
    const lines = (rest + chunk).split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop() ?? ''
    if (chars + rest.length > messageCharsMax) throw new RangeError('A message of the stream is too long.')
    for (const line of lines) {
      chars += line.length
      if (line !== '') {
        const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? []
        fields[name] = name === 'data' && fields['data'] !== undefined ? `${fields['data']}\n${value}` : value
        continue
      }
      const { id, event = 'message', data, retry } = fields
      const retryMs = retry !== undefined && /^\d+$/.test(retry) ? Number(retry) : undefined
      if (data !== undefined || retryMs !== undefined) messages.push({ id, event, data: data ?? '', retryMs })
      fields = {}
      chars = 0
    }
    return messages
  }
}
