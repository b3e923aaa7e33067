// The list of runs, and the page of one run. The address holds which.

import { useLocation } from 'wouter'
import { RunList } from './run-list.tsx'
import { RunPage } from './run-page.tsx'

export default function RunsPage() {
  const [location] = useLocation()
  const [, , named = ''] = location.split('/')
  return named === '' ? <RunList /> : <RunPage key={named} runId={decoded(named)} />
}

/** Somebody may have typed the address. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
