// Chooses a file: with a press, with the keyboard, or by dropping it.

import { useId, useRef, useState } from 'react'
import { useLocale, useWords } from '../i18n/words.ts'
import { Button, IconButton } from './button.tsx'
import { Icon } from './icon.tsx'
import { withVisibleControls } from './visible-text.ts'
import { uiWords } from './words.ts'
import './file-field.css'

type FileFieldProps = {
  label: string
  help?: string | undefined
  /** File name endings and media types, as `<input accept>` has them. */
  accept?: string
  isRequired?: boolean
  file: File | null
  onFile(file: File | null): void
}

export function FileField({ label, help, accept, isRequired = false, file, onFile }: FileFieldProps) {
  const words = useWords(uiWords)
  const locale = useLocale()
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  const [isOver, setOver] = useState(false)
  return (
    <div className="field">
      <label htmlFor={id} className="field-label">
        {isRequired ? label : words.optional(label)}
      </label>
      {/* Dropping is a convenience for mice; the button and the input do the same. */}
      <div
        className="file-field"
        data-over={isOver}
        onDragOver={(event) => {
          event.preventDefault()
          setOver(true)
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault()
          setOver(false)
          onFile(event.dataTransfer.files[0] ?? null)
        }}
      >
        <Icon name="file" />
        {file === null ? (
          <span className="grow faint">{words.dropFile}</span>
        ) : (
          <span className="grow cut">
            <bdi>{withVisibleControls(file.name)}</bdi> <span className="faint">{sizeText(file.size, locale)}</span>
          </span>
        )}
        {file === null ? null : <IconButton icon="close" small label={words.removeFile} onClick={() => onFile(null)} />}
        <Button small onClick={() => input.current?.click()} tabIndex={-1} aria-hidden="true">
          {words.chooseFile}
        </Button>
        <input
          ref={input}
          id={id}
          type="file"
          className="file-field-input"
          accept={accept}
          required={isRequired && file === null}
          aria-describedby={help === undefined ? undefined : `${id}-help`}
          onChange={(event) => {
            onFile(event.target.files?.[0] ?? null)
            // The same file can be chosen again after it was removed.
            event.target.value = ''
          }}
        />
      </div>
      {help === undefined ? null : (
        <p id={`${id}-help`} className="field-help">
          {help}
        </p>
      )}
    </div>
  )
}

/** 980 B, 12.4 kB, 3 MB. */
export function sizeText(bytes: number, locale: string): string {
  const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte'] as const
  const power = Math.min(units.length - 1, bytes < 1000 ? 0 : Math.floor(Math.log10(bytes) / 3))
  const format = new Intl.NumberFormat(locale, {
    style: 'unit',
    unit: units[power],
    unitDisplay: power === 0 ? 'long' : 'short',
    maximumFractionDigits: 1,
  })
  return format.format(bytes / 1000 ** power)
}
