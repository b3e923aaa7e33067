// Estimates what it costs to compile a regular expression, without compiling it. A short
// pattern can be expensive: `a{1000}` repeated 200 times compiles to 200,000 instructions, and
// to ignore case the engine visits every character of a range. So the price is known before.

/** One unit is about one instruction of the compiled program, which takes about a microsecond. */
const unicodeClassCost = 25
const foldedUnicodeClassCost = 150
/** A range that ends outside of ASCII may have 65,000 characters or more. */
const foldedRangeCost = 2_500
const groupCost = 2

/** Flags, quoted text, an escape, a class in brackets, a counted repeat, or one character; in the syntax of RE2. */
const token =
  /\(\?[a-z-]*\)|\\Q.*?(?:\\E|$)|\\[pP](?:\{[^}]*\}|.)|\\x\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]?|\{\d+(?:,\d*)?\}|./gis

/** The instructions of one group so far, and of its last element, which a repeat applies to. */
type Group = { size: number; last: number }

/** `source` is in the syntax of RE2, not of JavaScript. */
export function patternCost(source: string, options: { ignoreCase?: boolean } = {}): number {
  const folded = options.ignoreCase === true || /\(\?[a-z]*i/i.test(source)
  const unicodeClass = folded ? foldedUnicodeClassCost : unicodeClassCost
  const open: Group[] = []
  let group: Group = { size: 0, last: 0 }
  // The engine parses a class once, even if it is repeated.
  let classes = 0

  const add = (size: number) => {
    group.size += size
    group.last = size
  }
  for (const [text] of source.matchAll(token)) {
    switch (text[0]) {
      case '(':
        // Flags such as `(?i)` are no element: a repeat after them applies to the element before them.
        if (text.length > 1) break
        open.push(group)
        group = { size: 0, last: 0 }
        break
      case ')': {
        const { size } = group
        group = open.pop() ?? group
        add(size + groupCost)
        break
      }
      case '[':
        classes += text.length + (text.match(/\\p/gi)?.length ?? 0) * unicodeClass
        if (folded) classes += (text.match(/-(?:\\x|[^\0-\x7f])/g)?.length ?? 0) * foldedRangeCost
        add(1)
        break
      case '{':
        if (text.length > 1) {
          const repeated = (group.last + 1) * timesOf(text)
          group.size += repeated
          group.last += repeated
        } else add(1)
        break
      case '\\':
        if (/^\\p/i.test(text)) classes += unicodeClass
        add(text.startsWith('\\Q') ? text.length : 1)
        break
      case '*':
      case '+':
      case '?':
        group.size += 1
        group.last += 1
        break
      case '|':
        group.size += groupCost
        break
      default:
        add(1)
    }
  }
  // A group without its end is refused by the engine, but it still reads it.
  return open.reduce((sum, { size }) => sum + size, group.size) + classes
}

/** Of `{2}`, `{2,}` and `{2,5}`: the larger number. */
function timesOf(repeat: string): number {
  return Math.max(...(repeat.match(/\d+/g) ?? []).map(Number))
}
