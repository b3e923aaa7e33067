// The rules for model names. Names come from requests and end up in provider URLs (Google's
// names are path segments), in logs and in metrics, so they are validated before a run is
// accepted.

export const modelNameCharsMax = 200

/** Letters, digits and the punctuation that real names have: `ft:gpt-4o:org::id`, `llama3.2:3b`, `claude-3@2024`. */
const segment = /^[\p{L}\p{N}_@][\p{L}\p{N}._:@+~-]*$/u

/** Which slashes a provider's names may contain. `paths` allows any: local servers use file paths as names. */
export type SlashRule = 'none' | 'google' | 'paths'

/** `name` is the part after `provider/`. Null if it is valid, else the problem, as the end of a sentence. */
export function modelNameProblem(name: string, slashes: SlashRule): string | null {
  if (name.length > modelNameCharsMax) return `is longer than ${modelNameCharsMax} characters`
  const segments = (slashes === 'paths' && name.startsWith('/') ? name.slice(1) : name).split('/')
  if (!segments.every((one) => segment.test(one))) {
    return 'has characters or path segments that no model name has; use letters, digits and . _ : @ + ~ -'
  }
  if (segments.length === 1 || slashes === 'paths') return null
  if (slashes === 'google' && segments.length === 2 && /^(?:models|tunedModels)$/.test(segments[0] ?? '')) return null
  return 'has a slash, and the models of this provider have none'
}
