// The parts of an address after the name of the page: `/runs/01J…`, `/jobs/new/text-digest`.

/** The second part, which names what a page shows; null if there is none. */
export function pathPart(location: string): string | null {
  return pathParts(location)[0] ?? null
}

/** Somebody may have typed the address, so it may not be encoded well. */
export function pathParts(location: string): string[] {
  return location
    .split('/')
    .slice(2)
    .filter((part) => part !== '')
    .map((part) => {
      try {
        return decodeURIComponent(part)
      } catch {
        return part
      }
    })
}
