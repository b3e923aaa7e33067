// Finds the position of a JSON syntax error and what was expected there. It runs only after
// JSON.parse has rejected the text, because the messages of JSON.parse differ between Node
// versions.

export type JsonError = { line: number; column: number; offset: number; expected: string; found: string }

/** Null if the text is JSON. */
export function findJsonError(text: string): JsonError | null {
  const failure = new Scanner(text).scan()
  if (failure === null) return null
  const before = text.slice(0, failure.offset)
  const lineStart = before.lastIndexOf('\n') + 1
  return {
    line: before.split('\n').length,
    column: failure.offset - lineStart + 1,
    offset: failure.offset,
    expected: failure.expected,
    found: failure.offset >= text.length ? 'the end of the body' : shown(text, failure.offset),
  }
}

function shown(text: string, offset: number): string {
  const character = String.fromCodePoint(text.codePointAt(offset) ?? 0)
  return JSON.stringify(character)
}

type Failure = { offset: number; expected: string }

const numberPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const wordPattern = /true|false|null/y
const blankPattern = /[ \t\n\r]*/y

/** Checks JSON syntax without building values. It uses a stack of open lists and objects instead of recursion. */
class Scanner {
  private readonly text: string
  private at = 0

  constructor(text: string) {
    this.text = text
  }

  scan(): Failure | null {
    const open: ('[' | '{')[] = []
    let wanted: 'value' | 'entry' | 'field' | 'key' | 'next' = 'value'
    for (;;) {
      this.skip(blankPattern)
      const character = this.text[this.at]
      const inside = open.at(-1)
      switch (wanted) {
        // The first entry or field, or the end of an empty list or object.
        case 'entry':
        case 'field':
          if (character === (wanted === 'entry' ? ']' : '}')) {
            this.at += 1
            open.pop()
            wanted = 'next'
          } else wanted = wanted === 'entry' ? 'value' : 'key'
          break
        case 'key': {
          if (character !== '"') return this.expected('a field name in double quotes')
          const failure = this.string()
          if (failure !== null) return failure
          this.skip(blankPattern)
          if (this.text[this.at] !== ':') return this.expected('a colon')
          this.at += 1
          wanted = 'value'
          break
        }
        case 'value': {
          if (character === '[' || character === '{') {
            open.push(character)
            this.at += 1
            wanted = character === '[' ? 'entry' : 'field'
            break
          }
          const failure = character === '"' ? this.string() : this.scalar()
          if (failure !== null) return failure
          wanted = 'next'
          break
        }
        case 'next':
          if (inside === undefined) return character === undefined ? null : this.expected('the end of the body')
          if (character === ',') {
            this.at += 1
            wanted = inside === '[' ? 'value' : 'key'
          } else if (character === (inside === '[' ? ']' : '}')) {
            this.at += 1
            open.pop()
          } else return this.expected(inside === '[' ? 'a comma or ]' : 'a comma or }')
      }
    }
  }

  private scalar(): Failure | null {
    return this.skip(numberPattern) || this.skip(wordPattern) ? null : this.expected('a value')
  }

  private string(): Failure | null {
    for (this.at += 1; this.at < this.text.length; this.at++) {
      const code = this.text.charCodeAt(this.at)
      if (code === 0x22) {
        this.at += 1
        return null
      }
      if (code < 0x20) return this.expected('an escape such as \\n instead of a control character')
      if (code !== 0x5c) continue
      this.at += 1
      const escape = this.text[this.at] ?? ''
      if (escape === 'u') {
        if (!/^[0-9a-fA-F]{4}$/.test(this.text.slice(this.at + 1, this.at + 5))) {
          return this.expected('\\u with four hexadecimal digits')
        }
        this.at += 4
      } else if (escape === '' || !'"\\/bfnrt'.includes(escape)) {
        return this.expected('one of the escapes \\" \\\\ \\/ \\b \\f \\n \\r \\t \\u')
      }
    }
    return this.expected('the double quote that ends the text')
  }

  private skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.at
    const match = pattern.exec(this.text)
    if (match === null) return false
    this.at += match[0].length
    return true
  }

  private expected(what: string): Failure {
    return { offset: this.at, expected: what }
  }
}
