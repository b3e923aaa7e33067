// The parts of an address after the name of the page: `/runs/01J…`, `/jobs/new/text-digest`.

/** The second part, which names what a page shows; null if there is none. */
export function pathPart(location: string): string | null {
  return pathParts(location)[0] ?? null
}

/** Returns the part as it is if it is not well encoded: a user may have typed the address. */
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
