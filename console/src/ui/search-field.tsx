// A field that searches or filters what is below it. Escape empties it.

import type { Ref } from 'react'
import { Icon } from './icon.tsx'
import './search-field.css'

type SearchFieldProps = {
  label: string
  value: string
  onChange(text: string): void
  ref?: Ref<HTMLInputElement>
}

export function SearchField({ label, value, onChange, ref }: SearchFieldProps) {
  return (
    <label className="search-field">
      <Icon name="search" size={14} />
      <input
        ref={ref}
        type="search"
        value={value}
        placeholder={label}
        aria-label={label}
        spellCheck={false}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return
          event.preventDefault()
          if (value === '') event.currentTarget.blur()
          else onChange('')
        }}
      />
    </label>
  )
}
