// Makes a value for a JSON Schema from a text: properties with known names by heuristics, all
// others by their type. Pure and deterministic.

import type { JsonValue } from '../journal/event.ts'

export type Facts = {
  text: string
  input: Record<string, JsonValue>
  parameter: Record<string, JsonValue>
  answers: { question: string; answer: string }[]
}

type Schema = Record<string, JsonValue>

const depthMax = 8
/** How many values are filled in; the others are null. Otherwise nested lists could require any number of values. */
const valuesMax = 2_000
/** The limit for all values together. Otherwise a schema could repeat a long property of the input many times. */
const charsMax = 512 * 1024
const summaryCharsMax = 2_000
const taskCharsMax = 500
const optionsMax = 100
const titleCharsMax = 80
const keywordsMax = 8
const wordsPerMinute = 200
const summarySentences = 3

export function fillSchema(schema: Schema, facts: Facts): JsonValue {
  return new Form(facts).fill(schema, '', 0)
}

class Form {
  readonly #facts: Facts
  /** A cache of the value for each property name, because a schema may ask for one name many times. */
  readonly #known = new Map<string, { value: JsonValue | undefined; chars: number }>()
  #values = 0
  #chars = 0

  constructor(facts: Facts) {
    this.#facts = facts
  }

  fill(schema: Schema, name: string, depth: number): JsonValue {
    this.#values += 1
    if (depth > depthMax || this.#values > valuesMax || this.#chars > charsMax) return null
    if (typeof schema !== 'object' || schema === null) return null
    if ('const' in schema) return this.#spend(schema['const'] ?? null)
    if (Array.isArray(schema['enum'])) {
      const wanted = this.#facts.input[name]
      return this.#spend(schema['enum'].find((value) => value === wanted) ?? schema['enum'][0] ?? null)
    }
    const type = typeOf(schema)
    const known = this.#about(name)
    const value = fitting(known.value, type)
    if (value !== undefined) {
      this.#chars += known.chars
      return value
    }
    switch (type) {
      case 'object':
        return this.#object(schema, depth)
      case 'array':
        return this.#array(schema, name, depth)
      case 'integer':
      case 'number':
        return Number(schema['minimum'] ?? 0)
      case 'boolean':
        return false
      case 'null':
        return null
      default: {
        const { value: text, chars } = this.#about('summary')
        this.#chars += chars
        return text || 'unknown'
      }
    }
  }

  #object(schema: Schema, depth: number): JsonValue {
    const filled: [string, JsonValue][] = []
    for (const [key, property] of Object.entries((schema['properties'] ?? {}) as Record<string, Schema>)) {
      if (this.#values > valuesMax) break
      filled.push([key, this.fill(property, key, depth + 1)])
    }
    return Object.fromEntries(filled)
  }

  #array(schema: Schema, name: string, depth: number): JsonValue {
    const least = Math.min(Number(schema['minItems'] ?? 0), 20)
    const item = (schema['items'] ?? {}) as Schema
    const filled: JsonValue[] = []
    while (filled.length < least && this.#values <= valuesMax) filled.push(this.fill(item, name, depth + 1))
    return filled
  }

  #about(name: string): { value: JsonValue | undefined; chars: number } {
    let known = this.#known.get(name)
    if (known === undefined) {
      const value = (Object.hasOwn(byName, name) ? byName[name]?.(this.#facts) : undefined) ?? this.#facts.input[name]
      known = { value, chars: value === undefined ? 0 : JSON.stringify(value).length }
      this.#known.set(name, known)
    }
    return known
  }

  #spend(value: JsonValue): JsonValue {
    this.#chars += JSON.stringify(value).length
    return value
  }
}

function typeOf(schema: Schema): string {
  const { type } = schema
  if (Array.isArray(type)) return String(type.find((one) => one !== 'null') ?? 'null')
  return typeof type === 'string' ? type : 'properties' in schema ? 'object' : 'string'
}

function fitting(value: JsonValue | undefined, type: string): JsonValue | undefined {
  if (value === undefined || value === null) return undefined
  const actual = Array.isArray(value) ? 'array' : typeof value
  if (actual === type) return value === '' ? undefined : value
  return actual === 'number' && type === 'integer' && Number.isInteger(value) ? value : undefined
}

const byName: Record<string, (facts: Facts) => JsonValue> = {
  title: ({ text }) => title(text),
  summary: (facts) => summary(facts),
  keywords: ({ text }) => keywords(text),
  words: ({ text }) => wordsOf(text).length,
  reading_minutes: ({ text }) => Math.max(1, Math.round(wordsOf(text).length / wordsPerMinute)),
  items: ({ text }) => tasks(text),
  count: ({ text }) => tasks(text).length,
  answers: ({ answers }) => answers,
  decision: (facts) => decision(facts),
}

function title(text: string): string {
  const line = (text.split('\n').find((candidate) => candidate.trim() !== '') ?? '').replace(/^#+\s*/, '').trim()
  const sentence = sentences(line)[0] ?? line
  return sentence.length <= titleCharsMax
    ? sentence.replace(/[.。]$/, '')
    : `${sentence.slice(0, titleCharsMax - 1).trimEnd()}…`
}

function summary(facts: Facts): string {
  const { answers, text, parameter } = facts
  if (answers.length > 0)
    return `Decided: ${decision(facts)}. ${answers.map(({ question, answer }) => `${question} ${answer}`).join(' ')}`.slice(
      0,
      summaryCharsMax,
    )
  const wanted = typeof parameter['sentences'] === 'number' ? parameter['sentences'] : summarySentences
  const body = text
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join(' ')
  return sentences(body).slice(0, wanted).join(' ').slice(0, summaryCharsMax)
}

function decision({ answers, input }: Facts): string {
  const options = Array.isArray(input['options']) ? input['options'].slice(0, optionsMax).map(String) : []
  const chosen = options.find((option) => answers.some(({ answer }) => answer.toLowerCase() === option.toLowerCase()))
  return (
    chosen ??
    options.find((option) => answers.some(({ answer }) => answer.includes(option))) ??
    options[0] ??
    answers[0]?.answer ??
    'nothing'
  )
}

function sentences(text: string): string[] {
  return (text.match(/[^.!?。！？]+(?:[.!?。！？]+|$)/g) ?? [])
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '')
}

/** The words of scripts that use spaces, and single characters of scripts that do not. */
function wordsOf(text: string): string[] {
  return text.match(/[\u3400-\u9fff]|[\p{L}\p{N}][\p{L}\p{N}'’-]*/gu) ?? []
}

const common = new Set(
  'about after also and are because been but can could does for from had has have her his how into its more most not only other our out over she should some such than that the their them then there these they this those through was were what when where which while who will with would you your'.split(
    ' ',
  ),
)

function keywords(text: string): string[] {
  const counts = new Map<string, number>()
  for (const word of wordsOf(text)) {
    const key = word.toLowerCase()
    if (key.length > 2 && !common.has(key)) counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return [...counts]
    .toSorted(([a, countA], [b, countB]) => countB - countA || b.length - a.length || (a < b ? -1 : 1))
    .slice(0, keywordsMax)
    .map(([word]) => word)
}

/** Lines that look like a task: they have a checkbox, "TODO", or a name with "will", "should" or "must". */
function tasks(text: string): { task: string; owner: string | null; due: string | null }[] {
  return text.split('\n').flatMap((line) => {
    const trimmed = line
      .slice(0, taskCharsMax)
      .trim()
      .replace(/^[-*]\s+/, '')
    const marked = /^(?:\[ \]|todo:?|action:?)\s+(.+)$/i.exec(trimmed)
    const promised = /^(\p{Lu}[\p{L}'’-]+) (?:will|should|must|to|needs to) (.+)$/u.exec(marked?.[1] ?? trimmed)
    if (marked === null && promised === null) return []
    const rest = (promised?.[2] ?? marked?.[1] ?? '').replace(/[.。]$/, '')
    const due = /\s*\b(?:by|until|before|on) ((?:next |this )?[\p{L}\d][\p{L}\d ./-]{1,30})$/iu.exec(rest)
    return [
      {
        task: capital(due === null ? rest : rest.slice(0, due.index)),
        owner: promised?.[1] ?? null,
        due: due?.[1] ?? null,
      },
    ]
  })
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
