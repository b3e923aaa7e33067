// The console starts here.

import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { PageBoundary } from './app/page-boundary.tsx'
import { showPreferences } from './app/preferences.ts'
import { Shell } from './app/shell.tsx'
import './app/tokens.css'
import './app/base.css'

showPreferences()
const root = document.getElementById('root')
if (root === null) throw new Error('index.html has no #root')
createRoot(root).render(
  <StrictMode>
    <PageBoundary>
      <Shell />
    </PageBoundary>
  </StrictMode>,
)
