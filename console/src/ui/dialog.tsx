// A dialog in the middle of the page, on top of everything. The browser keeps the focus inside and gives it back; Escape
// and a press outside close it.

import { type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { problemOf } from '../api/use-loaded.ts'
import { shellWords } from '../app/words.ts'
import { useWords } from '../i18n/words.ts'
import { Button, IconButton } from './button.tsx'
import { showProblem } from './toast.tsx'
import './dialog.css'

type DialogProps = {
  title: string
  onClose(): void
  children: ReactNode
  /** Buttons at the bottom. */
  actions?: ReactNode
  width?: 'small' | 'medium' | 'large'
  /** The title is only for screen readers, and there is no padding. */
  bare?: boolean
}

export function Dialog({ title, onClose, children, actions, width = 'small', bare = false }: DialogProps) {
  const words = useWords(shellWords)
  const element = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    return () => dialog?.close()
  }, [])
  return (
    // The press outside is a convenience for mice; the keyboard has Escape.
    <dialog
      ref={element}
      className={`dialog dialog-${width}${bare ? ' dialog-bare' : ''}`}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onMouseDown={(event) => {
        if (event.target === element.current) onClose()
      }}
    >
      {bare ? (
        <h2 id={titleId} className="visually-hidden">
          {title}
        </h2>
      ) : (
        <header className="dialog-head">
          <h2 id={titleId} className="grow">
            {title}
          </h2>
          <IconButton icon="close" label={words.close} small onClick={onClose} />
        </header>
      )}
      <div className="dialog-body">{children}</div>
      {actions === undefined ? null : <footer className="dialog-actions">{actions}</footer>}
    </dialog>
  )
}

type ConfirmDialogProps = {
  title: string
  children: ReactNode
  /** The label of the button that deletes. */
  action: string
  /** What is said if it fails. */
  failed?: string
  onConfirm(): Promise<unknown>
  onClose(): void
}

/** Asks before something is deleted. It closes when that is done; after a failure it stays open, to try again. */
export function ConfirmDialog({ title, children, action, failed, onConfirm, onClose }: ConfirmDialogProps) {
  const words = useWords(shellWords)
  const [isSent, setSent] = useState(false)
  const confirm = async () => {
    setSent(true)
    try {
      await onConfirm()
      onClose()
    } catch (error) {
      setSent(false)
      showProblem(failed ?? words.failed, problemOf(error))
    }
  }
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button look="danger" icon="trash" disabled={isSent} onClick={() => void confirm()}>
            {action}
          </Button>
        </>
      }
    >
      <p>{children}</p>
    </Dialog>
  )
}
