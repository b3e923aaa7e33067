// The fields of a form that is made from a JSON Schema. Each keeps the text that a person types, and tells the value when
// there is one.

import { type ComponentProps, useId, useState } from 'react'
import type { JsonValue } from '@polylog/client'
import { useWords } from '../i18n/words.ts'
import { TextArea, TextField } from './field.tsx'
import type { JsonSchema } from './schema-fields.ts'
import { uiWords } from './words.ts'

/** Values to choose from, by the name of the property. */
export type Suggestions = Readonly<Record<string, readonly { value: string; label: string }[]>>

/** Longer texts may have several lines. */
const shortCharsMax = 250

export function isShort(schema: JsonSchema): boolean {
  return (numberIn(schema['maxLength']) ?? Infinity) <= shortCharsMax || typeof schema['pattern'] === 'string'
}

type ShortFieldProps = ComponentProps<typeof TextField> & { suggestions: Suggestions[string] }

export function ShortField({ suggestions, ...rest }: ShortFieldProps) {
  const id = useId()
  if (suggestions.length === 0) return <TextField {...rest} dir="auto" />
  return (
    <>
      <TextField {...rest} dir="auto" list={id} autoComplete="off" />
      <datalist id={id}>
        {suggestions.map(({ value, label }) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </datalist>
    </>
  )
}

type NumberFieldProps = Omit<ComponentProps<typeof TextField>, 'value'> & {
  value: number | undefined
  onNumber(value: number | undefined): void
}

/** Keeps the text, so that a number can be typed that is not yet complete. */
export function NumberField({ value, onNumber, ...rest }: NumberFieldProps) {
  const [text, setText] = useState(value === undefined ? '' : String(value))
  return (
    <TextField
      {...rest}
      type="number"
      inputMode="decimal"
      value={text}
      onChange={({ target }) => {
        setText(target.value)
        onNumber(Number.isNaN(target.valueAsNumber) ? undefined : target.valueAsNumber)
      }}
    />
  )
}

type LinesFieldProps = {
  label: string
  help: string | undefined
  problem: string | undefined
  required: boolean
  lines: string[]
  onLines(lines: string[]): void
}

export function LinesField({ lines, onLines, help, ...rest }: LinesFieldProps) {
  const words = useWords(uiWords)
  const [text, setText] = useState(lines.join('\n'))
  return (
    <TextArea
      {...rest}
      help={help === undefined ? words.onePerLine : `${help} ${words.onePerLine}`}
      rows={3}
      value={text}
      onChange={({ target }) => {
        setText(target.value)
        onLines(
          target.value
            .split('\n')
            .map((line) => line.trim())
            .filter((line) => line !== ''),
        )
      }}
    />
  )
}

type JsonFieldProps = {
  label: string
  help?: string | undefined
  problem?: string | undefined
  isRequired: boolean
  value: JsonValue | undefined
  onChange(value: JsonValue | undefined): void
}

export function JsonField({ label, help, problem, isRequired, value, onChange }: JsonFieldProps) {
  const words = useWords(uiWords)
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, null, 2))
  const isWrong = text.trim() !== '' && !isJson(text)
  return (
    <TextArea
      label={label}
      help={help ?? words.asJson}
      problem={isWrong ? words.notJson : problem}
      code
      required={isRequired}
      rows={4}
      spellCheck={false}
      value={text}
      onChange={({ target }) => {
        setText(target.value)
        const isEmpty = target.value.trim() === ''
        // Keeps the form from being sent.
        target.setCustomValidity(isEmpty || isJson(target.value) ? '' : words.notJson)
        if (isEmpty) onChange(undefined)
        else if (isJson(target.value)) onChange(JSON.parse(target.value) as JsonValue)
      }}
    />
  )
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

export function numberIn(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined
}
