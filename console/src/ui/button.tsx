// Buttons: with a text, or with an icon alone, which then needs a label for screen readers and for the tooltip.

import type { ButtonHTMLAttributes, ReactNode, Ref } from 'react'
import { Icon, type IconName } from './icon.tsx'
import './button.css'

type ButtonProps = Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'className'> & {
  /** `primary`: the one thing to do here. `danger`: it cannot be undone. `quiet`: no border. */
  look?: 'plain' | 'primary' | 'danger' | 'quiet'
  small?: boolean
  icon?: IconName
  /** A shortcut to show behind the text. */
  keys?: string
  children?: ReactNode
  ref?: Ref<HTMLButtonElement>
}

export function Button({ look = 'plain', small = false, icon, keys, children, type = 'button', ...rest }: ButtonProps) {
  return (
    <button {...rest} type={type} className={`button button-${look}${small ? ' button-small' : ''}`}>
      {icon === undefined ? null : <Icon name={icon} />}
      {children}
      {keys === undefined ? null : <Keys text={keys} />}
    </button>
  )
}

type IconButtonProps = Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'className' | 'children'> & {
  icon: IconName
  /** What the button does. */
  label: string
  look?: 'quiet' | 'plain' | 'primary'
  small?: boolean
  ref?: Ref<HTMLButtonElement>
}

export function IconButton({ icon, label, look = 'quiet', small = false, type = 'button', ...rest }: IconButtonProps) {
  return (
    <button
      title={label}
      {...rest}
      type={type}
      aria-label={label}
      className={`button icon-button button-${look}${small ? ' button-small' : ''}`}
    >
      <Icon name={icon} />
    </button>
  )
}

/** Keys of the keyboard, such as `g c`. */
export function Keys({ text }: { text: string }) {
  return (
    <span className="keys" aria-hidden="true">
      {text.split(' ').map((key, index) => (
        // The same key may come twice.
        <kbd key={`${index}-${key}`}>{key}</kbd>
      ))}
    </span>
  )
}
