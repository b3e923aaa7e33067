// A JSON value as a tree that opens where it is pressed. Long texts and long lists are cut; more is drawn on demand, so a
// value of any size costs only what is visible.

import { useState } from 'react'
import type { JsonValue } from '@polylog/client'
import { useLocale, useWords } from '../i18n/words.ts'
import { withVisibleControls } from './visible-text.ts'
import { uiWords } from './words.ts'
import './json-tree.css'

const textCharsMax = 400
const entriesMax = 50
/** Levels that are open from the start. */
const openLevels = 2

export function JsonTree({ value, label }: { value: JsonValue | undefined; label?: string }) {
  return (
    <div className="json-tree" role="group" aria-label={label} dir="ltr">
      <JsonNode value={value ?? null} level={0} />
    </div>
  )
}

function JsonNode({ name, value, level }: { name?: string; value: JsonValue; level: number }) {
  const words = useWords(uiWords)
  const [isOpen, setOpen] = useState(level < openLevels)
  const [shown, setShown] = useState(entriesMax)
  const key = name === undefined ? null : <span className="json-key">{withVisibleControls(name)}: </span>
  if (value === null || typeof value !== 'object') {
    return (
      <div className="json-line">
        {key}
        <JsonLeaf value={value} />
      </div>
    )
  }
  const entries = Array.isArray(value)
    ? value.map((item, index) => [String(index), item] as const)
    : Object.entries(value)
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}']
  if (entries.length === 0) {
    return (
      <div className="json-line">
        {key}
        <span className="faint">
          {open}
          {close}
        </span>
      </div>
    )
  }
  const size = Array.isArray(value) ? words.items(entries.length) : words.fields(entries.length)
  return (
    <div>
      <button type="button" className="json-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {key}
        <span className="faint">{isOpen ? open : `${open}…${close} ${size}`}</span>
      </button>
      {isOpen ? (
        <div className="json-inside">
          {entries.slice(0, shown).map(([entry, item]) => (
            <JsonNode key={entry} name={entry} value={item} level={level + 1} />
          ))}
          {entries.length > shown ? (
            <button type="button" className="json-toggle" onClick={() => setShown(shown + entriesMax)}>
              {words.showMore(Math.min(entriesMax, entries.length - shown))}
            </button>
          ) : null}
        </div>
      ) : null}
    </div>
  )
}

function JsonLeaf({ value }: { value: string | number | boolean | null }) {
  const words = useWords(uiWords)
  const locale = useLocale()
  const [isWhole, setWhole] = useState(false)
  if (typeof value !== 'string') return <span className="json-atom">{String(value)}</span>
  const isCut = !isWhole && value.length > textCharsMax
  return (
    <>
      <span className="json-text">{withVisibleControls(isCut ? `${value.slice(0, textCharsMax)}…` : value)}</span>
      {isCut ? (
        <button type="button" className="json-toggle" onClick={() => setWhole(true)}>
          {words.showAll(value.length.toLocaleString(locale))}
        </button>
      ) : null}
    </>
  )
}
