// Starts a job: a form from the schemas of its skill, with the files that it needs.

import { type FormEvent, useRef, useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { JsonValue } from '@polylog/client'
import { useApi } from '../../api/api.ts'
import { problemOf, useLoaded } from '../../api/use-loaded.ts'
import { useWords } from '../../i18n/words.ts'
import { Button } from '../../ui/button.tsx'
import { Checkbox, Select, TextField } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Problem } from '../../ui/problem.tsx'
import { SchemaForm } from '../../ui/schema-form.tsx'
import { defaultsOf } from '../../ui/schema-fields.ts'
import { Spinner } from '../../ui/spinner.tsx'
import { showToast } from '../../ui/toast.tsx'
import { type CreatedJob, jobPath, type JobRequest, type SkillDetail, uploadFiles } from './job-api.ts'
import { jobWords } from './words.ts'

export function JobForm({ skillId }: { skillId: string }) {
  const words = useWords(jobWords)
  const { data, error, reload } = useLoaded<SkillDetail>(`skill ${skillId}`, ({ json }, signal) =>
    json(`/v1/skills/${encodeURIComponent(skillId)}`, { signal }),
  )
  return (
    <div className="job-pane">
      <Link href="/jobs/new" className="job-back row">
        <Icon name="left" />
        {words.toSkills}
      </Link>
      {error === undefined ? null : <Problem error={error} onRetry={reload} />}
      {data === undefined && error === undefined ? <Spinner center /> : null}
      {data === undefined ? null : <Form skill={data} />}
    </div>
  )
}

type Values = Record<string, JsonValue>

function Form({ skill }: { skill: SkillDetail }) {
  const words = useWords(jobWords)
  const api = useApi()
  const [, navigate] = useLocation()
  const [input, setInput] = useState<Values>(() => defaultsOf(skill.schemas.input))
  const [parameter, setParameter] = useState<Values>(() => defaultsOf(skill.schemas.parameter))
  const [files, setFiles] = useState<ReadonlyMap<string, File>>(new Map())
  const [mode, setMode] = useState(skill.execution_modes[0] ?? 'auto')
  const [model, setModel] = useState('')
  const [isNoCache, setNoCache] = useState(false)
  const [step, setStep] = useState<'ready' | 'starting' | 'uploading'>('ready')
  const [problem, setProblem] = useState<{ message: string; code?: string } | null>(null)
  /** A job that was accepted while its upload was refused: the upload is sent again, not the job. */
  const held = useRef<{ body: string; id: string } | null>(null)

  const start = async (event: FormEvent) => {
    event.preventDefault()
    setProblem(null)
    setStep('starting')
    const request: JobRequest = {
      skill_id: skill.id,
      input,
      parameter,
      runtime_options: { execution_mode: mode, ...(isNoCache ? { no_cache: true as const } : {}) },
      ...(model.trim() === '' ? {} : { model: model.trim() }),
    }
    const body = JSON.stringify(request)
    try {
      if (held.current !== null && held.current.body !== body) {
        await api.json(jobPath(held.current.id, '/cancel'), { method: 'POST' })
        held.current = null
      }
      let id = held.current?.id
      let isReused = false
      if (id === undefined) {
        const created = await api.json<CreatedJob>('/v1/jobs', { method: 'POST', body: request })
        id = created.request_id
        isReused = created.cache_hit
        if (created.status === null) held.current = { body, id }
      }
      if (held.current !== null) {
        setStep('uploading')
        isReused = (await uploadFiles(api, id, files)).cache_hit
      }
      if (isReused) showToast({ text: words.cached })
      navigate(`/jobs/${encodeURIComponent(id)}`)
    } catch (error) {
      setProblem(problemOf(error))
      setStep('ready')
    }
  }
  const hasInput = skill.schemas.input !== null
  return (
    <form className="stack job-form" aria-label={skill.name} onSubmit={(event) => void start(event)}>
      <header>
        <h2 className="job-title">{skill.name}</h2>
        <p className="soft">{skill.description}</p>
      </header>
      {hasInput ? (
        <SchemaForm
          schema={skill.schemas.input}
          label={words.input}
          value={input}
          onChange={setInput}
          files={files}
          onFile={(name, file) =>
            setFiles((old) => {
              const next = new Map(old)
              if (file === null) next.delete(name)
              else next.set(name, file)
              return next
            })
          }
        />
      ) : (
        <p className="faint">{words.noInput}</p>
      )}
      {skill.schemas.parameter === null ? null : (
        <fieldset className="schema-group">
          <legend>{words.parameter}</legend>
          <SchemaForm
            schema={skill.schemas.parameter}
            label={words.parameter}
            value={parameter}
            onChange={setParameter}
          />
        </fieldset>
      )}
      <fieldset className="schema-group">
        <legend>{words.options}</legend>
        <div className="job-options">
          <Select label={words.mode} value={mode} onChange={({ target }) => setMode(target.value)}>
            {skill.execution_modes.map((name) => (
              <option key={name} value={name}>
                {name === 'auto' ? words.mode_auto : name === 'interactive' ? words.mode_interactive : name}
              </option>
            ))}
          </Select>
          <TextField
            label={words.model}
            placeholder={words.defaultModel}
            maxLength={200}
            value={model}
            onChange={({ target }) => setModel(target.value)}
          />
        </div>
        <Checkbox label={words.noCache} checked={isNoCache} onChange={({ target }) => setNoCache(target.checked)} />
      </fieldset>
      {problem === null ? null : <Problem error={problem} />}
      <div className="row">
        <Button look="primary" type="submit" icon="play" disabled={step !== 'ready'}>
          {step === 'starting' ? words.starting : step === 'uploading' ? words.uploading : words.startJob}
        </Button>
      </div>
    </form>
  )
}
