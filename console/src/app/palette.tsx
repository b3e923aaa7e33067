// The command palette: every page, and what the open page offers. A command is found by any part of its words.

import { useEffect, useId, useMemo, useRef, useState } from 'react'
import { useWords } from '../i18n/words.ts'
import { Keys } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Icon, type IconName } from '../ui/icon.tsx'
import { keysText } from './shortcuts.ts'
import { createStore } from './store.ts'
import { shellWords } from './words.ts'
import './palette.css'

export type Command = { id: string; label: string; icon: IconName; keys?: string; run(): void }

const commands = createStore<readonly Command[]>([])
export const paletteIsOpen = createStore(false)

/** Offers commands while the component is there. */
export function useCommands(given: readonly Command[]): void {
  const latest = useRef(given)
  latest.current = given
  const signature = given.map(({ id, label }) => `${id}:${label}`).join('|')
  useEffect(() => {
    const added = latest.current.map((command, index) => ({ ...command, run: () => latest.current[index]?.run() }))
    commands.set((old) => [...old, ...added])
    return () => commands.set((old) => old.filter((command) => !added.includes(command)))
  }, [signature])
}

export function Palette() {
  const words = useWords(shellWords)
  const all = commands.use()
  const [query, setQuery] = useState('')
  const [active, setActive] = useState(0)
  const list = useRef<HTMLUListElement>(null)
  const id = useId()
  const found = useMemo(() => {
    const parts = query.toLowerCase().split(/\s+/).filter(Boolean)
    return all.filter(({ label }) => parts.every((part) => label.toLowerCase().includes(part)))
  }, [all, query])
  const at = Math.min(active, found.length - 1)
  useEffect(() => {
    // Newer browsers return a promise, which an effect must not.
    list.current?.children[at]?.scrollIntoView({ block: 'nearest' })
  }, [at])

  const close = () => paletteIsOpen.set(false)
  const choose = (command: Command | undefined) => {
    if (command === undefined) return
    close()
    command.run()
  }
  const move = (by: number) => setActive((at + by + found.length) % Math.max(1, found.length))
  return (
    <Dialog title={words.palette} onClose={close} width="medium" bare>
      <div className="palette-field">
        <Icon name="search" />
        <input
          autoFocus
          role="combobox"
          aria-expanded="true"
          aria-controls={id}
          aria-activedescendant={found[at] === undefined ? undefined : `${id}-${at}`}
          aria-label={words.palettePlaceholder}
          placeholder={words.palettePlaceholder}
          value={query}
          onChange={(event) => {
            setQuery(event.target.value)
            setActive(0)
          }}
          onKeyDown={(event) => {
            if (event.key === 'ArrowDown') move(1)
            else if (event.key === 'ArrowUp') move(-1)
            else if (event.key === 'Enter' && !event.nativeEvent.isComposing) choose(found[at])
            else return
            event.preventDefault()
          }}
        />
      </div>
      {found.length === 0 ? <p className="palette-empty soft">{words.paletteEmpty}</p> : null}
      <ul ref={list} id={id} role="listbox" aria-label={words.palette} className="palette-list">
        {found.map((command, index) => (
          // The keyboard works through the field above.
          <li
            key={command.id}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            className="palette-item"
            onClick={() => choose(command)}
            onMouseMove={() => setActive(index)}
          >
            <Icon name={command.icon} />
            <span className="grow cut">{command.label}</span>
            {command.keys === undefined ? null : <Keys text={keysText(command.keys)} />}
          </li>
        ))}
      </ul>
    </Dialog>
  )
}
