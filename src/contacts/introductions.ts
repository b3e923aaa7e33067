// Pairs of contacts that could be introduced to each other, because they share a company or
// tags. Linear: contacts are grouped by what they share, only small groups are paired, and
// the number of pairs is bounded.

export type IntroducedContact = { id: string; company: string | null; tags: readonly string[] }

export type Introduction = {
  /** The ids of the two contacts, in the order of their ids. */
  contacts: [string, string]
  /** The company that both have, in the spelling that was read first; null if they differ. */
  company: string | null
  /** The tags that both have, in the spelling that was read first. */
  tags: string[]
  /** 0..0.9: 0.3, plus 0.3 for the company, plus 0.15 for each tag. */
  confidence: number
}

/** A company or tag of more contacts says too little about two of them. */
const groupMax = 12
/** Bounds the work. Small groups are paired first, because what few contacts share says most. */
const pairingsMax = 10_000

type Group = { kind: 'company' | 'tag'; key: string; label: string; members: string[] }

/** The best first, at most `limit`. */
export function introductions(contacts: Iterable<IntroducedContact>, limit: number): Introduction[] {
  const groups = [...groupsOf(contacts)]
    .filter(({ members }) => members.length >= 2 && members.length <= groupMax)
    .sort((left, right) => left.members.length - right.members.length || compareText(left.key, right.key))
  const pairs = new Map<string, Introduction>()
  let pairings = 0
  for (const { first, second, group } of pairingsOf(groups)) {
    if (pairings >= pairingsMax) break
    pairings += 1
    addPair(pairs, group, first, second)
  }
  for (const pair of pairs.values()) pair.confidence = confidenceOf(pair)
  return [...pairs.values()]
    .sort(
      (left, right) =>
        right.confidence - left.confidence ||
        compareText(left.contacts[0], right.contacts[0]) ||
        compareText(left.contacts[1], right.contacts[1]),
    )
    .slice(0, limit)
}

function* pairingsOf(groups: readonly Group[]): Generator<{ first: string; second: string; group: Group }> {
  for (const group of groups) {
    const members = group.members.toSorted(compareText)
    for (const [at, first] of members.entries()) {
      for (const second of members.slice(at + 1)) yield { first, second, group }
    }
  }
}

function groupsOf(contacts: Iterable<IntroducedContact>): Iterable<Group> {
  const groups = new Map<string, Group>()
  // Most texts occur several times, and normalizing them is the largest part of the work.
  const keys = new Map<string, string>()
  const join = (kind: Group['kind'], text: string, id: string) => {
    const label = text.trim()
    if (label === '') return
    const shared = keys.get(label) ?? sharedKey(label)
    keys.set(label, shared)
    const key = `${kind}:${shared}`
    let group = groups.get(key)
    if (group === undefined) {
      group = { kind, key, label, members: [] }
      groups.set(key, group)
    }
    // A contact with `Tea` and `tea` is one member. Beyond the bound the group is dropped anyway.
    if (group.members.at(-1) !== id && group.members.length <= groupMax) group.members.push(id)
  }
  for (const { id, company, tags } of contacts) {
    if (company !== null) join('company', company, id)
    for (const tag of tags) join('tag', tag, id)
  }
  return groups.values()
}

/** Width, case and spaces do not matter. */
function sharedKey(text: string): string {
  return text.normalize('NFKC').toLowerCase().replaceAll(/\s+/g, ' ').trim()
}

function addPair(pairs: Map<string, Introduction>, group: Group, first: string, second: string): void {
  const key = `${first}\u0000${second}`
  let pair = pairs.get(key)
  if (pair === undefined) {
    pair = { contacts: [first, second], company: null, tags: [], confidence: 0 }
    pairs.set(key, pair)
  }
  if (group.kind === 'company') pair.company = group.label
  else pair.tags.push(group.label)
}

/** In hundredths, so that equal sums are equal numbers. */
function confidenceOf({ company, tags }: Introduction): number {
  return Math.min(90, 30 + (company === null ? 0 : 30) + 15 * tags.length) / 100
}

function compareText(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0
}
