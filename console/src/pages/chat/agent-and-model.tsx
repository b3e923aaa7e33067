// The fields that choose which agent answers, and with which model.

import { useEffect } from 'react'
import { useLoaded } from '../../api/use-loaded.ts'
import { preferences } from '../../app/preferences.ts'
import { useWords } from '../../i18n/words.ts'
import { chatChoice, keepOffered } from './chat-choice.ts'
import { chatWords } from './words.ts'

type ModelListing = { id: string; kind: 'model' | 'agent'; isDefault: boolean }
type AgentListing = { id: string; name: string; status: 'available' | 'unavailable'; endpoint: string }

export function AgentAndModel() {
  const words = useWords(chatWords)
  const { agentId, model } = chatChoice.use()
  const { language } = preferences.use()
  const { data } = useLoaded(`agents and models ${language}`, async ({ json }, signal) => {
    const [models, agents] = await Promise.all([
      json<{ data: ModelListing[] }>('/v1/models', { signal }),
      json<{ agents: AgentListing[] }>('/v1/agent/list', { query: { language }, signal }),
    ])
    return {
      models: models.data.filter(({ kind }) => kind === 'model'),
      agents: agents.agents.filter(({ endpoint, status }) => endpoint === '/v1/agent/chat' && status === 'available'),
    }
  })
  useEffect(() => {
    if (data === undefined) return
    keepOffered(
      data.agents.map(({ id }) => id),
      data.models.map(({ id }) => id),
    )
  }, [data])
  if (data === undefined) return null
  const usual = data.models.find(({ isDefault }) => isDefault)
  return (
    <>
      {data.agents.length < 2 ? null : (
        <select
          className="composer-choice"
          aria-label={words.agent}
          value={agentId}
          onChange={(event) => chatChoice.set((old) => ({ ...old, agentId: event.target.value }))}
        >
          <option value="">{words.defaultAgent}</option>
          {data.agents.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      )}
      <select
        className="composer-choice"
        aria-label={words.model}
        value={model}
        onChange={(event) => chatChoice.set((old) => ({ ...old, model: event.target.value }))}
      >
        <option value="">{words.defaultModel(usual?.id ?? '')}</option>
        {data.models
          .filter(({ isDefault }) => !isDefault)
          .map(({ id }) => (
            <option key={id} value={id}>
              {id}
            </option>
          ))}
      </select>
    </>
  )
}
