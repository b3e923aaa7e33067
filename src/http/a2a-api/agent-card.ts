// The agent cards of A2A: what an agent can do, and where and how to reach it. A client of 1.0 sends its
// version and gets a card of 1.0. Any other client gets a card that both generations can read: the
// fields of 0.3, and beside them the list of interfaces of 1.0. Pure.

import type { AgentCard } from '../../agents/agent-definition.ts'
import type { A2aVersion } from '../../dialects/a2a/a2a.ts'

export type CardRequest = {
  /** Absent: the client did not say which version it speaks. */
  version: A2aVersion | undefined
  /** The address of the server as the client used it, without a slash at the end. */
  origin: string
  serverVersion: string
  loginRequired: boolean
}

type A2aSkill = { id: string; name: string; description: string; tags: string[] }

type CardFields = { name: string; description: string; version: string; path: string; skills: A2aSkill[] }

export type A2aCard = Record<string, unknown>

const textModes = ['text/plain', 'application/json']
/** Whether a file can be read depends on the model; a message with one that it cannot read is refused. */
const fileModes = ['image/*', 'application/pdf', 'text/*']

/** The card of the server. The skills of the public card are those of the default agent; the extended card has all agents. */
export function serverCard(request: CardRequest, agents: readonly AgentCard[]): A2aCard {
  return cardOf(request, {
    name: 'Polylog',
    description: 'Runs AI agents. Each task is a run of the default agent; each agent has an address of its own, too.',
    version: request.serverVersion,
    path: '/a2a',
    skills: agents.map((agent) => skillOf(agent)),
  })
}

export function agentCardOf(request: CardRequest, agent: AgentCard): A2aCard {
  const { name, description, tags: _tags } = skillOf(agent)
  return cardOf(request, {
    name,
    description,
    version: agent.version,
    path: `/a2a/${encodeURIComponent(agent.id)}`,
    skills: [skillOf(agent)],
  })
}

function skillOf({ id, name, description, usage }: AgentCard): A2aSkill {
  return { id, name: name ?? id, description: description ?? usage ?? `The agent ${id}.`, tags: ['chat'] }
}

function cardOf({ version, origin, loginRequired }: CardRequest, fields: CardFields): A2aCard {
  const { path, ...described } = fields
  const url = `${origin}${path}`
  const common = {
    ...described,
    defaultInputModes: [...textModes, ...fileModes],
    defaultOutputModes: textModes,
    supportedInterfaces: [
      { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
    ],
  }
  if (version === '1.0') {
    return {
      ...common,
      capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true },
      securitySchemes: {
        bearer: { httpAuthSecurityScheme: { scheme: 'Bearer' } },
        apiKey: { apiKeySecurityScheme: { location: 'header', name: 'X-API-Key' } },
      },
      securityRequirements: loginRequired
        ? [{ schemes: { bearer: { list: [] } } }, { schemes: { apiKey: { list: [] } } }]
        : [],
    }
  }
  return {
    ...common,
    url,
    preferredTransport: 'JSONRPC',
    protocolVersion: '0.3.0',
    capabilities: {
      streaming: true,
      pushNotifications: false,
      stateTransitionHistory: false,
      extendedAgentCard: true,
    },
    supportsAuthenticatedExtendedCard: true,
    securitySchemes: {
      bearer: { type: 'http', scheme: 'bearer' },
      apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
    },
    security: loginRequired ? [{ bearer: [] }, { apiKey: [] }] : [],
  }
}
