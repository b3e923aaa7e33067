// A question of an agent that belongs to no tool call: choose one of its options, or write.

import { type FormEvent, useRef, useState } from 'react'
import type { JsonValue, QuestionBlock } from '@polylog/client'
import { useApi } from '../api/api.ts'
import { problemOf } from '../api/use-loaded.ts'
import { useShortcuts } from '../app/shortcuts.ts'
import { useWords } from '../i18n/words.ts'
import { Button } from '../ui/button.tsx'
import { Countdown } from '../ui/countdown.tsx'
import { TextField } from '../ui/field.tsx'
import { showProblem } from '../ui/toast.tsx'
import { withVisibleControls } from '../ui/visible-text.ts'
import { runWords } from './words.ts'
import './question-card.css'

/** There are nine digits. */
const keyedOptionsMax = 9

type QuestionCardProps = {
  block: Pick<QuestionBlock, 'id' | 'prompt' | 'options' | 'open' | 'expiresAt' | 'response'>
  /** Names of values that an answer must have; then there is a field for each. */
  fields?: readonly string[]
  canAnswer?: boolean
  /** True: digits choose an option, and `r` leads to the answer. Only for the one card that a page is about. */
  hasKeys?: boolean
  onAnswered?: () => void
}

export function QuestionCard({ block, fields = [], canAnswer = true, hasKeys = false, onAnswered }: QuestionCardProps) {
  const words = useWords(runWords)
  const api = useApi()
  const [answer, setAnswer] = useState('')
  const [values, setValues] = useState<Record<string, string>>({})
  const [isSent, setSent] = useState(false)
  const form = useRef<HTMLFormElement>(null)
  const reply = async (value: JsonValue) => {
    if (isSent) return
    setSent(true)
    try {
      // Answers questions of conversations and of jobs.
      await api.json(`/v1/interactions/${encodeURIComponent(block.id)}/reply`, {
        method: 'POST',
        body: { response: value },
      })
      onAnswered?.()
    } catch (error) {
      setSent(false)
      showProblem(words.decisionFailed, problemOf(error))
    }
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (fields.length > 0) void reply(Object.fromEntries(fields.map((name) => [name, values[name]?.trim() ?? ''])))
    else if (answer.trim() !== '') void reply(answer.trim())
  }
  const keyed = hasKeys && block.open && canAnswer && !isSent
  useShortcuts(
    keyed
      ? [
          { keys: 'r', label: words.answer, run: () => form.current?.querySelector('input')?.focus() },
          ...block.options.slice(0, keyedOptionsMax).map((option, index) => ({
            keys: String(index + 1),
            label: textOf(option),
            run: () => void reply(valueOf(option)),
          })),
        ]
      : [],
  )
  return (
    <form
      ref={form}
      className="question-card"
      role="group"
      aria-label={words.question}
      data-open={block.open}
      onSubmit={submit}
    >
      <p dir="auto">{withVisibleControls(block.prompt)}</p>
      {block.open && canAnswer ? (
        <>
          {block.options.length === 0 ? null : (
            <div className="row row-wrap">
              {block.options.map((option, index) => (
                <Button
                  key={textOf(option)}
                  disabled={isSent}
                  onClick={() => void reply(valueOf(option))}
                  {...(keyed && index < keyedOptionsMax ? { keys: String(index + 1) } : {})}
                >
                  {withVisibleControls(textOf(option))}
                </Button>
              ))}
            </div>
          )}
          {fields.length === 0 ? (
            <div className="row">
              <div className="grow">
                <TextField
                  label={words.answer}
                  hideLabel
                  placeholder={words.answerPlaceholder}
                  value={answer}
                  onChange={(event) => setAnswer(event.target.value)}
                />
              </div>
              <Button look="primary" type="submit" disabled={isSent || answer.trim() === ''}>
                {words.answer}
              </Button>
            </div>
          ) : (
            <>
              {fields.map((name) => (
                <TextField
                  key={name}
                  label={withVisibleControls(name)}
                  value={values[name] ?? ''}
                  onChange={(event) => setValues({ ...values, [name]: event.target.value })}
                />
              ))}
              <div>
                <Button look="primary" type="submit" disabled={isSent}>
                  {words.answer}
                </Button>
              </div>
            </>
          )}
          {block.expiresAt === undefined ? null : (
            <p className="faint">
              {words.expiresIn} <Countdown at={Date.parse(block.expiresAt)} />
            </p>
          )}
        </>
      ) : block.response === undefined ? (
        block.open ? null : (
          <p className="faint">{words.questionClosed}</p>
        )
      ) : (
        <p className="soft">{typeof block.response === 'string' ? block.response : JSON.stringify(block.response)}</p>
      )}
    </form>
  )
}

/** An option is a text, or an object with a label and perhaps a value. */
function textOf(option: JsonValue): string {
  if (typeof option === 'string') return option
  const { label, value } = (option ?? {}) as { label?: JsonValue; value?: JsonValue }
  return typeof label === 'string' ? label : JSON.stringify(value ?? option)
}

function valueOf(option: JsonValue): JsonValue {
  if (typeof option !== 'object' || option === null || Array.isArray(option)) return option
  return option['value'] ?? option['label'] ?? option
}
