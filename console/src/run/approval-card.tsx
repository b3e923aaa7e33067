// A decision that waits for a person: what the call will do, how serious that is, with which arguments, and until when.
// Approve it, approve it with other arguments, or deny it with a reason that the model reads.

import { type FormEvent, type KeyboardEvent, useId, useState } from 'react'
import type { Confirmation, JsonValue, ToolBlock } from '@polylog/client'
import { useApi } from '../api/api.ts'
import { problemOf, useLoaded } from '../api/use-loaded.ts'
import { useShortcuts } from '../app/shortcuts.ts'
import { useWords } from '../i18n/words.ts'
import { Badge, type Tone } from '../ui/badge.tsx'
import { Button } from '../ui/button.tsx'
import { Countdown } from '../ui/countdown.tsx'
import { TextArea, TextField } from '../ui/field.tsx'
import { JsonTree } from '../ui/json-tree.tsx'
import { showProblem } from '../ui/toast.tsx'
import { withVisibleControls } from '../ui/visible-text.ts'
import { useToolEffects } from './tool-effects.ts'
import { runWords } from './words.ts'
import './approval-card.css'

const tones: Record<'read' | 'idempotent' | 'unsafe', Tone> = { read: 'good', idempotent: 'warn', unsafe: 'bad' }

type ApprovalCardProps = {
  id: string
  block: Pick<ToolBlock, 'name' | 'message' | 'input'>
  /** True: single keys decide. Only for the one card that a page is about. */
  hasKeys?: boolean
  onDecided?: (decision: 'approved' | 'denied') => void
}

export function ApprovalCard({ id, block, hasKeys = false, onDecided }: ApprovalCardProps) {
  const words = useWords(runWords)
  const api = useApi()
  const effect = useToolEffects()[block.name]
  const { data: asked } = useLoaded(`confirmation ${id}`, ({ json }, signal) =>
    json<Confirmation>(`/v1/tool-confirmations/${encodeURIComponent(id)}`, { signal }),
  )
  const [mode, setMode] = useState<'ask' | 'edit' | 'deny'>('ask')
  const [text, setText] = useState('')
  const [reason, setReason] = useState('')
  const [isSent, setSent] = useState(false)
  const titleId = useId()
  const edited = mode === 'edit' ? parsed(text) : undefined

  const decide = async (decision: 'approved' | 'denied', act: () => Promise<unknown>) => {
    if (isSent) return
    setSent(true)
    try {
      await act()
      onDecided?.(decision)
    } catch (error) {
      setSent(false)
      showProblem(words.decisionFailed, problemOf(error))
    }
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (mode === 'deny')
      void decide('denied', () => api.client.reject(id, reason.trim() === '' ? {} : { reason: reason.trim() }))
    else if (edited !== undefined) void decide('approved', () => api.client.confirm(id, { payload: edited }))
  }
  const approve = () => void decide('approved', () => api.client.confirm(id))
  const edit = () => {
    setText(JSON.stringify(block.input ?? {}, null, 2))
    setMode('edit')
  }
  const keys = hasKeys && mode === 'ask' && !isSent
  useShortcuts(
    keys
      ? [
          { keys: 'a', label: words.approve, run: approve },
          { keys: 'e', label: words.edit, run: edit },
          { keys: 'd', label: words.deny, run: () => setMode('deny') },
        ]
      : [],
  )
  const goBack = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || mode === 'ask') return
    event.preventDefault()
    setMode('ask')
  }
  return (
    <form className="approval" role="group" aria-labelledby={titleId} onSubmit={submit} onKeyDown={goBack}>
      <div className="row row-wrap">
        <h3 id={titleId}>{words.approvalTitle(block.name)}</h3>
        {effect === undefined ? null : (
          <span title={words[`effectHelp_${effect}`]}>
            <Badge tone={tones[effect]}>{words[`effect_${effect}`]}</Badge>
          </span>
        )}
        <span className="grow" />
        {asked?.expiresAtMs == null ? null : (
          <span className="approval-expiry faint">
            {words.expiresIn} <Countdown at={asked.expiresAtMs} />
          </span>
        )}
      </div>
      {block.message === undefined ? null : <p dir="auto">{withVisibleControls(block.message)}</p>}
      {asked?.outcome === 'unknown' ? <p className="approval-warning">{words.approvalOutcomeUnknown}</p> : null}
      {mode === 'edit' ? (
        <TextArea
          label={words.argumentsField}
          code
          autoFocus
          rows={Math.min(14, text.split('\n').length + 1)}
          spellCheck={false}
          value={text}
          problem={edited === undefined ? words.argumentsNotJson : undefined}
          onChange={(event) => setText(event.target.value)}
        />
      ) : (
        <div className="approval-arguments">
          <JsonTree value={block.input} label={words.input} />
        </div>
      )}
      {mode === 'deny' ? (
        <TextField
          label={words.denyReason}
          help={words.denyReasonHelp}
          maxLength={500}
          autoFocus
          value={reason}
          onChange={(event) => setReason(event.target.value)}
        />
      ) : null}
      <div className="row row-wrap">
        {mode === 'ask' ? (
          <>
            <Button look="primary" icon="check" disabled={isSent} onClick={approve} {...(keys ? { keys: 'A' } : {})}>
              {words.approve}
            </Button>
            <Button icon="edit" disabled={isSent} onClick={edit} {...(keys ? { keys: 'E' } : {})}>
              {words.edit}
            </Button>
            <Button icon="close" disabled={isSent} onClick={() => setMode('deny')} {...(keys ? { keys: 'D' } : {})}>
              {words.deny}
            </Button>
          </>
        ) : (
          <>
            <Button
              look={mode === 'deny' ? 'danger' : 'primary'}
              type="submit"
              disabled={isSent || (mode === 'edit' && edited === undefined)}
            >
              {mode === 'deny' ? words.deny : words.approveEdited}
            </Button>
            <Button disabled={isSent} onClick={() => setMode('ask')}>
              {words.back}
            </Button>
          </>
        )}
      </div>
    </form>
  )
}

function parsed(text: string): Record<string, JsonValue> | undefined {
  try {
    const value = JSON.parse(text) as JsonValue
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
