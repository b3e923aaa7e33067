// A form made from the JSON Schema of an object: put it into a <form>. The browser checks what is required and the limits
// of numbers; the server checks the rest.

import { type ComponentProps, useState } from 'react'
import type { JsonValue } from '@polylog/client'
import { useWords } from '../i18n/words.ts'
import { Button } from './button.tsx'
import { Checkbox, Select, TextArea, TextField } from './field.tsx'
import { FileField } from './file-field.tsx'
import { fieldsOf, type FormField, type JsonSchema } from './schema-fields.ts'
import { uiWords } from './words.ts'
import './schema-form.css'

type Values = Record<string, JsonValue>

type SchemaFormProps = {
  schema: JsonSchema | null
  value: Values
  onChange(value: Values): void
  /** For properties that are uploaded. */
  files?: ReadonlyMap<string, File>
  onFile?: (name: string, file: File | null) => void
  /** Names the form if it is edited as JSON. */
  label: string
}

export function SchemaForm({ schema, value, onChange, files, onFile, label }: SchemaFormProps) {
  const words = useWords(uiWords)
  const fields = fieldsOf(schema)
  const [isJson, setJson] = useState(false)
  if (fields === null)
    return <JsonField label={label} value={value} isRequired onChange={(next) => onChange(next as Values)} />
  const isOnlyFiles = fields.every(({ kind }) => kind === 'file')
  return (
    <div className="schema-form">
      {isJson ? (
        <>
          <JsonField label={label} value={value} isRequired onChange={(next) => onChange(next as Values)} />
          <Fields fields={fields.filter(({ kind }) => kind === 'file')} {...{ value, onChange, files, onFile }} />
        </>
      ) : (
        <Fields {...{ fields, value, onChange, files, onFile }} />
      )}
      {isOnlyFiles ? null : (
        <div className="schema-form-mode">
          <Button small look="quiet" onClick={() => setJson(!isJson)}>
            {isJson ? words.editAsForm : words.editAsJson}
          </Button>
        </div>
      )}
    </div>
  )
}

type FieldsProps = {
  fields: readonly FormField[]
  value: Values
  onChange(value: Values): void
  files?: ReadonlyMap<string, File> | undefined
  onFile?: ((name: string, file: File | null) => void) | undefined
}

function Fields({ fields, value, onChange, files, onFile }: FieldsProps) {
  return fields.map((field) => {
    if (field.kind === 'file') {
      const { name, label, help, isRequired } = field
      return (
        <FileField
          key={name}
          label={label}
          help={help}
          isRequired={isRequired}
          file={files?.get(name) ?? null}
          onFile={(file) => onFile?.(name, file)}
        />
      )
    }
    // An empty field is left out, so that an optional property keeps its default.
    const set = (next: JsonValue | undefined) => {
      const { [field.name]: _old, ...others } = value
      onChange(next === undefined ? others : { ...others, [field.name]: next })
    }
    return <Field key={field.name} field={field} value={value[field.name]} onChange={set} />
  })
}

type FieldProps = { field: FormField; value: JsonValue | undefined; onChange(value: JsonValue | undefined): void }

function Field({ field, value, onChange }: FieldProps) {
  const words = useWords(uiWords)
  const { isRequired, schema } = field
  const common = {
    label: isRequired ? field.label : words.optional(field.label),
    help: field.help,
    required: isRequired,
  }
  switch (field.kind) {
    case 'choice':
      return (
        <Select
          {...common}
          value={value === undefined ? '' : String(field.options.findIndex((option) => option === value))}
          onChange={({ target }) => onChange(target.value === '' ? undefined : field.options[Number(target.value)])}
        >
          <option value="">–</option>
          {field.options.map((option, index) => (
            <option key={String(option)} value={index}>
              {String(option)}
            </option>
          ))}
        </Select>
      )
    case 'flag':
      return (
        <Checkbox
          label={field.label}
          help={field.help}
          checked={value === true}
          onChange={({ target }) => onChange(target.checked)}
        />
      )
    case 'number':
      return (
        <NumberField
          {...common}
          min={numberIn(schema['minimum'])}
          max={numberIn(schema['maximum'])}
          step={schema['type'] === 'integer' ? 1 : 'any'}
          value={typeof value === 'number' ? value : undefined}
          onNumber={onChange}
        />
      )
    case 'lines': {
      const lines = Array.isArray(value) ? value.map(String) : []
      return <LinesField {...common} lines={lines} onLines={(next) => onChange(next.length === 0 ? undefined : next)} />
    }
    case 'group':
      return (
        <fieldset className="schema-group">
          <legend>{field.label}</legend>
          {field.help === undefined ? null : <p className="field-help">{field.help}</p>}
          <Fields
            fields={field.fields}
            value={isObject(value) ? value : {}}
            onChange={(next) => onChange(Object.keys(next).length === 0 && !isRequired ? undefined : next)}
          />
        </fieldset>
      )
    case 'json':
      return <JsonField {...common} isRequired={isRequired} value={value} onChange={onChange} />
    default:
      return (
        <TextArea
          {...common}
          rows={1}
          minLength={numberIn(schema['minLength'])}
          maxLength={numberIn(schema['maxLength'])}
          value={typeof value === 'string' ? value : ''}
          onChange={({ target }) => onChange(target.value === '' ? undefined : target.value)}
        />
      )
  }
}

type NumberFieldProps = Omit<ComponentProps<typeof TextField>, 'value'> & {
  value: number | undefined
  onNumber(value: number | undefined): void
}

/** Keeps the text, so that a number can be typed that is not yet complete. */
function NumberField({ value, onNumber, ...rest }: NumberFieldProps) {
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

type LinesFieldProps = Pick<FieldProps['field'], 'label' | 'help'> & {
  required: boolean
  lines: string[]
  onLines(lines: string[]): void
}

function LinesField({ lines, onLines, help, ...rest }: LinesFieldProps) {
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
  isRequired: boolean
  value: JsonValue | undefined
  onChange(value: JsonValue | undefined): void
}

function JsonField({ label, help, isRequired, value, onChange }: JsonFieldProps) {
  const words = useWords(uiWords)
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, null, 2))
  const isWrong = text.trim() !== '' && !isJson(text)
  return (
    <TextArea
      label={label}
      help={help ?? words.asJson}
      problem={isWrong ? words.notJson : undefined}
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

function isObject(value: JsonValue | undefined): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function numberIn(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined
}
