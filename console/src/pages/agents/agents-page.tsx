// The agents: all of them, or one with its form. The address holds which.

import { useLocation } from 'wouter'
import { AgentList } from './agent-list.tsx'
import { AgentView } from './agent-view.tsx'

export default function AgentsPage() {
  const [location] = useLocation()
  const [, , named = ''] = location.split('/')
  return named === '' ? <AgentList /> : <AgentView key={named} agentId={named} />
}
