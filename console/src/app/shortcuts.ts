// Keyboard shortcuts: single keys, chords with the command key (`mod+k`), and two keys one after the other (`g c`). They
// do nothing while a person types into a field, except chords. `?` lists those that work on the page.

import { useEffect, useRef } from 'react'
import { createStore } from './store.ts'

export type Shortcut = { keys: string; label: string; run(): void }

type Registered = Shortcut & { id: number }

export const shortcuts = createStore<readonly Registered[]>([])

/** How long the first key of two waits for the second. */
const sequenceMs = 1200
let registered = 0
let first: { key: string; at: number } | null = null

/** Registers shortcuts while the component is there. The newest registration of the same keys wins. */
export function useShortcuts(given: readonly Shortcut[]): void {
  const latest = useRef(given)
  latest.current = given
  const signature = given.map(({ keys, label }) => `${keys}:${label}`).join('|')
  useEffect(() => {
    const added = latest.current.map(({ keys, label }, index) => {
      registered += 1
      return { id: registered, keys, label, run: () => latest.current[index]?.run() }
    })
    shortcuts.set((old) => [...old, ...added])
    const ids = new Set(added.map(({ id }) => id))
    return () => shortcuts.set((old) => old.filter(({ id }) => !ids.has(id)))
  }, [signature])
}

export function listenForShortcuts(): () => void {
  const listen = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.isComposing) return
    const pressed = keysOf(event)
    if (pressed === null) return
    const isChord = pressed.startsWith('mod+')
    // A dialog has keys of its own, and a field takes what is typed.
    if (!isChord && document.querySelector('dialog[open]') !== null) return
    if (!isChord && isTyping(event.target)) {
      // Without this, single keys are out of reach of a person without a mouse on pages that begin in a field.
      if (pressed === 'Escape' && event.target instanceof HTMLTextAreaElement) event.target.blur()
      return
    }
    const sequence = first !== null && event.timeStamp - first.at < sequenceMs ? `${first.key} ${pressed}` : null
    const found = (sequence === null ? undefined : shortcutWith(sequence)) ?? shortcutWith(pressed)
    first = found === undefined && !isChord ? { key: pressed, at: event.timeStamp } : null
    if (found === undefined) return
    event.preventDefault()
    found.run()
  }
  window.addEventListener('keydown', listen)
  return () => window.removeEventListener('keydown', listen)
}

function shortcutWith(keys: string): Shortcut | undefined {
  return shortcuts.get().findLast((shortcut) => shortcut.keys === keys)
}

function keysOf({ key, ctrlKey, metaKey, altKey }: KeyboardEvent): string | null {
  if (altKey || ['Shift', 'Control', 'Meta', 'Alt'].includes(key)) return null
  const name = key.length === 1 ? key.toLowerCase() : key
  return ctrlKey || metaKey ? `mod+${name}` : name
}

export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  )
}

/** How people call the keys: ⌘K on a Mac, Ctrl K elsewhere. */
export function keysText(keys: string): string {
  const isMac = /mac|iphone|ipad/i.test(navigator.userAgent)
  return keys.replace(/^mod\+(.)/, (_, key: string) => `${isMac ? '⌘' : 'Ctrl'} ${key.toUpperCase()}`)
}
