// Form fields: a label, the control, and a sentence below it.

import {
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
} from 'react'
import './field.css'

type FieldProps = { label: string; help?: ReactNode; problem?: string | undefined; hideLabel?: boolean | undefined }

function Frame({ id, label, hideLabel = false, children, ...notes }: FieldProps & { id: string; children: ReactNode }) {
  return (
    <div className="field">
      <label htmlFor={id} className={hideLabel ? 'visually-hidden' : 'field-label'}>
        {label}
      </label>
      {children}
      <Notes id={id} {...notes} />
    </div>
  )
}

type NotesProps = Pick<FieldProps, 'help' | 'problem'>

function Notes({ id, help, problem }: NotesProps & { id: string }) {
  return (
    <>
      {problem === undefined ? null : (
        <p id={`${id}-problem`} className="field-problem" role="alert">
          {problem}
        </p>
      )}
      {help === undefined ? null : (
        <p id={`${id}-help`} className="field-help">
          {help}
        </p>
      )}
    </>
  )
}

/** What connects a control with its label and its notes. */
function controlOf(id: string, { help, problem }: NotesProps) {
  const notes = [problem === undefined ? [] : `${id}-problem`, help === undefined ? [] : `${id}-help`].flat()
  return { id, 'aria-invalid': problem !== undefined, 'aria-describedby': notes.join(' ') || undefined }
}

export function TextField({
  label,
  help,
  problem,
  hideLabel,
  ...rest
}: FieldProps & Omit<InputHTMLAttributes<HTMLInputElement>, 'id' | 'className'>) {
  const id = useId()
  const frame = { id, label, help, problem, hideLabel }
  return (
    <Frame {...frame}>
      <input {...rest} {...controlOf(id, frame)} className="input" />
    </Frame>
  )
}

export function TextArea({
  label,
  help,
  problem,
  hideLabel,
  code = false,
  ...rest
}: FieldProps & { code?: boolean } & Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, 'id' | 'className'>) {
  const id = useId()
  const frame = { id, label, help, problem, hideLabel }
  return (
    <Frame {...frame}>
      <textarea
        {...rest}
        {...controlOf(id, frame)}
        className={code ? 'input input-area input-code' : 'input input-area'}
      />
    </Frame>
  )
}

export function Select({
  label,
  help,
  problem,
  hideLabel,
  ...rest
}: FieldProps & Omit<SelectHTMLAttributes<HTMLSelectElement>, 'id' | 'className'>) {
  const id = useId()
  const frame = { id, label, help, problem, hideLabel }
  return (
    <Frame {...frame}>
      <select {...rest} {...controlOf(id, frame)} className="input input-select" />
    </Frame>
  )
}

/** A box beside its label. */
export function Checkbox({
  label,
  help,
  problem,
  ...rest
}: Omit<FieldProps, 'hideLabel'> & Omit<InputHTMLAttributes<HTMLInputElement>, 'id' | 'className' | 'type'>) {
  const id = useId()
  return (
    <div className="field">
      <label className="checkbox">
        <input {...rest} {...controlOf(id, { help, problem })} type="checkbox" />
        <span>{label}</span>
      </label>
      <Notes id={id} help={help} problem={problem} />
    </div>
  )
}
