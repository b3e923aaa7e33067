// The arena: two blind answers and a vote, the standings, and the difference of two runs. The address holds which.

import { useLocation } from 'wouter'
import { ComparePage } from './compare-page.tsx'
import { DiffPage } from './diff-page.tsx'
import { StandingsPage } from './standings-page.tsx'

export default function ArenaPage() {
  const [location] = useLocation()
  const [, , view = ''] = location.split('/')
  if (view === 'standings') return <StandingsPage />
  if (view === 'diff') return <DiffPage />
  return <ComparePage id={view === '' || view === 'new' ? null : view} isNew={view === 'new'} />
}
