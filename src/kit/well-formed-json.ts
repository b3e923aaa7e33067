// JSON that a strict parser accepts. A text may hold one half of a surrogate pair: a client or
// a tool cut it inside of a character. JSON.stringify writes the half as an escape, and many
// parsers (those of model providers, for example) refuse the whole document because of it.

/** `json` was written by JSON.stringify. Halves of surrogate pairs become U+FFFD. */
export function wellFormedJson(json: string): string {
  // JSON.stringify escapes only halves in this way, and whole pairs not at all.
  if (!json.includes('\\ud')) return json
  return json.replaceAll(/\\(ud[89a-f][0-9a-f]{2}|.)/g, (escape, name: string) => (name.length > 1 ? '\ufffd' : escape))
}
