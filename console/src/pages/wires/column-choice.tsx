// Which dialects are shown.

import { useEffect, useRef } from 'react'
import { useWords } from '../../i18n/words.ts'
import { Icon } from '../../ui/icon.tsx'
import { columnsMax, type DialectName, dialects } from './dialects.ts'
import { wiresWords } from './words.ts'
import './column-choice.css'

type ColumnChoiceProps = { chosen: readonly DialectName[]; onChange(chosen: DialectName[]): void }

export function ColumnChoice({ chosen, onChange }: ColumnChoiceProps) {
  const words = useWords(wiresWords)
  const element = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const close = (event: Event) => {
      const isInside = event.target instanceof Node && element.current?.contains(event.target) === true
      const isEscape = event instanceof KeyboardEvent && event.key === 'Escape'
      if (element.current !== null && (isEscape || (event.type === 'pointerdown' && !isInside))) {
        element.current.open = false
      }
    }
    document.addEventListener('pointerdown', close)
    document.addEventListener('keydown', close)
    return () => {
      document.removeEventListener('pointerdown', close)
      document.removeEventListener('keydown', close)
    }
  }, [])
  return (
    <details ref={element} className="column-choice">
      <summary className="button button-plain button-small">
        <Icon name="wire" size={14} />
        {words.chosen(chosen.length)}
        <Icon name="down" size={12} />
      </summary>
      <fieldset className="column-choice-list">
        <legend>
          {words.columns}
          <span className="faint">{words.columnsHelp(columnsMax)}</span>
        </legend>
        {dialects.map(({ name, title }) => {
          const isChosen = chosen.includes(name)
          return (
            <label key={name} className="column-choice-item" title={words[`about_${name}`]}>
              <input
                type="checkbox"
                checked={isChosen}
                disabled={!isChosen && chosen.length >= columnsMax}
                onChange={() =>
                  onChange(
                    dialects
                      .map((each) => each.name)
                      .filter((each) => (each === name ? !isChosen : chosen.includes(each))),
                  )
                }
              />
              <span className="grow">{title}</span>
              <code className="faint">{name}</code>
            </label>
          )
        })}
      </fieldset>
    </details>
  )
}
