// A JSON value for people: names and texts instead of brackets. Texts of several lines are markdown. Long lists and deep
// values are cut; the tree shows everything.

import { useState } from 'react'
import type { JsonValue } from '@polylog/client'
import { useLocale, useWords } from '../i18n/words.ts'
import { JsonTree } from './json-tree.tsx'
import { Markdown } from './markdown.tsx'
import { withVisibleOverrides } from './visible-text.ts'
import { uiWords } from './words.ts'
import './structured-value.css'

const entriesMax = 20
const levelsMax = 4

export function StructuredValue({ value }: { value: JsonValue }) {
  return (
    <div className="structured">
      <Value value={value} level={0} />
    </div>
  )
}

function Value({ value, level }: { value: JsonValue; level: number }) {
  const locale = useLocale()
  if (value === null) return <span className="faint">–</span>
  if (typeof value === 'number') return <span className="numbers">{value.toLocaleString(locale)}</span>
  if (typeof value === 'boolean') return <code>{String(value)}</code>
  if (typeof value === 'string') {
    if (value === '') return <span className="faint">–</span>
    return value.includes('\n') ? <Markdown text={value} /> : <p dir="auto">{withVisibleOverrides(value)}</p>
  }
  if (level >= levelsMax) return <JsonTree value={value} />
  return Array.isArray(value) ? <List items={value} level={level} /> : <Fields value={value} level={level} />
}

function Fields({ value, level }: { value: Record<string, JsonValue>; level: number }) {
  const entries = Object.entries(value)
  const { shown, more } = useCut(entries)
  if (entries.length === 0) return <span className="faint">–</span>
  return (
    <>
      <dl className="structured-fields">
        {shown.map(([name, entry]) => (
          <div key={name} className="structured-field" data-wide={isWide(entry)}>
            <dt>{withVisibleOverrides(titleOf(name))}</dt>
            <dd>
              <Value value={entry} level={level + 1} />
            </dd>
          </div>
        ))}
      </dl>
      {more}
    </>
  )
}

function List({ items, level }: { items: readonly JsonValue[]; level: number }) {
  const { shown, more } = useCut(items)
  if (items.length === 0) return <span className="faint">–</span>
  const isPlain = items.every((item) => typeof item !== 'object' || item === null)
  return (
    <>
      <ul className={isPlain ? 'structured-list' : 'structured-cards'}>
        {shown.map((item, index) => (
          <li key={index}>
            <Value value={item} level={level + 1} />
          </li>
        ))}
      </ul>
      {more}
    </>
  )
}

/** The first entries, and a button for more. */
function useCut<Item>(items: readonly Item[]) {
  const words = useWords(uiWords)
  const [count, setCount] = useState(entriesMax)
  const left = items.length - count
  return {
    shown: items.slice(0, count),
    more:
      left <= 0 ? null : (
        <button type="button" className="json-toggle" onClick={() => setCount(count + entriesMax)}>
          {words.showMore(Math.min(entriesMax, left))}
        </button>
      ),
  }
}

/** Whether a value needs a line of its own. */
function isWide(value: JsonValue): boolean {
  return (typeof value === 'object' && value !== null) || (typeof value === 'string' && value.length > 60)
}

/** `suggestedAction` → `Suggested action`. */
function titleOf(name: string): string {
  const words = name
    .replace(/([\p{Ll}\d])(\p{Lu})/gu, '$1 $2')
    .replace(/[_-]+/g, ' ')
    .trim()
    .toLowerCase()
  return words.charAt(0).toUpperCase() + words.slice(1)
}
