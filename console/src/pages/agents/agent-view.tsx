// One agent: a form from its input schema at the left, its result beside it.

import { useMemo } from 'react'
import { Link, useSearchParams } from 'wouter'
import { useWords } from '../../i18n/words.ts'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Page } from '../../ui/page.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { AgentBench } from './agent-bench.tsx'
import { StatusOf } from './agent-list.tsx'
import { useCatalogue } from './catalogue.ts'
import { agentsWords } from './words.ts'
import './agent-view.css'

export function AgentView({ agentId }: { agentId: string }) {
  const words = useWords(agentsWords)
  const { data, error, reload } = useCatalogue()
  const [search] = useSearchParams()
  const agent = data?.find(({ id }) => id === agentId)
  const operation = agent?.operations.find(({ id }) => id === search.get('operation')) ?? agent?.operations[0]
  const back = (
    <Link href="/agents" className="button button-plain button-small">
      <Icon name="left" />
      {words.allAgents}
    </Link>
  )
  const address = `/agents/${encodeURIComponent(agentId)}`
  const schema = useMemo(() => operation?.inputSchema ?? agent?.inputSchema ?? {}, [agent, operation])
  if (agent === undefined) {
    return (
      <Page title={words.agents} actions={back}>
        {error === undefined ? null : <Problem error={error} onRetry={reload} />}
        {data === undefined && error === undefined ? <Spinner center /> : null}
        {data === undefined ? null : (
          <EmptyState icon="agent" title={words.unknownAgent}>
            {agentId}
          </EmptyState>
        )}
      </Page>
    )
  }
  return (
    <Page
      title={
        <span className="row">
          <span className="cut">{agent.name}</span>
          <StatusOf agent={agent} />
        </span>
      }
      about={operation?.description ?? agent.description}
      actions={back}
      {...(agent.operations.length === 0
        ? {}
        : {
            bar: (
              <Tabs
                label={words.operation}
                current={`${address}?operation=${operation?.id ?? ''}`}
                tabs={agent.operations.map(({ id, name }) => ({
                  href: `${address}?operation=${encodeURIComponent(id)}`,
                  label: name,
                }))}
              />
            ),
          })}
    >
      {agent.statusError === null ? null : (
        <Problem error={{ message: agent.statusError, code: 'agent_unavailable' }} onRetry={reload} />
      )}
      <AgentBench
        key={operation?.id ?? ''}
        agent={agent}
        operation={operation?.id ?? null}
        schema={schema}
        snapshotId={search.get('snapshot')}
      />
    </Page>
  )
}
