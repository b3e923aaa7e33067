// The form of an agent or operation, the cache controls, and what came out.

import { type FormEvent, useEffect, useMemo, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { type Conversation, type JsonValue, PolylogError } from '@polylog/client'
import { useCurl } from '../../api/curl.ts'
import { useLoaded } from '../../api/use-loaded.ts'
import { preferences } from '../../app/preferences.ts'
import { keysText, useShortcuts } from '../../app/shortcuts.ts'
import { errorSentence } from '../../i18n/chinese-errors.ts'
import { useWords } from '../../i18n/words.ts'
import { announce } from '../../ui/announcements.ts'
import { Button } from '../../ui/button.tsx'
import { Checkbox } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'
import { defaultsOf, type JsonSchema } from '../../ui/schema-fields.ts'
import { SchemaForm } from '../../ui/schema-form.tsx'
import type { AgentInfo } from './catalogue.ts'
import { AgentOutcome } from './agent-outcome.tsx'
import { type AgentRunRequest, useAgentRun } from './use-agent-run.ts'
import { agentsWords } from './words.ts'

type AgentBenchProps = { agent: AgentInfo; operation: string | null; schema: JsonSchema; snapshotId: string | null }

export function AgentBench({ agent, operation, schema, snapshotId }: AgentBenchProps) {
  const words = useWords(agentsWords)
  const [, navigate] = useLocation()
  const { language } = preferences.use()
  const shown = useMemo(() => withoutUser(schema), [schema])
  const [input, setInput] = useState<Record<string, JsonValue>>(() => firstInput(shown, language))
  const [useCache, setUseCache] = useState(true)
  const [forceRefresh, setForceRefresh] = useState(false)
  const [problems, setProblems] = useState<ReadonlyMap<string, string>>(new Map())
  const form = useRef<HTMLFormElement>(null)
  const { state, run, stop } = useAgentRun()
  const suggestions = useSuggestions(schema)
  const isRunning = state.phase === 'running'

  const request: AgentRunRequest = {
    agentId: agent.id,
    ...(operation === null ? {} : { operation }),
    input,
    options: { useCache, forceRefresh: useCache && forceRefresh },
  }
  const send = async () => {
    // A field with text that is not JSON has told no value.
    const wrong = [...(form.current?.querySelectorAll('textarea') ?? [])].find(({ validity }) => validity.customError)
    if (wrong !== undefined) return wrong.focus()
    setProblems(new Map())
    const answer = await run(request)
    if (answer instanceof PolylogError) {
      setProblems(issuesOf(answer))
      announce(errorSentence(answer.code, language) ?? answer.message)
    } else if (answer !== null) {
      announce(answer.cached ? words.hit : words.miss)
      const query = new URLSearchParams({
        ...(operation === null ? {} : { operation }),
        ...(answer.snapshotId === null ? {} : { snapshot: answer.snapshotId }),
      })
      navigate(`/agents/${encodeURIComponent(agent.id)}${query.size === 0 ? '' : `?${String(query)}`}`, {
        replace: true,
      })
    }
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void send()
  }
  useShortcuts([{ keys: 'mod+Enter', label: words.run, run: () => void send() }])
  useEffect(() => {
    if (problems.size > 0) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
  }, [problems])

  const call = useCurl('/v1/agent/run', { method: 'POST', body: request })
  return (
    <div className="bench">
      <form ref={form} className="bench-form" noValidate aria-label={words.input} onSubmit={submit}>
        <Card title={words.input}>
          <SchemaForm
            schema={shown}
            label={words.inputJson}
            value={input}
            problems={problems}
            suggestions={suggestions}
            onChange={(next) => {
              setProblems((old) => stillWrong(old, input, next))
              setInput(next)
            }}
          />
        </Card>
        <Card title={words.cache}>
          <Checkbox
            label={words.useCache}
            help={words.useCacheHelp}
            checked={useCache}
            onChange={({ target }) => setUseCache(target.checked)}
          />
          <Checkbox
            label={words.forceRefresh}
            help={words.forceRefreshHelp}
            disabled={!useCache}
            checked={useCache && forceRefresh}
            onChange={({ target }) => setForceRefresh(target.checked)}
          />
        </Card>
        <div className="row row-wrap bench-actions">
          <Button
            type="submit"
            look="primary"
            icon="play"
            disabled={isRunning || agent.status === 'unavailable'}
            keys={keysText('mod+Enter')}
          >
            {words.run}
          </Button>
          {state.phase === 'running' ? (
            <Button icon="stop" disabled={state.isStopping} onClick={() => void stop()}>
              {words.stop}
            </Button>
          ) : null}
        </div>
      </form>
      <AgentOutcome
        agent={agent}
        operation={operation}
        state={state}
        snapshotId={snapshotId}
        call={call}
        isErrorAtFields={state.phase === 'failed' && areAtFields(issuesOf(state.error), shown)}
      />
    </div>
  )
}

/** The server knows the user of the request. */
function withoutUser(schema: JsonSchema): JsonSchema {
  const properties = schema['properties']
  if (typeof properties !== 'object' || properties === null || Array.isArray(properties)) return schema
  const { userId: _user, ...others } = properties
  return { ...schema, properties: others }
}

function firstInput(schema: JsonSchema, language: string): Record<string, JsonValue> {
  const defaults = defaultsOf(schema)
  return typeof defaults['language'] === 'string' ? { ...defaults, language } : defaults
}

/** What the server says about each field, by its path in the input. */
function issuesOf({ code, details }: PolylogError): Map<string, string> {
  if (code !== 'invalid_input' || !Array.isArray(details?.['issues'])) return new Map()
  const issues = details['issues'] as { field: string; message: string }[]
  return new Map(issues.map(({ field, message }) => [field.replace(/^input\.?/, ''), message]))
}

function areAtFields(issues: ReadonlyMap<string, string>, schema: JsonSchema): boolean {
  const properties = Object.keys((schema['properties'] ?? {}) as object)
  return issues.size > 0 && [...issues.keys()].every((path) => properties.includes(path.split('.')[0] ?? ''))
}

/** A message about a property goes when that property changes. */
function stillWrong(
  problems: ReadonlyMap<string, string>,
  before: Record<string, JsonValue>,
  after: Record<string, JsonValue>,
): ReadonlyMap<string, string> {
  if (problems.size === 0) return problems
  return new Map(
    [...problems].filter(([path]) => {
      const [name = ''] = path.split('.')
      return name !== '' && before[name] === after[name]
    }),
  )
}

const suggestionsMax = 50

/** Ids that people would otherwise have to look up. */
function useSuggestions(schema: JsonSchema) {
  const properties = (schema['properties'] ?? {}) as Record<string, JsonValue>
  const wanted = ['conversationId', 'contactId'].filter((name) => Object.hasOwn(properties, name))
  const { data } = useLoaded(
    wanted.length === 0 ? null : `suggestions ${wanted.join(' ')}`,
    async ({ json }, signal) => {
      const query = { limit: suggestionsMax }
      const conversations = wanted.includes('conversationId')
        ? await json<Conversation[]>('/v1/conversations', { query, signal })
        : []
      const contacts = wanted.includes('contactId')
        ? (await json<{ items: { id: string; name: string }[] }>('/v1/contacts', { query, signal })).items
        : []
      return {
        conversationId: conversations.map(({ id, title }) => ({ value: id, label: title ?? id })),
        contactId: contacts.map(({ id, name }) => ({ value: id, label: name })),
      }
    },
  )
  return data ?? {}
}
