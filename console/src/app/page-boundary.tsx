// Keeps an error of one page inside it. A script that cannot be loaded usually means that the server was updated.

import { Component, type ReactNode } from 'react'
import { useWords } from '../i18n/words.ts'
import { Button } from '../ui/button.tsx'
import { EmptyState } from '../ui/empty-state.tsx'
import { shellWords } from './words.ts'

type BoundaryProps = { children: ReactNode }

export class PageBoundary extends Component<BoundaryProps, { error: Error | null }> {
  override state: { error: Error | null } = { error: null }

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error }
  }

  override render(): ReactNode {
    return this.state.error === null ? this.props.children : <BrokenPage error={this.state.error} />
  }
}

function BrokenPage({ error }: { error: Error }) {
  const words = useWords(shellWords)
  const isMissingScript = /dynamically imported module|preload/i.test(error.message)
  return (
    <EmptyState
      icon="alert"
      title={words.broken}
      actions={
        <Button look="primary" icon="refresh" onClick={() => location.reload()}>
          {words.reload}
        </Button>
      }
    >
      {isMissingScript ? words.brokenNewVersion : error.message}
    </EmptyState>
  )
}
