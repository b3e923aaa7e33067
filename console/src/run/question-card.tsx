// A question of an agent that belongs to no tool call: choose one of its options, or write.

import { type FormEvent, useState } from 'react'
import type { JsonValue, QuestionBlock } from '@polylog/client'
import { useApi } from '../api/api.ts'
import { problemOf } from '../api/use-loaded.ts'
import { useWords } from '../i18n/words.ts'
import { Button } from '../ui/button.tsx'
import { Countdown } from '../ui/countdown.tsx'
import { TextField } from '../ui/field.tsx'
import { showProblem } from '../ui/toast.tsx'
import { withVisibleControls } from '../ui/visible-text.ts'
import { runWords } from './words.ts'
import './question-card.css'

export function QuestionCard({ block, canAnswer = true }: { block: QuestionBlock; canAnswer?: boolean }) {
  const words = useWords(runWords)
  const api = useApi()
  const [answer, setAnswer] = useState('')
  const [isSent, setSent] = useState(false)
  const reply = async (value: JsonValue) => {
    setSent(true)
    try {
      await api.client.reply(block.id, value)
    } catch (error) {
      setSent(false)
      showProblem(words.decisionFailed, problemOf(error))
    }
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (answer.trim() !== '') void reply(answer.trim())
  }
  return (
    <form className="question-card" data-open={block.open} onSubmit={submit}>
      <p dir="auto">{withVisibleControls(block.prompt)}</p>
      {block.open && canAnswer ? (
        <>
          {block.options.length === 0 ? null : (
            <div className="row row-wrap">
              {block.options.map((option) => (
                <Button key={textOf(option)} disabled={isSent} onClick={() => void reply(valueOf(option))}>
                  {textOf(option)}
                </Button>
              ))}
            </div>
          )}
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
