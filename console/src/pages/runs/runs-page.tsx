// The list of runs, and the page of one run. The address holds which.

import { useLocation } from 'wouter'
import { pathPart } from '../../app/path-part.ts'
import { RunList } from './run-list.tsx'
import { RunPage } from './run-page.tsx'

export default function RunsPage() {
  const [location] = useLocation()
  const runId = pathPart(location)
  return runId === null ? <RunList /> : <RunPage key={runId} runId={runId} />
}
