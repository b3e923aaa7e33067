// The second part of an address, which names what a page shows: `/runs/01J…`.

/** Null if the address has none. Somebody may have typed it, so it may not be encoded well. */
export function pathPart(location: string): string | null {
  const [, , named = ''] = location.split('/')
  if (named === '') return null
  try {
    return decodeURIComponent(named)
  } catch {
    return named
  }
}
