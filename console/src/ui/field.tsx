// Form fields: a label, the control, and a sentence below it.

import {
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
} from 'react'
import './field.css'

type FieldProps = { label: string; help?: ReactNode; problem?: string | undefined; hideLabel?: boolean }

function Frame({
  id,
  label,
  help,
  problem,
  hideLabel = false,
  children,
}: FieldProps & { id: string; children: ReactNode }) {
  return (
    <div className="field">
      <label htmlFor={id} className={hideLabel ? 'visually-hidden' : 'field-label'}>
        {label}
      </label>
      {children}
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
    </div>
  )
}

const described = (id: string, { help, problem }: FieldProps) =>
  [problem === undefined ? [] : [`${id}-problem`], help === undefined ? [] : [`${id}-help`]].flat().join(' ') ||
  undefined

export function TextField({
  label,
  help,
  problem,
  hideLabel,
  ...rest
}: FieldProps & Omit<InputHTMLAttributes<HTMLInputElement>, 'id' | 'className'>) {
  const id = useId()
  const frame = {
    label,
    help,
    ...(problem === undefined ? {} : { problem }),
    ...(hideLabel === undefined ? {} : { hideLabel }),
  }
  return (
    <Frame id={id} {...frame}>
      <input
        {...rest}
        id={id}
        className="input"
        aria-invalid={problem !== undefined}
        aria-describedby={described(id, frame)}
      />
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
  const frame = {
    label,
    help,
    ...(problem === undefined ? {} : { problem }),
    ...(hideLabel === undefined ? {} : { hideLabel }),
  }
  return (
    <Frame id={id} {...frame}>
      <textarea
        {...rest}
        id={id}
        className={code ? 'input input-area input-code' : 'input input-area'}
        aria-invalid={problem !== undefined}
        aria-describedby={described(id, frame)}
      />
    </Frame>
  )
}

export function Select({
  label,
  help,
  problem,
  hideLabel,
  children,
  ...rest
}: FieldProps & Omit<SelectHTMLAttributes<HTMLSelectElement>, 'id' | 'className'>) {
  const id = useId()
  const frame = {
    label,
    help,
    ...(problem === undefined ? {} : { problem }),
    ...(hideLabel === undefined ? {} : { hideLabel }),
  }
  return (
    <Frame id={id} {...frame}>
      <select
        {...rest}
        id={id}
        className="input input-select"
        aria-invalid={problem !== undefined}
        aria-describedby={described(id, frame)}
      >
        {children}
      </select>
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
        <input
          {...rest}
          id={id}
          type="checkbox"
          aria-invalid={problem !== undefined}
          aria-describedby={described(id, { label, help, ...(problem === undefined ? {} : { problem }) })}
        />
        <span>{label}</span>
      </label>
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
    </div>
  )
}
