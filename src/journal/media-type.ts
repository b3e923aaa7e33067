// What a file is to a model, by its media type.

/** `text`: its characters are part of the prompt. `other`: no model is given it. */
export type FileKind = 'image' | 'pdf' | 'audio' | 'video' | 'text' | 'other'

/** The image formats that model providers accept. */
const rasterImages = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])

/** Types outside of `text/` whose files are text. SVG is one of them: no provider accepts it as an image. */
const textTypes =
  /^(?:application\/(?:json|x-ndjson|xml|yaml|x-yaml|toml|javascript|typescript|sql|x-sh|x-httpd-php|graphql|rtf)|image\/svg\+xml|application\/[\w.-]+\+(?:json|xml|yaml))$/

export function fileKind(mediaType: string): FileKind {
  if (rasterImages.has(mediaType)) return 'image'
  if (mediaType === 'application/pdf') return 'pdf'
  if (mediaType.startsWith('text/') || textTypes.test(mediaType)) return 'text'
  if (mediaType.startsWith('audio/')) return 'audio'
  if (mediaType.startsWith('video/')) return 'video'
  return 'other'
}

/** Lower case and without parameters; undefined if it is not a media type. */
export function plainMediaType(value: string | undefined): string | undefined {
  const type = value?.split(';', 1)[0]?.trim().toLowerCase()
  return type !== undefined && /^[a-z]+\/[\w.+-]{1,100}$/.test(type) ? type : undefined
}
