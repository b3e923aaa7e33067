// A form made from the JSON Schema of an object: put it into a <form>. The browser checks what is required and the limits
// of numbers; the server checks the rest, and what it says about a field is shown there.

import { createContext, useContext, useState } from 'react'
import type { JsonValue } from '@polylog/client'
import { useWords } from '../i18n/words.ts'
import { Button, IconButton } from './button.tsx'
import { Checkbox, Select, TextArea } from './field.tsx'
import { FileField } from './file-field.tsx'
import { fieldsOf, type FormField, type JsonSchema } from './schema-fields.ts'
import {
  isShort,
  JsonField,
  LinesField,
  NumberField,
  numberIn,
  ShortField,
  type Suggestions,
} from './schema-inputs.tsx'
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
  /** What the server says, by the path of the field: `messages.0.content`. */
  problems?: ReadonlyMap<string, string>
  /** Values to choose from, by the name of the property. */
  suggestions?: Suggestions
}

const FormContext = createContext<{ problems: ReadonlyMap<string, string>; suggestions: Suggestions }>({
  problems: new Map(),
  suggestions: {},
})

export function SchemaForm({ problems = new Map(), suggestions = {}, ...rest }: SchemaFormProps) {
  return (
    <FormContext value={{ problems, suggestions }}>
      <WholeForm {...rest} />
    </FormContext>
  )
}

function WholeForm({ schema, value, onChange, files, onFile, label }: SchemaFormProps) {
  const words = useWords(uiWords)
  const { problems } = useContext(FormContext)
  const fields = fieldsOf(schema)
  const [isJson, setJson] = useState(false)
  // A message about a field that is not there.
  const all = [...problems].map(([path, message]) => `${path} ${message}`.trim()).join('; ') || undefined
  if (fields === null)
    return (
      <JsonField label={label} value={value} isRequired problem={all} onChange={(next) => onChange(next as Values)} />
    )
  const isOnlyFiles = fields.every(({ kind }) => kind === 'file')
  return (
    <div className="schema-form">
      {isJson ? (
        <>
          <JsonField
            label={label}
            value={value}
            isRequired
            problem={all}
            onChange={(next) => onChange(next as Values)}
          />
          <Fields
            path=""
            fields={fields.filter(({ kind }) => kind === 'file')}
            {...{ value, onChange, files, onFile }}
          />
        </>
      ) : (
        <Fields path="" {...{ fields, value, onChange, files, onFile }} />
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
  /** Of the object that has the fields; empty for the form itself. */
  path: string
  fields: readonly FormField[]
  value: Values
  onChange(value: Values): void
  files?: ReadonlyMap<string, File> | undefined
  onFile?: ((name: string, file: File | null) => void) | undefined
}

function Fields({ path, fields, value, onChange, files, onFile }: FieldsProps) {
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
    return (
      <Field key={field.name} path={join(path, field.name)} field={field} value={value[field.name]} onChange={set} />
    )
  })
}

type FieldProps = {
  path: string
  field: FormField
  value: JsonValue | undefined
  onChange(value: JsonValue | undefined): void
}

function Field({ path, field, value, onChange }: FieldProps) {
  const words = useWords(uiWords)
  const { problems, suggestions } = useContext(FormContext)
  const problem = problems.get(path)
  const { isRequired, schema } = field
  const common = {
    label: isRequired ? field.label : words.optional(field.label),
    help: field.help,
    problem,
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
          problem={problem}
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
          <GroupProblem text={problem} />
          <Fields
            path={path}
            fields={field.fields}
            value={isObject(value) ? value : {}}
            onChange={(next) => onChange(Object.keys(next).length === 0 && !isRequired ? undefined : next)}
          />
        </fieldset>
      )
    case 'list':
      return <ListField path={path} field={field} value={value} onChange={onChange} />
    case 'json':
      return <JsonField {...common} isRequired={isRequired} value={value} onChange={onChange} />
    default:
      return isShort(schema) ? (
        <ShortField
          {...common}
          suggestions={suggestions[field.name] ?? []}
          minLength={numberIn(schema['minLength'])}
          maxLength={numberIn(schema['maxLength'])}
          value={typeof value === 'string' ? value : ''}
          onChange={({ target }) => onChange(target.value === '' ? undefined : target.value)}
        />
      ) : (
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

type ListFieldProps = Omit<FieldProps, 'field'> & { field: Extract<FormField, { kind: 'list' }> }

/** Entries with a field, or a group of fields, each. They keep their keys while others are removed. */
function ListField({ path, field, value, onChange }: ListFieldProps) {
  const words = useWords(uiWords)
  const { problems } = useContext(FormContext)
  const items = Array.isArray(value) ? value : []
  const [keys, setKeys] = useState<readonly number[]>(() => items.map((_, index) => index))
  const shown = items.map((item, index) => ({ item, key: keys[index] ?? index }))
  const next = Math.max(-1, ...shown.map(({ key }) => key)) + 1
  const change = (changed: readonly { item: JsonValue; key: number }[]) => {
    setKeys(changed.map(({ key }) => key))
    onChange(changed.length === 0 && !field.isRequired ? undefined : changed.map(({ item }) => item))
  }
  return (
    <fieldset className="schema-group">
      <legend>{field.isRequired ? field.label : words.optional(field.label)}</legend>
      {field.help === undefined ? null : <p className="field-help">{field.help}</p>}
      <GroupProblem text={problems.get(path)} />
      {shown.map(({ item, key }, index) => (
        <div key={key} className="schema-item">
          <div className="grow">
            <Field
              path={join(path, String(index))}
              field={{ ...field.item, label: words.entry(index + 1) }}
              value={item}
              onChange={(changed) =>
                change(shown.with(index, { item: changed ?? (field.item.kind === 'group' ? {} : null), key }))
              }
            />
          </div>
          <IconButton
            icon="trash"
            small
            label={words.removeEntry(index + 1)}
            onClick={() => change(shown.toSpliced(index, 1))}
          />
        </div>
      ))}
      <div>
        <Button
          small
          icon="plus"
          onClick={() => change([...shown, { item: field.item.kind === 'group' ? {} : null, key: next }])}
        >
          {words.addEntry}
        </Button>
      </div>
    </fieldset>
  )
}

function GroupProblem({ text }: { text: string | undefined }) {
  return text === undefined ? null : (
    <p className="field-problem" role="alert">
      {text}
    </p>
  )
}

function isObject(value: JsonValue | undefined): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}
