// A new comparison: two configurations and a question. The choice of configurations is kept for this tab.

import { type FormEvent, type KeyboardEvent, useState } from 'react'
import { useLocation } from 'wouter'
import { useApi } from '../../api/api.ts'
import { useCurl } from '../../api/curl.ts'
import { userQuery } from '../../api/named-user.ts'
import { problemOf, useLoaded } from '../../api/use-loaded.ts'
import { createStore } from '../../app/store.ts'
import { useWords } from '../../i18n/words.ts'
import { Button } from '../../ui/button.tsx'
import { CodeBlock } from '../../ui/code-block.tsx'
import { Select, TextArea } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Problem } from '../../ui/problem.tsx'
import { showProblem } from '../../ui/toast.tsx'
import { arenaWords } from './words.ts'
import './new-comparison.css'

type Config = { id: string; name: string; description: string }

/** Empty: not chosen yet. */
const chosenConfigs = createStore({ a: '', b: '' })

const example = `[
  { "name": "default" },
  { "name": "brief", "systemPrompt": "Answer in one sentence.", "temperature": 0.2 }
]`

export function NewComparison({ isFirst }: { isFirst: boolean }) {
  const words = useWords(arenaWords)
  const api = useApi()
  const [, navigate] = useLocation()
  const chosen = chosenConfigs.use()
  const [question, setQuestion] = useState('')
  const [isSent, setSent] = useState(false)
  const { data, error, reload } = useLoaded('configs', ({ json }, signal) =>
    json<{ options: Config[] }>('/api/get_configs', { signal }),
  )
  const configs = data?.options ?? []
  const a = configs.find(({ id }) => id === chosen.a)?.id ?? configs[0]?.id ?? ''
  const b = configs.find(({ id }) => id === chosen.b)?.id ?? configs[1]?.id ?? configs[0]?.id ?? ''
  const call = useCurl('/api/ab/compare', {
    method: 'POST',
    options: '-N',
    body: { message: words.exampleQuestion, config_a: a, config_b: b, ...userQuery() },
  })

  const send = async () => {
    const text = question.trim()
    if (text === '' || isSent || data === undefined) return
    setSent(true)
    try {
      const headers = await api.begin('/api/ab/compare', {
        key: api.newKey(),
        query: userQuery(),
        // A tab that is closed must not end the answers, whatever the server does by default.
        body: { message: text, config_a: a, config_b: b, on_disconnect: 'continue' },
      })
      navigate(`/arena/${encodeURIComponent(headers.get('x-comparison-id') ?? '')}`)
    } catch (failure) {
      setSent(false)
      showProblem(words.startFailed, problemOf(failure))
    }
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void send()
  }
  const press = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    void send()
  }
  return (
    <div className="new-comparison">
      <h2>{words.welcome}</h2>
      <p className="soft">{words.welcomeHelp}</p>
      {error === undefined ? null : <Problem error={error} onRetry={reload} />}
      <form className="new-comparison-form" onSubmit={submit}>
        <div className="new-comparison-configs">
          <ConfigSelect
            label={words.firstConfig}
            configs={configs}
            value={a}
            onChange={(id) => chosenConfigs.set((old) => ({ ...old, a: id, b: old.b === '' ? b : old.b }))}
          />
          <span className="new-comparison-versus faint" aria-hidden="true">
            {words.versus}
          </span>
          <ConfigSelect
            label={words.secondConfig}
            configs={configs}
            value={b}
            onChange={(id) => chosenConfigs.set((old) => ({ ...old, b: id, a: old.a === '' ? a : old.a }))}
          />
        </div>
        <TextArea
          label={words.question}
          autoFocus={!isFirst}
          rows={4}
          dir="auto"
          placeholder={words.questionPlaceholder}
          value={question}
          onChange={(event) => setQuestion(event.target.value)}
          onKeyDown={press}
        />
        <div className="row row-wrap">
          <Button look="primary" type="submit" icon="arena" disabled={question.trim() === '' || isSent || a === ''}>
            {words.ask}
          </Button>
          <span className="faint new-comparison-note">{a === b && a !== '' ? words.sameConfig : words.shuffled}</span>
        </div>
      </form>
      {data !== undefined && configs.length < 2 ? (
        <section className="new-comparison-hint">
          <h3 className="row">
            <Icon name="info" />
            {words.oneConfig}
          </h3>
          <p className="soft">{words.oneConfigHelp}</p>
          <CodeBlock code={example} label="configs.json" />
        </section>
      ) : null}
      <p className="faint new-comparison-or">{words.orCall}</p>
      <CodeBlock code={call} label="curl" />
    </div>
  )
}

type ConfigSelectProps = { label: string; configs: readonly Config[]; value: string; onChange(id: string): void }

function ConfigSelect({ label, configs, value, onChange }: ConfigSelectProps) {
  const { description } = configs.find(({ id }) => id === value) ?? {}
  return (
    <div className="grow">
      <Select
        label={label}
        value={value}
        help={description || undefined}
        onChange={(event) => onChange(event.target.value)}
      >
        {configs.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </Select>
    </div>
  )
}
