// The catalogue: a card for each agent, with whether it can be used, and why not.

import { useRef, useState } from 'react'
import { Link } from 'wouter'
import { useCurl } from '../../api/curl.ts'
import { useShortcuts } from '../../app/shortcuts.ts'
import { useLocale, useWords } from '../../i18n/words.ts'
import { Badge } from '../../ui/badge.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Page } from '../../ui/page.tsx'
import { Problem } from '../../ui/problem.tsx'
import { SearchField } from '../../ui/search-field.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { type AgentInfo, useCatalogue } from './catalogue.ts'
import { agentsWords } from './words.ts'
import './agent-list.css'

export function AgentList() {
  const words = useWords(agentsWords)
  const { data, error, reload } = useCatalogue()
  const [search, setSearch] = useState('')
  const field = useRef<HTMLInputElement>(null)
  const call = useCurl('/v1/agent/list')
  useShortcuts([{ keys: '/', label: words.search, run: () => field.current?.focus() }])
  const parts = search.toLowerCase().split(/\s+/).filter(Boolean)
  const found = data?.filter(({ id, name, description }) => {
    const text = `${id} ${name} ${description}`.toLowerCase()
    return parts.every((part) => text.includes(part))
  })
  const broken = data?.filter(({ status }) => status === 'unavailable').length ?? 0
  return (
    <Page
      title={words.agents}
      about={data === undefined ? words.about : words.count(data.length, broken)}
      actions={
        <div className="agent-search">
          <SearchField ref={field} label={words.search} value={search} onChange={setSearch} />
        </div>
      }
    >
      {error === undefined ? null : <Problem error={error} onRetry={reload} />}
      {data === undefined && error === undefined ? <Spinner center /> : null}
      {found?.length === 0 ? (
        <EmptyState icon="agent" title={search === '' ? words.none : words.nothingFound} call={call}>
          {words.noneHelp}
        </EmptyState>
      ) : null}
      <ul className="agent-cards">
        {found?.map((agent) => (
          <li key={agent.id}>
            <AgentCard agent={agent} />
          </li>
        ))}
      </ul>
    </Page>
  )
}

function AgentCard({ agent }: { agent: AgentInfo }) {
  const words = useWords(agentsWords)
  const locale = useLocale()
  const { ttl } = agent.cache
  const facts = [
    agent.version === 'unknown' ? null : `v${agent.version}`,
    agent.operations.length === 0 ? null : words.operations(agent.operations.length),
    ttl === null ? null : ttl === 0 ? words.keptForEver : words.keptFor(longText(ttl, locale)),
    agent.endpoint === '/v1/agent/chat' ? words.chats : null,
  ].filter((fact) => fact !== null)
  return (
    <Link href={`/agents/${encodeURIComponent(agent.id)}`} className="agent-card" data-status={agent.status}>
      <span className="row">
        <span className="agent-card-icon">
          <Icon name="agent" />
        </span>
        <span className="agent-card-names grow">
          <span className="agent-card-name cut">{agent.name}</span>
          <code className="faint cut">{agent.id}</code>
        </span>
        <StatusOf agent={agent} />
      </span>
      {agent.description === '' ? null : <span className="agent-card-about soft">{agent.description}</span>}
      {agent.statusError === null ? null : <span className="agent-card-reason">{agent.statusError}</span>}
      {facts.length === 0 ? null : <span className="agent-card-facts faint cut">{facts.join(' · ')}</span>}
    </Link>
  )
}

/** 1 hour, 2 days: the largest unit that fits. */
function longText(seconds: number, locale: string): string {
  const [unit, size] =
    (
      [
        ['day', 86_400],
        ['hour', 3600],
        ['minute', 60],
      ] as const
    ).find(([, length]) => seconds >= length && seconds % length === 0) ?? (['second', 1] as const)
  return new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay: 'long' }).format(seconds / size)
}

export function StatusOf({ agent: { status } }: { agent: Pick<AgentInfo, 'status'> }) {
  const words = useWords(agentsWords)
  return (
    <Badge tone={status === 'available' ? 'good' : 'bad'} dot>
      {words[status]}
    </Badge>
  )
}
